//! What flatc made of `schema/*.fbs`: `proto/generate` writes it, nobody edits it.
#![expect(
    elided_lifetimes_in_paths,
    unnameable_types,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    clippy::use_self,
    clippy::unwrap_used,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated; only the codec reads through it, and only behind the verifier"
)]

#[rustfmt::skip]
mod wire;

pub(crate) use wire::barrage::wire::*;
