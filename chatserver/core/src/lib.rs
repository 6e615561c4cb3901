//! chatserver-core.
