//! sdk-core.
