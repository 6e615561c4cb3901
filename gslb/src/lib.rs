//! gslb.
