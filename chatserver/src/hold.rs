//! Comments that rooms hold back, until their time is over.

use std::sync::Arc;
use std::time::Duration;

use chatserver_core::shard::Input;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::site::Site;

/// How often it is looked whose time is over: so much longer than its room says a comment waits.
const LOOK: Duration = Duration::from_millis(50);

/// Lets go on what was held back, until `judged`; then gives the rest back to its senders.
pub(crate) async fn run(
    site: Arc<Site>,
    desk: Arc<Desk>,
    judged: CancellationToken,
) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            biased;
            () = judged.cancelled() => break,
            () = site.clock.sleep(LOOK) => {}
        }
        if desk.holds() {
            desk.act(vec![Input::Release]).await;
        }
    }
    desk.act(vec![Input::GiveBack]).await;
    Ok(())
}
