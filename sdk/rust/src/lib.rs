//! sdk.
