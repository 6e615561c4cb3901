//! Numbers that nobody can guess: of tokens, and of passing accounts.

use std::cell::RefCell;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Refusal;

thread_local! {
    /// One for each thread, so that they do not wait for each other; seeded by the operating
    /// system, never by the root.
    static GENERATOR: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// The next `N`: to draw them one by one takes twice the time.
///
/// # Errors
/// When the operating system gives a new thread no seed.
#[inline]
pub(super) fn draw<const N: usize>() -> Result<[[u8; 16]; N], Refusal> {
    GENERATOR.with_borrow_mut(|generator| {
        let generator = match generator {
            Some(generator) => generator,
            None => generator.insert(seeded()?),
        };
        let mut numbers = [[0; 16]; N];
        generator.fill_bytes(numbers.as_flattened_mut());
        Ok(numbers)
    })
}

#[cold]
fn seeded() -> Result<StdRng, Refusal> {
    let seed = kit::seed::random_bytes().map_err(|_| Refusal::NoRandom)?;
    Ok(StdRng::from_seed(seed))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_do_not_repeat_within_or_across_threads() {
        let some = || (0..250).flat_map(|_| draw::<4>().unwrap()).collect::<Vec<_>>();

        let other = std::thread::spawn(some).join().unwrap();
        let numbers: BTreeSet<_> = some().into_iter().chain(other).collect();

        assert_eq!(numbers.len(), 2_000);
    }
}
