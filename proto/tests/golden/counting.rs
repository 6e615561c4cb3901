//! An allocator that counts what a thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

pub(crate) struct Counting;

/// The most bytes that this thread held while `work` ran, beyond what it held before.
pub(crate) fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let done = work();
    (done, PEAK.get().saturating_sub(before))
}

fn took(bytes: usize) {
    HELD.set(HELD.get().wrapping_add(bytes));
    PEAK.set(PEAK.get().max(HELD.get()));
}

fn gave(bytes: usize) {
    HELD.set(HELD.get().saturating_sub(bytes));
}

#[expect(unsafe_code, reason = "an allocator is unsafe; this one only counts and passes on")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        gave(layout.size());
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
