//! gslb-core.
