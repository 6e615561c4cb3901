//! auth-core.
