//! How a room is delivered.

use serde::{Deserialize, Serialize};

/// How a room is delivered.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Heat {
    /// Links push everything.
    #[default]
    Cold = 0,
    /// Viewers poll segments; links carry acks and control.
    Hot = 1,
}
