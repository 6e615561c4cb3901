//! The session machine through its verbs, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names what it expects")]

mod acts;
mod life;
mod login;
mod world;
