//! chatserver.
