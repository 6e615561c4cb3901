//! link-core.
