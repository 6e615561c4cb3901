//! Why `enter` said no, as a problem document.

use auth_core::ticket::TicketRefusal;
use axum::http::StatusCode;
use kit::problem::Problem;
use proto::time::Wall;

/// When to ask again after something inside was missing.
const RETRY_AFTER_MS: u32 = 1_000;

/// Why `enter` said no.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Not the JSON that it should be.
    #[error("the question is not the JSON that it should be")]
    Malformed,
    /// More bytes than a question has.
    #[error("the question is too long")]
    TooLarge,
    /// The question did not come in time.
    #[error("the question took too long to come")]
    Late,
    /// The device has no name within the grammar.
    #[error("the device's name has 1 to 32 printable characters")]
    Device,
    /// Not a key of any app.
    #[error("the API key is unknown")]
    ApiKey,
    /// Only business servers speak for others.
    #[error("only a business server with its API key may ask this")]
    ApiKeyMissing,
    /// A business server speaks for its own app.
    #[error("the ticket is of another app than the API key")]
    OtherApp,
    /// One address asks too often.
    #[error("too many questions from this address")]
    RateLimited {
        /// When to try again.
        retry_after_ms: u32,
    },
    /// All together ask too often.
    #[error("there are too many questions at the moment")]
    Busy {
        /// When to try again: another moment for everybody.
        retry_after_ms: u32,
    },
    /// More than the configured number of questions at once.
    #[error("{questions} questions are more than {max}")]
    BatchTooLong {
        /// Questions found.
        questions: usize,
        /// Questions allowed.
        max: u32,
    },
    /// The policy, or renewing, asks for one.
    #[error("this room, or renewing, asks for a ticket")]
    TicketRequired,
    /// The ticket is not good.
    #[error(transparent)]
    Ticket(#[from] TicketRefusal),
    /// The policy asks for more.
    #[error("the room is for verified accounts")]
    NotVerified,
    /// The policy keeps minors out.
    #[error("the room is not for minors")]
    MinorsRefused,
    /// Nothing to renew for.
    #[error("no node under lease has this address")]
    UnknownAddress,
    /// Masters or the epoch are missing.
    #[error("there are no keys to mint tokens with")]
    NoKeys,
    /// The operating system gives no random numbers.
    #[error("there are no random numbers to mint tokens with")]
    NoRandom,
    /// Kicks may be missing.
    #[error("the latest kicks are not known here")]
    Behind,
    /// The fleet is full or away, and nobody serves segments.
    #[error("there is neither an address nor a segment base to go to")]
    Nowhere {
        /// When to try again: another moment for everybody.
        retry_after_ms: u32,
    },
    /// Not one of the configured keys.
    #[error("an operator key is needed as a bearer token")]
    Operator,
    /// Not a path of ours.
    #[error("there is nothing at this path")]
    NotFound,
    /// Not a method of that path.
    #[error("this path takes another method")]
    Method,
}

impl Refusal {
    /// The stable word for programs and metrics.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::Late => "late",
            Self::Device => "device",
            Self::ApiKey => "api_key_unknown",
            Self::ApiKeyMissing => "api_key_missing",
            Self::OtherApp => "other_app",
            Self::RateLimited { .. } => "rate_limited",
            Self::Busy { .. } => "busy",
            Self::BatchTooLong { .. } => "batch_too_long",
            Self::TicketRequired => "ticket_required",
            Self::Ticket(refusal) => refusal.code(),
            Self::NotVerified => "not_verified",
            Self::MinorsRefused => "minors_refused",
            Self::UnknownAddress => "unknown_address",
            Self::NoKeys => "no_keys",
            Self::NoRandom => "no_random",
            Self::Behind => "behind",
            Self::Nowhere { .. } => "nowhere",
            Self::Operator => "unauthorized",
            Self::NotFound => "not_found",
            Self::Method => "method",
        }
    }

    pub(crate) fn problem(&self, now: Wall) -> Problem {
        let status = StatusCode::from_u16(self.status());
        let status = status.expect("the statuses below and those of tickets are valid");
        Problem::new(status, self.code(), self.to_string())
            .retry_after_ms(self.retry_after_ms())
            .server_ms(now)
    }

    const fn status(&self) -> u16 {
        match self {
            Self::Malformed | Self::Device => 400,
            Self::ApiKey | Self::TicketRequired | Self::Operator => 401,
            Self::ApiKeyMissing | Self::OtherApp | Self::NotVerified | Self::MinorsRefused => 403,
            Self::UnknownAddress | Self::NotFound => 404,
            Self::Method => 405,
            Self::Late => 408,
            Self::TooLarge | Self::BatchTooLong { .. } => 413,
            Self::RateLimited { .. } => 429,
            Self::Ticket(refusal) => refusal.status(),
            Self::Busy { .. }
            | Self::NoKeys
            | Self::NoRandom
            | Self::Behind
            | Self::Nowhere { .. } => 503,
        }
    }

    /// When to try again; 0: never like this.
    pub(super) const fn retry_after_ms(&self) -> u32 {
        match self {
            Self::RateLimited { retry_after_ms }
            | Self::Busy { retry_after_ms }
            | Self::Nowhere { retry_after_ms } => *retry_after_ms,
            Self::Late | Self::NoKeys | Self::NoRandom | Self::Behind => RETRY_AFTER_MS,
            Self::Malformed
            | Self::TooLarge
            | Self::Device
            | Self::ApiKey
            | Self::ApiKeyMissing
            | Self::OtherApp
            | Self::BatchTooLong { .. }
            | Self::TicketRequired
            | Self::Ticket(_)
            | Self::NotVerified
            | Self::MinorsRefused
            | Self::UnknownAddress
            | Self::Operator
            | Self::NotFound
            | Self::Method => 0,
        }
    }
}
