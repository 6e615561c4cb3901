//! What a client offers, and whether a Welcome keeps to it.
//!
//! Over a channel with an exporter both frames are covered by the binder and by LoginOk's confirm,
//! so nobody on the way can have changed them; these checks are for a link that answers wrongly,
//! and for channels without an exporter.

use proto::frame::{Codec, Hello, PROTO_VERSION, Welcome};
use proto::suite::Suite;

/// A Welcome that is not an answer to what was offered.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Disagreement {
    /// A version outside the range.
    #[error("version {0} was not offered")]
    Proto(u16),
    /// The link sees another protection than there is: somebody is in between.
    #[error("the link sees suite {0}, which this channel is not")]
    Suite(String),
    /// A codec that cannot be read.
    #[error("codec {0} was not offered")]
    Codec(String),
    /// The answer to another Hello.
    #[error("the answer is to another offer")]
    Nonce,
}

/// What this SDK can over a channel that is one of `suites`.
#[must_use]
pub fn hello(suites: &[Suite], nonce: u64) -> Hello {
    Hello {
        sdk: "barrage-rust".to_owned(),
        sdk_version: env!("CARGO_PKG_VERSION").to_owned(),
        proto_min: PROTO_VERSION,
        proto_max: PROTO_VERSION,
        suites: suites.iter().map(|it| it.name().to_owned()).collect(),
        codecs: Codec::ALL.map(|it| it.name().to_owned()).into(),
        nonce,
    }
}

/// Refuses an answer that is not within the offer.
pub(crate) fn check(hello: &Hello, welcome: &Welcome) -> Result<(), Disagreement> {
    if !(hello.proto_min..=hello.proto_max).contains(&welcome.proto) {
        return Err(Disagreement::Proto(welcome.proto));
    }
    if !hello.suites.contains(&welcome.suite) {
        return Err(Disagreement::Suite(welcome.suite.clone()));
    }
    if !hello.codecs.contains(&welcome.codec) {
        return Err(Disagreement::Codec(welcome.codec.clone()));
    }
    if welcome.nonce != hello.nonce {
        return Err(Disagreement::Nonce);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proto::time::Wall;

    use super::*;

    #[test]
    fn an_answer_within_the_offer_passes() {
        assert_eq!(check(&hello(&[Suite::Tls], 7), &welcome()), Ok(()));
        assert_eq!(check(&hello(&[Suite::Plain, Suite::Tls], 7), &welcome()), Ok(()));
    }

    #[test]
    fn anything_that_was_not_offered_is_refused() {
        let hello = hello(&[Suite::Tls], 7);
        let refusal = |change: fn(&mut Welcome)| {
            let mut welcome = welcome();
            change(&mut welcome);
            check(&hello, &welcome).unwrap_err()
        };

        assert_eq!(refusal(|it| it.proto = 0), Disagreement::Proto(0));
        assert_eq!(refusal(|it| it.proto = PROTO_VERSION + 1), Disagreement::Proto(2));
        assert_eq!(refusal(|it| it.suite = "P".to_owned()), Disagreement::Suite("P".to_owned()));
        assert_eq!(refusal(|it| it.suite = "G".to_owned()), Disagreement::Suite("G".to_owned()));
        let zstd = || "zstd".to_owned();
        assert_eq!(refusal(|it| it.codec = "zstd".to_owned()), Disagreement::Codec(zstd()));
        assert_eq!(refusal(|it| it.nonce = 8), Disagreement::Nonce);
    }

    fn welcome() -> Welcome {
        Welcome {
            proto: PROTO_VERSION,
            suite: "T".to_owned(),
            codec: Codec::Identity.name().to_owned(),
            heartbeat_ms: 25_000,
            silence_ms: 60_000,
            frame_bytes_max: 65_536,
            upgrade: false,
            server_ms: Wall(1),
            nonce: 7,
        }
    }
}
