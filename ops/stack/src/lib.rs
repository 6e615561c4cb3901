//! All services in one process, and a crowd of viewers to fill them.

pub mod replay;
