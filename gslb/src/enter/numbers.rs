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

/// The next ones.
///
/// # Errors
/// When the operating system gives a new thread no seed.
pub(super) fn next<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    GENERATOR.with_borrow_mut(|generator| {
        let generator = match generator {
            Some(generator) => generator,
            None => generator.insert(StdRng::from_seed(kit::seed::random_bytes()?)),
        };
        let mut bytes = [0; BYTES];
        generator.fill_bytes(&mut bytes);
        Ok(bytes)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_do_not_repeat_within_or_across_threads() {
        let some = || (0..1_000).map(|_| next::<16>().unwrap()).collect::<Vec<_>>();

        let other = std::thread::spawn(some).join().unwrap();
        let numbers: BTreeSet<_> = some().into_iter().chain(other).collect();

        assert_eq!(numbers.len(), 2_000);
    }
}
