//! The commands, one file each.

pub(crate) mod archive;
pub(crate) mod bench;
pub(crate) mod business;
mod configuration;
pub(crate) mod dict;
pub(crate) mod export;
pub(crate) mod keys;
pub(crate) mod place;
mod plain;
pub(crate) mod plan;
pub(crate) mod replay;
pub(crate) mod role;
pub(crate) mod say;
mod secret;
pub(crate) mod simulate;
pub(crate) mod token;
pub(crate) mod up;
mod viewer;
pub(crate) mod watch;
