//! The chatserver's configuration.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::ensure;
use chatserver_core::id::SHARDS_MAX;
use proto::id::{NodeId, UnitId};
use serde::{Deserialize, Serialize};

use crate::evidence::EvidenceConfig;
use crate::outward::OutwardConfig;
use crate::quota::{self, QuotaConfig};
use crate::review::{self, ReviewConfig};
use crate::store::CopiesConfig;
use crate::webhook::{self, WebhookConfig};

/// What one chatserver is told.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// This process; no other of the platform has the same number.
    pub node: NodeId,
    /// The slice whose viewers it serves.
    pub unit: UnitId,
    /// Its part of item ids, 0 to 1023. Two chatservers with the same shard would give the same
    /// ids to different comments.
    pub shard: u16,
    /// Where the business API listens. It has no encryption of its own: leave it on loopback, or
    /// put a proxy that has in front of it.
    pub listen: SocketAddr,
    /// Connections to the business API at a time, about 20 KiB each.
    pub connections_max: u32,
    /// Requests that one app may make of this process a second, whatever they ask for; more get 429
    /// with the time to wait. One costs 50 to 200 microseconds of a core, the replacement of a long
    /// list of words half a second: lower it where apps share a process.
    pub app_requests_per_s: u32,
    /// Requests of one app in a burst.
    pub app_requests_burst: u32,
    /// Rooms it knows, about 1 KiB each without senders, closed ones for an hour unless another one
    /// needs the place. Beyond it no room can be made, and what is said about others is ignored and
    /// counted.
    pub rooms_max: u32,
    /// Rooms that one app may have, closed ones included.
    pub app_rooms_max: u32,
    /// What one app may have of mutes, bans, kicks, exclusions, people of whom rooms say what they
    /// are, notices, attributes and counters, those of closed rooms included. Each of them, and each
    /// room, of all apps, takes a key of `control`: their sum stays below the `keys_max` of the bus,
    /// which otherwise tells nobody of new ones.
    pub app_acts_max: u32,
    /// Senders remembered in each room for a minute after their last comment, about 500 bytes
    /// each. Beyond it new senders are refused as `room_busy`.
    pub senders_max: u32,
    /// Admitted comments whose senders may still be told that they were shed or merged, about 300
    /// bytes each; they are remembered for a minute. Beyond it the oldest are not told.
    pub asked_max: u32,
    /// Items of each room that are kept for `GET /v1/rooms/{room}/items`: what it showed last, about
    /// 200 bytes each, of the 2,000 rooms in which something was shown last. 0 keeps none.
    pub recent_items_max: u32,
    /// Bytes of comments that are kept for ten minutes, in memory, with 100 bytes for each: when a
    /// list of words changes, those that hold a refused word are recalled. Ten rooms that show 50 a
    /// second fill the default; beyond it the oldest are forgotten, and stay. 0 keeps none, and
    /// nothing is recalled by rule.
    pub sweep_bytes_max: u32,
    /// Chatservers that take comments, all units together, at least. A room's comments are shared
    /// out among them; one that does not hear of the others keeps to its part of that many. Too
    /// few, and rooms get more than they show while the quota is away; too many, and they get less.
    pub nodes_min: u32,
    /// Longest time a session goes without telling that it is there, in seconds: the links'
    /// `life_ms_max`. Who is in a single-device room is forgotten a little later.
    pub session_life_s_max: u32,
    /// A closed room is forgotten after so long, in days, with its mutes, roles and words; its name
    /// is free again then.
    pub closed_room_days: u32,
    /// How long it is remembered who did what, in days: about 300 bytes an act in the room store.
    pub audit_days: u32,
    /// Percentage of a room's budget that the notice lane is guaranteed, in rooms that do not say it
    /// themselves; as the broadcaster's.
    pub notice_percent: u8,
    /// The same for the high gift lane.
    pub high_gift_percent: u8,
    /// The same for the low gift lane.
    pub low_gift_percent: u8,
    /// How far ahead a lane takes gifts and notices, in seconds of its guaranteed share. What
    /// cannot be shown within it is refused before it is acknowledged.
    pub lane_burst_s: u32,
    /// Apps that may have or ask more, or less, than the others.
    pub quota: Vec<QuotaConfig>,
    /// Who is asked about comments, for each app that wants it.
    pub review: Vec<ReviewConfig>,
    /// Where apps hear what happens in their rooms.
    pub webhook: Vec<WebhookConfig>,
    /// How business servers are called.
    pub outward: OutwardConfig,
    /// Copies of the room store while the system runs.
    pub copies: CopiesConfig,
    /// Where comments are put down with their senders and verdicts.
    pub evidence: EvidenceConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            node: NodeId(3),
            unit: UnitId(1),
            shard: 0,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8082)),
            connections_max: 1000,
            app_requests_per_s: 5000,
            app_requests_burst: 10_000,
            rooms_max: 50_000,
            app_rooms_max: 50_000,
            app_acts_max: 40_000,
            senders_max: 100_000,
            asked_max: 200_000,
            recent_items_max: 100,
            sweep_bytes_max: 64 * 1024 * 1024,
            nodes_min: 1,
            session_life_s_max: 75 * 60,
            closed_room_days: 30,
            audit_days: 400,
            notice_percent: 10,
            high_gift_percent: 30,
            low_gift_percent: 20,
            lane_burst_s: 30,
            quota: Vec::new(),
            review: Vec::new(),
            webhook: Vec::new(),
            outward: OutwardConfig::default(),
            copies: CopiesConfig::default(),
            evidence: EvidenceConfig::default(),
        }
    }
}

/// Fewest askers: one turn of the uplink may admit as many.
const ASKED_MIN: u32 = 20_000;
/// Most items of one answer.
const RECENT_ITEMS_MAX: u32 = 1000;

impl Config {
    /// Checks what the types do not.
    ///
    /// # Errors
    /// Says which value, and why.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(self.shard < SHARDS_MAX, "shard must be less than {SHARDS_MAX}");
        ensure!(self.asked_max >= ASKED_MIN, "asked_max must be at least {ASKED_MIN}");
        ensure!(
            self.rooms_max > 0 && self.senders_max > 0,
            "rooms_max and senders_max must be > 0"
        );
        let percents =
            [self.notice_percent, self.high_gift_percent, self.low_gift_percent].map(u32::from);
        ensure!(percents.iter().sum::<u32>() <= 100, "the lanes' percentages exceed 100");
        ensure!(self.app_acts_max > 0, "app_acts_max must be > 0");
        let requests = [self.app_requests_per_s, self.app_requests_burst];
        ensure!(
            requests.iter().all(|it| *it > 0),
            "app_requests_per_s and app_requests_burst must be > 0"
        );
        ensure!(
            self.recent_items_max <= RECENT_ITEMS_MAX,
            "recent_items_max must be at most {RECENT_ITEMS_MAX}"
        );
        ensure!(self.lane_burst_s > 0, "lane_burst_s must be > 0");
        let days = [self.closed_room_days, self.audit_days];
        ensure!(days.iter().all(|it| *it > 0), "closed_room_days and audit_days must be > 0");
        ensure!(self.nodes_min > 0, "nodes_min must be > 0");
        self.outward.check()?;
        self.copies.check()?;
        self.evidence.check()?;
        quota::check(&self.quota)?;
        review::check(&self.review)?;
        webhook::check(&self.webhook)
    }
}
