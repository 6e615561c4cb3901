//! Numbers that nobody can guess: of tokens, and of passing accounts.

use std::cell::RefCell;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Refusal;

/// Numbers that are made at once: one by one each takes twice the time.
const MADE: usize = 64;

thread_local! {
    /// One for each thread, so that they do not wait for each other; seeded by the operating
    /// system, never by the root.
    static GENERATOR: RefCell<Option<Generator>> = const { RefCell::new(None) };
}

struct Generator {
    source: StdRng,
    numbers: [[u8; 16]; MADE],
    /// Of these the first so many.
    drawn: usize,
}

/// Puts the next ones into `numbers`.
///
/// # Errors
/// When the operating system gives a new thread no seed.
#[inline]
pub(super) fn draw<const N: usize>(numbers: &mut [[u8; 16]; N]) -> Result<(), Refusal> {
    const { assert!(N <= MADE) };
    GENERATOR.with_borrow_mut(|generator| {
        let generator = match generator {
            Some(generator) => generator,
            None => generator.insert(seeded()?),
        };
        *numbers = generator.draw();
        Ok(())
    })
}

impl Generator {
    #[inline]
    fn draw<const N: usize>(&mut self) -> [[u8; 16]; N] {
        if MADE - self.drawn < N {
            self.make();
        }
        let next = self.numbers[self.drawn..].first_chunk();
        self.drawn += N;
        *next.expect("so many were left, or all were made anew")
    }

    #[inline(never)]
    fn make(&mut self) {
        self.source.fill_bytes(self.numbers.as_flattened_mut());
        self.drawn = 0;
    }
}

#[cold]
fn seeded() -> Result<Generator, Refusal> {
    let seed = kit::seed::random_bytes().map_err(|_| Refusal::NoRandom)?;
    Ok(Generator { source: StdRng::from_seed(seed), numbers: [[0; 16]; MADE], drawn: MADE })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_do_not_repeat_within_or_across_threads() {
        fn four() -> [[u8; 16]; 4] {
            let mut numbers = [[0; 16]; 4];
            draw(&mut numbers).unwrap();
            numbers
        }
        let some = || (0..250).flat_map(|_| four()).collect::<Vec<_>>();

        let other = std::thread::spawn(some).join().unwrap();
        let numbers: BTreeSet<_> = some().into_iter().chain(other).collect();

        assert_eq!(numbers.len(), 2_000);
    }
}
