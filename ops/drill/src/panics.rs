//! Counts panics: tasks outlive a panic of one of them, so nobody else would notice.

use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static SEEN: AtomicU64 = AtomicU64::new(0);
static WATCH: Once = Once::new();

/// Counts from now on; what the process did with a panic before, it still does.
pub fn watch() {
    WATCH.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            SEEN.fetch_add(1, Ordering::Relaxed);
            before(info);
        }));
    });
}

/// How many panics there were, in any thread.
#[must_use]
pub fn seen() -> u64 {
    SEEN.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_that_was_caught_is_seen() {
        watch();
        watch();
        let before = seen();

        let caught = panic::catch_unwind(|| panic!("on purpose"));

        assert!(caught.is_err());
        assert_eq!(seen(), before + 1);
    }
}
