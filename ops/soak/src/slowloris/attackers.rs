//! A process full of attackers: they come from elsewhere, so what they cost themselves is not to
//! stand in the way of the honest.

use std::process::Stdio;

use anyhow::Context;
use kit::clock::Clock;
use kit::seed::derive;
use kit::task::Tasks;
use proto::enter::Offer;
use proto::id::RoomId;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use super::attacker::{Attacker, Phase};

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

/// The process, as the run has it.
pub(super) struct Attackers {
    process: Child,
}

impl Attackers {
    /// Starts it, behind all others in the kernel's queue.
    pub(super) async fn start(orders: &Orders) -> anyhow::Result<Self> {
        let mut process = Command::new("nice")
            .args(["-n", "19"])
            .arg(std::env::current_exe()?)
            .arg(NAME)
            .stdin(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the attackers did not start")?;
        let input = process.stdin.as_mut().context("the attackers have no input")?;
        let line = serde_json::to_string(orders)?;
        input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(Self { process })
    }

    /// Ends them all at once.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.process.kill().await.context("the attackers did not end")
    }
}

/// Is the attackers' process, until its input ends.
///
/// # Errors
/// When orders make no sense or there are too few descriptors.
pub(crate) async fn run() -> anyhow::Result<()> {
    kit::process::raise_descriptors()?;
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    let orders = input.next_line().await?.context("there are no orders")?;
    let orders: Orders = serde_json::from_str(&orders)?;
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
