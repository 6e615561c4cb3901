//! auth.
