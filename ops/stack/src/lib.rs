//! stack.
