//! Room for long answers, kept for the next ones: the kernel clears what it gives out, and for each
//! batch that would be 80 KiB.
//!
//! Only requests that may have a long body have a long answer, such as batches, which need a key. It
//! is sent before the next one is written, unless its peer takes its time, so few buffers are needed.
//! Each thread has its own, [`SPARES_MAX`] of [`SPARE_BYTES_MAX`] at most.

use std::cell::RefCell;

/// Buffers of a thread: those of as many peers that take their time at once come back here.
const SPARES_MAX: usize = 8;
/// Bytes of one: the answers to a batch of 300. What is larger is not kept.
const SPARE_BYTES_MAX: usize = 256 * 1024;

thread_local! {
    static SPARES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A spare buffer, empty, for an empty one.
pub(super) fn take(buffer: Vec<u8>) -> Vec<u8> {
    SPARES.with_borrow_mut(Vec::pop).unwrap_or(buffer)
}

/// Keeps a buffer, which is empty, for the next.
pub(super) fn give(buffer: Vec<u8>) {
    SPARES.with_borrow_mut(|spares| {
        if spares.len() < SPARES_MAX && buffer.capacity() <= SPARE_BYTES_MAX {
            spares.push(buffer);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_kept_as_may_be() {
        let room = |bytes| Vec::with_capacity(bytes);

        give(room(SPARE_BYTES_MAX + 1));
        assert_eq!(take(Vec::new()).capacity(), 0);

        (0..SPARES_MAX + 1).for_each(|_| give(room(1)));
        let taken: Vec<_> = (0..SPARES_MAX + 1).map(|_| take(Vec::new()).capacity()).collect();
        assert_eq!(taken.iter().filter(|it| **it > 0).count(), SPARES_MAX);
    }
}
