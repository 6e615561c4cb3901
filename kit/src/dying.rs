//! Places where a test has the process die as by `kill -9`. Builds without debug assertions, as for
//! use, have none.

/// The variable that names the place to die at.
pub const DIE_AT: &str = "BARRAGE_DIE_AT";

/// Ends the process as `kill -9` does, if [`DIE_AT`] names this place and `is_here` says so: nothing
/// is finished, told or flushed.
#[cfg(debug_assertions)]
pub fn pass(place: &str, is_here: impl FnOnce() -> bool) {
    use std::sync::OnceLock;

    use rustix::process::{Signal, getpid, kill_process};

    static AT: OnceLock<Option<String>> = OnceLock::new();
    let at = AT.get_or_init(|| std::env::var(DIE_AT).ok());
    if at.as_deref() == Some(place) && is_here() && kill_process(getpid(), Signal::KILL).is_err() {
        std::process::abort();
    }
}

/// Does nothing.
#[cfg(not(debug_assertions))]
pub fn pass(_place: &str, _is_here: impl FnOnce() -> bool) {}
