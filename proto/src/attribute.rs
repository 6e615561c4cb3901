//! What a room tells everyone in it besides items: its notice, attributes, counters.

use serde::{Deserialize, Serialize};

use crate::id::AttributeName;
use crate::limits::{ATTRIBUTE_BYTES_MAX, TEXT_BYTES_MAX};

/// The name of the room's notice, which stands beside its attributes and may be longer.
pub const NOTICE: &str = "notice";
/// Attributes of one room, counters included, its notice not.
pub const ATTRIBUTES_MAX: usize = 100;
/// A counter's largest and smallest number: every JSON reader keeps such whole numbers.
pub const COUNT_MAX: i64 = (1 << 53) - 1;

/// A name and what stands there now.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Attribute {
    /// The name.
    pub name: AttributeName,
    /// Rises with each change, also over a removal.
    pub version: u64,
    /// What stands there; absent: nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// What stands under a name. In JSON a number or a string.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A counter's number, within [`COUNT_MAX`].
    Count(i64),
    /// A text of at most [`ATTRIBUTE_BYTES_MAX`], the notice of [`TEXT_BYTES_MAX`].
    Text(String),
}

impl Attribute {
    /// Whether it is the room's notice.
    #[must_use]
    pub fn is_notice(&self) -> bool {
        self.name.as_str() == NOTICE
    }

    /// Whether its value is within the bounds.
    #[must_use]
    pub fn fits(&self) -> bool {
        let bytes_max = if self.is_notice() { TEXT_BYTES_MAX } else { ATTRIBUTE_BYTES_MAX };
        match &self.value {
            None => true,
            Some(Value::Count(count)) => count.unsigned_abs() <= COUNT_MAX.unsigned_abs(),
            Some(Value::Text(text)) => text.len() <= bytes_max,
        }
    }
}
