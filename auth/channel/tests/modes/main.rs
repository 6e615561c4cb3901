//! Both modes over loopback: certificates that change, keys that are pinned, hellos that choose,
//! connections that leave rustls.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod flights;
mod hellos;
mod lean;
mod pins;
mod reload;
mod selection;
mod site;
