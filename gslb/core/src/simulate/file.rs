//! What the two files say.

use proto::address::Carrier;
use serde::Deserialize;

use super::{Invalid, STEPS_MAX};
use crate::fleet::NODES_MAX;
use crate::policy::Policy;

/// The fleet, and how viewers are shared out over it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// As in the gslb's configuration.
    #[serde(default)]
    pub policy: Policy,
    /// Nodes that are alike.
    pub nodes: Vec<Nodes>,
}

/// Nodes that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// For events.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Where they stand.
    pub region: String,
    /// Machine rooms, by turns.
    pub machine_rooms: Vec<String>,
    /// Each node has an address on each of these.
    pub carriers: Vec<Carrier>,
    /// Sessions that a node takes at most.
    pub sessions_max: u32,
    /// Sessions at the start.
    #[serde(default)]
    pub sessions: u32,
    /// Logins a second that it can do.
    pub handshakes_per_s_max: u32,
    /// Bits a second out for each session.
    #[serde(default)]
    pub session_bps: u64,
}

/// Who comes, and what happens meanwhile.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivalsFile {
    /// Milliseconds to play.
    pub run_ms: u64,
    /// gslb processes, which viewers ask by turns.
    #[serde(default = "one")]
    pub replicas: u32,
    /// Milliseconds between two snapshots.
    #[serde(default = "snapshot_ms")]
    pub snapshot_ms: u64,
    /// Milliseconds between two reports of a node.
    #[serde(default = "report_ms")]
    pub report_ms: u64,
    /// Milliseconds from a report to the snapshot that knows it.
    #[serde(default)]
    pub delay_ms: u64,
    /// Milliseconds from an answer to the connection.
    #[serde(default = "connect_ms")]
    pub connect_ms: u64,
    /// Milliseconds until a viewer tries the next address.
    #[serde(default = "patience_ms")]
    pub patience_ms: u64,
    /// Milliseconds between two rows of the outcome.
    #[serde(default = "row_ms")]
    pub row_ms: u64,
    /// Who comes.
    pub arrivals: Vec<Arrivals>,
    /// What happens meanwhile.
    #[serde(default)]
    pub events: Vec<Event>,
}

/// Viewers who come at a steady rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Milliseconds from the start.
    pub from_ms: u64,
    /// Milliseconds from the start; not including it.
    pub until_ms: u64,
    /// So many a second.
    pub per_s: u64,
    /// Where they are.
    pub region: String,
    /// Whose network they are on.
    pub carrier: Carrier,
}

/// Something happens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Milliseconds from the start.
    pub at_ms: u64,
    /// What.
    pub act: Act,
    /// To whom, by name; nobody where it happens to the load table.
    #[serde(default)]
    pub nodes: String,
    /// To so many of them, the first ones; 0: all.
    #[serde(default)]
    pub count: u32,
}

/// What happens.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// The nodes stop without a word and lose their sessions.
    Stop,
    /// The nodes start, empty.
    Start,
    /// The nodes take no more viewers.
    Drain,
    /// The nodes are attacked.
    Besiege,
    /// The attack is over.
    Relieve,
    /// No report is heard any more.
    TableAway,
    /// Reports are heard again.
    TableBack,
}

impl FleetFile {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let nodes: u64 = self.nodes.iter().map(|it| u64::from(it.count)).sum();
        if nodes == 0 || nodes > NODES_MAX as u64 {
            return Err(Invalid::Nodes);
        }
        let lacking = |it: &&Nodes| {
            it.machine_rooms.is_empty()
                || it.carriers.is_empty()
                || it.carriers.len() > Carrier::ALL.len()
        };
        let lacking = self.nodes.iter().find(lacking);
        lacking.map_or(Ok(()), |it| Err(Invalid::Group(it.name.clone())))
    }
}

impl ArrivalsFile {
    pub(super) fn check(&self, fleet: &FleetFile) -> Result<(), Invalid> {
        let least = self.snapshot_ms.min(self.report_ms).min(self.row_ms);
        if least == 0 || self.replicas == 0 || self.run_ms / self.snapshot_ms > STEPS_MAX {
            return Err(Invalid::Length);
        }
        let about_nodes = |it: &&Event| !matches!(it.act, Act::TableAway | Act::TableBack);
        let unknown = |it: &&Event| fleet.nodes.iter().all(|nodes| nodes.name != it.nodes);
        let wrong = self.events.iter().filter(about_nodes).find(unknown);
        wrong.map_or(Ok(()), |it| Err(Invalid::Unknown(it.nodes.clone())))
    }
}

const fn one() -> u32 {
    1
}

const fn snapshot_ms() -> u64 {
    5
}

const fn report_ms() -> u64 {
    100
}

const fn connect_ms() -> u64 {
    100
}

const fn patience_ms() -> u64 {
    1_000
}

const fn row_ms() -> u64 {
    1_000
}
