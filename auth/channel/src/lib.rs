//! How a connection is made safe: TLS 1.3 set up one way for every listener and every client, and
//! the binding of a login to its channel.
//!
//! Mode T speaks the suites of RFC 8446 through aws-lc-rs, mode G those of RFC 8998 through
//! [`national`]. A provider is handed over explicitly: this code neither reads nor sets a process's
//! default provider. Certificates come from files that may change ([`reload`]) or are made for
//! development ([`DevCerts`]).
#![deny(missing_docs)]

mod binding;
mod capped;
mod certificate;
mod client;
mod dev;
mod lean;
pub mod national;
mod pins;
mod provider;
mod quic;
pub mod reload;
mod server;
mod suite;

pub use binding::{EXPORTER_LABEL, binder, confirm, exporter};
pub use capped::Capped;
pub use certificate::Validity;
pub use client::ClientTls;
pub use dev::{DevCerts, DevCertsError};
pub use lean::{Fault, Lean, Shaken};
pub use pins::{NoPin, Pin, Pins, Unpinned};
pub use provider::TlsError;
pub use quic::{QUIC_ALPN, QUIC_VERSION};
pub use server::{ServerStream, ServerTls};
pub use suite::suite;
