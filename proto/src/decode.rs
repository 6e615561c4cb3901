//! Why bytes were not taken.

/// Why bytes were not taken. Never a panic, never a large allocation.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// Nothing there, or cut off.
    #[error("{bytes} bytes are too few")]
    TooShort {
        /// Bytes found.
        bytes: usize,
    },
    /// More than the limit.
    #[error("{bytes} bytes are more than {max}")]
    TooLarge {
        /// Bytes found.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A kind or flag that this version does not know.
    #[error("kind {kind} with flags {flags} is unknown here")]
    UnknownKind {
        /// The kind byte.
        kind: u8,
        /// The flags byte.
        flags: u8,
    },
    /// The verifier refused it, or it is not valid JSON.
    #[error("the structure is damaged")]
    Malformed,
    /// A field's value is outside its grammar or range.
    #[error("the field {field} has a value that is not allowed")]
    Value {
        /// Which.
        field: &'static str,
    },
    /// The checksum inside does not match.
    #[error("the checksum does not match")]
    Checksum,
}
