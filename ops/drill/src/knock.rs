//! One login by hand, after a question to `enter`: whether somebody is let in, and why not.

use std::time::Duration;

use anyhow::Context;
use proto::enter::Offer;
use proto::frame::{Credential, Downlink, Join, LoginOk, Path, Refused};
use proto::id::RoomId;
use sdk::raw::{self, Raw};

/// One step of the connection.
const STEP_MAX: Duration = Duration::from_secs(5);

/// The link refused a login.
#[derive(Clone, Debug, thiserror::Error)]
#[error("refused as {}", .0.code.name())]
pub struct Shut(pub Refused);

/// Logs in and joins a room on the push path.
///
/// # Errors
/// [`Shut`] when the link refuses; otherwise what went wrong on the way.
pub async fn knock(offer: &Offer, room: &RoomId) -> anyhow::Result<(Raw, LoginOk)> {
    let mut raw = raw::connect(&offer.address, None, STEP_MAX).await?;
    let join = Join { room: room.clone(), path: Path::Push, resume: None };
    raw.login(Credential::Token(offer.token.clone()), None, vec![join]).await?;
    loop {
        match raw.recv().await.context("the login was not answered")? {
            Downlink::Welcome(_) => {}
            Downlink::LoginOk(login_ok) => return Ok((raw, login_ok)),
            Downlink::Refused(refused) => return Err(Shut(refused).into()),
            other @ (Downlink::Batch(_)
            | Downlink::Seal(_)
            | Downlink::Skipped { .. }
            | Downlink::Ack(_)
            | Downlink::Control(_)
            | Downlink::Joined(_)
            | Downlink::Pong { .. }
            | Downlink::Close(_)) => anyhow::bail!("the login was answered: {other:?}"),
        }
    }
}
