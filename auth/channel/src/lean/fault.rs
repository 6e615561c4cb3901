//! Why a connection cannot go on.

use std::io;

/// What is wrong with what a client sent, or that it cut the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Fault {
    /// A record whose seal is not right: forged, changed, repeated, or out of its order.
    #[error("a record does not open")]
    Seal,
    /// A record that is longer than a record may be.
    #[error("a record is too long")]
    Length,
    /// A record or a message that has no place here.
    #[error("a record or message has no place here")]
    Message,
    /// A message that is not written as it must be.
    #[error("a message cannot be read")]
    Form,
    /// A message with a value that it cannot have.
    #[error("a message has a value that it cannot have")]
    Value,
    /// Record after record without anything in it.
    #[error("too many records say nothing")]
    Quiet,
    /// More changes of the client's keys than its data is worth.
    #[error("the keys are changed too often")]
    Changes,
    /// An alert of the client, by its number in RFC 8446, section 6.2.
    #[error("the client's alert {0}")]
    Alert(u8),
    /// The end of the stream without a goodbye: somebody between may have cut it.
    #[error("the connection was cut")]
    Cut,
    /// A seal could not be made, which the cipher has no reason for.
    #[error("a record was not sealed")]
    Sealing,
}

impl Fault {
    /// One word, for metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seal => "seal",
            Self::Length => "length",
            Self::Message => "message",
            Self::Form => "form",
            Self::Value => "value",
            Self::Quiet => "quiet",
            Self::Changes => "changes",
            Self::Alert(_) => "alert",
            Self::Cut => "cut",
            Self::Sealing => "sealing",
        }
    }

    /// What the client is told, by its number in RFC 8446, section 6.2; none where nothing is to be
    /// said any more.
    pub(super) const fn alert(self) -> Option<u8> {
        match self {
            Self::Message | Self::Quiet | Self::Changes => Some(10),
            Self::Seal => Some(20),
            Self::Length => Some(22),
            Self::Value => Some(47),
            Self::Form => Some(50),
            Self::Sealing => Some(80),
            Self::Alert(_) | Self::Cut => None,
        }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        let kind = match fault {
            Fault::Cut => io::ErrorKind::UnexpectedEof,
            Fault::Alert(_) => io::ErrorKind::ConnectionAborted,
            Fault::Seal
            | Fault::Length
            | Fault::Message
            | Fault::Form
            | Fault::Value
            | Fault::Quiet
            | Fault::Changes
            | Fault::Sealing => io::ErrorKind::InvalidData,
        };
        Self::new(kind, fault)
    }
}
