//! Numbers that nobody can guess: of tokens, and of passing accounts.

use std::cell::RefCell;
use std::io;

use gslb_core::assign::ADDRESSES_PER_ANSWER;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

thread_local! {
    /// One for each thread, so that they do not wait for each other; seeded by the operating
    /// system, never by the root.
    static GENERATOR: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// Those of one answer: to draw them one by one takes twice the time.
#[derive(Debug)]
pub(super) struct Numbers {
    /// Of the viewer, who may have no account.
    pub(super) account: [u8; 16],
    pub(super) tokens: [[u8; 16]; ADDRESSES_PER_ANSWER],
}

impl Numbers {
    /// The next ones.
    ///
    /// # Errors
    /// When the operating system gives a new thread no seed.
    #[inline]
    pub(super) fn draw() -> io::Result<Self> {
        GENERATOR.with_borrow_mut(|generator| {
            let generator = match generator {
                Some(generator) => generator,
                None => generator.insert(StdRng::from_seed(kit::seed::random_bytes()?)),
            };
            let mut numbers = [[0; 16]; 1 + ADDRESSES_PER_ANSWER];
            generator.fill_bytes(numbers.as_flattened_mut());
            let [account, tokens @ ..] = numbers;
            Ok(Self { account, tokens })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_do_not_repeat_within_or_across_threads() {
        let some = || {
            let numbers = (0..250).map(|_| Numbers::draw().unwrap());
            numbers.flat_map(|it| [it.account].into_iter().chain(it.tokens)).collect::<Vec<_>>()
        };

        let other = std::thread::spawn(some).join().unwrap();
        let numbers: BTreeSet<_> = some().into_iter().chain(other).collect();

        assert_eq!(numbers.len(), 2_000);
    }
}
