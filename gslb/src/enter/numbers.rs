//! Numbers that nobody can guess: of tokens, and of passing accounts.

use std::cell::RefCell;
use std::io;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

thread_local! {
    /// One for each thread, so that they do not wait for each other; seeded by the operating
    /// system, never by the root.
    static GENERATOR: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// Fills in the next ones.
///
/// # Errors
/// When the operating system gives a new thread no seed.
pub(super) fn fill(numbers: &mut [u8]) -> io::Result<()> {
    GENERATOR.with_borrow_mut(|generator| {
        let generator = match generator {
            Some(generator) => generator,
            None => generator.insert(StdRng::from_seed(kit::seed::random_bytes()?)),
        };
        generator.fill_bytes(numbers);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_do_not_repeat_within_or_across_threads() {
        let some = || {
            let mut numbers = vec![[0; 16]; 1_000];
            numbers.iter_mut().for_each(|it| fill(it).unwrap());
            numbers
        };

        let other = std::thread::spawn(some).join().unwrap();
        let numbers: BTreeSet<_> = some().into_iter().chain(other).collect();

        assert_eq!(numbers.len(), 2_000);
    }
}
