//! How a connection is made safe: TLS 1.3 set up one way for every listener and every client, and
//! the binding of a login to its channel.
//!
//! The provider is aws-lc-rs, handed over explicitly: this code neither reads nor sets a process's
//! default provider. Development certificates come from [`DevCerts`].
#![deny(missing_docs)]

mod binding;
mod client;
mod dev;
pub mod national;
mod provider;
mod server;

pub use binding::{EXPORTER_LABEL, binder, confirm, exporter};
pub use client::ClientTls;
pub use dev::{DevCerts, DevCertsError};
pub use provider::TlsError;
pub use server::ServerTls;
