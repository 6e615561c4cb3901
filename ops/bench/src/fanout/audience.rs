//! The receivers' process, as seen from the measured side.

use super::RECEIVER;
use super::receiver::{HAVE_IT, IN, Orders, Report};
use crate::aside::Aside;

/// The receivers' process; it ends when this is dropped.
pub(crate) struct Audience(Aside);

impl Audience {
    /// Starts it, and gives it its orders.
    pub(crate) async fn start(orders: &Orders) -> anyhow::Result<Self> {
        Ok(Self(Aside::start(RECEIVER, orders).await?))
    }

    /// Waits until all are in.
    pub(crate) async fn are_in(&mut self) -> anyhow::Result<()> {
        self.0.expect(IN).await
    }

    /// Waits until all have the next frame.
    pub(crate) async fn have_it(&mut self) -> anyhow::Result<()> {
        self.0.expect(HAVE_IT).await
    }

    /// Lets them go, and asks what they got.
    pub(crate) async fn leave(self) -> anyhow::Result<Report> {
        Ok(serde_json::from_str(&self.0.leave().await?)?)
    }
}
