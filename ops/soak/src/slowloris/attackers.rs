//! A process full of attackers: they come from elsewhere, so what they cost themselves is not to
//! stand in the way of the honest.

use kit::clock::Clock;
use kit::seed::derive;
use kit::task::Tasks;
use proto::enter::Offer;
use proto::id::RoomId;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::attacker::{Attacker, Phase};
use crate::aside::{self, Aside};

/// The first argument of this executable when it is to be attackers.
pub(crate) const NAME: &str = "slowloris-attackers";

/// What the process is told, in one line.
#[derive(Deserialize, Serialize)]
pub(super) struct Orders {
    pub(super) room: RoomId,
    /// Of what they draw.
    pub(super) seed: u64,
    pub(super) each: Vec<(Phase, Offer)>,
}

/// Starts the process, behind all others in the kernel's queue.
pub(super) async fn start(orders: &Orders) -> anyhow::Result<Aside> {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(std::env::current_exe()?).arg(NAME);
    Aside::start(command, orders).await
}

/// Is the attackers' process, until its input ends.
///
/// # Errors
/// When orders make no sense or there are too few descriptors.
pub(crate) async fn run() -> anyhow::Result<()> {
    kit::process::raise_descriptors()?;
    let (orders, mut input) = aside::orders::<Orders>().await?;
    let clock = Clock::system();
    let mut attackers = Tasks::default();
    for (number, (phase, offer)) in orders.each.into_iter().enumerate() {
        let rng = SmallRng::seed_from_u64(derive(orders.seed, &format!("attacker-{number}")));
        let room = orders.room.clone();
        let attacker = Attacker { clock: clock.clone(), room, phase, offer, rng };
        attackers.spawn("attacker", attacker.run());
    }
    while input.next_line().await?.is_some() {}
    Ok(())
}
