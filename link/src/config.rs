//! What a link node is told at start.

mod entry;
mod listener;
mod siege;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::secret::Secret;
use kit::proxy::Proxies;
use proto::address::Transport;
use proto::id::{NodeId, UnitId};
use serde::{Deserialize, Serialize};

use crate::workers::Worker;

pub use entry::Entry;
pub use listener::{Binder, ListenerConfig};
pub use siege::Siege;

/// One link node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// This node's number; its `reply` partition follows from it.
    pub node: NodeId,
    /// Processes that do the work of this node, at most 16; 0: the one that reads this. More than
    /// one, because a process has only so many descriptors: each worker has these settings for
    /// itself, its bounds, rates and caches, so that a machine of N workers takes N times
    /// `sessions_max`. Worker 0 has the ports of `listeners`, each next one as many higher as there
    /// are listeners, and a folder `worker-N` in `data`. Together the addresses are 16 at most.
    pub workers: u8,
    /// Which of them this process is.
    #[serde(skip)]
    pub worker: Option<Worker>,
    /// Slice it belongs to.
    pub unit: UnitId,
    /// Where it stands; loads are packed by region.
    pub region: String,
    /// What it proves itself with, to auth and to collectors, and what seals the keys it keeps: at
    /// least 32 bytes of text.
    pub secret: Secret,
    /// Folder of `link-keys.sealed`: this node's last keys, with which it takes logins after a
    /// restart while the auth service is away. A file that others can read is refused at start.
    /// Also of `used-tokens`, 20 bytes for each login of four minutes, so that a restart forgets no
    /// single-use token: the folder must be there again after it, and be this node's alone.
    pub data: PathBuf,
    /// Where viewers connect.
    pub listeners: Vec<ListenerConfig>,
    /// Whether `tcp` and `ws` may listen on other addresses than loopback: only behind a
    /// terminator that nobody can go around.
    pub plain_anywhere: bool,
    /// Networks of proxies that pass on connections over TCP, such as `10.1.0.0/16`. Each of their
    /// connections must begin with a PROXY header of version 2, as HAProxy's with `send-proxy-v2`,
    /// or else, at `ws` listeners, with a request whose `X-Forwarded-For` ends with the viewer's
    /// address, as nginx's: `ops/deploy` has samples. Rates, places and sieges then count for the
    /// viewer and not for the proxy, on loopback too. Whoever can connect from these networks can
    /// take any address, so they must be the proxies' alone. Empty: connections are their peers'.
    pub trusted_proxies: Proxies,
    /// Collectors of load reports, `host:port`; every one gets every report.
    pub collectors: Vec<String>,
    /// Least time between two load reports, in milliseconds.
    pub report_ms_min: u32,
    /// Most time between two load reports, in milliseconds; gslb drops a node after some of them.
    /// At most 500 with workers, the last word of each of which counts for a second.
    pub report_ms_max: u32,
    /// The auth service, `https://host:port`.
    pub auth_url: String,
    /// How old this node's knowledge of `control` may be when it lets somebody in, in milliseconds;
    /// at least 100. While the bus is away for longer, logins are told to come back, because a kick
    /// may have been told meanwhile. Higher lets viewers in for longer without the bus, and kicked
    /// ones with them. The end of `control` is asked for four times in this time, and in a second.
    pub control_ms_max: u32,
    /// Whether frames of rooms are compressed for clients that can expand them: a quarter to two
    /// thirds fewer bytes. It costs some ten microseconds of a core for a room and flush, however
    /// many sessions there are, and the ring holds these frames in both forms. Off, everybody gets
    /// them as they are; to be switched off where cores are dearer than traffic.
    pub compress: bool,
    /// Whether TLS sessions are taken from rustls after their handshake: their records are then
    /// sealed and opened by code of this project with the keys that rustls agreed upon, and one
    /// costs 256 bytes in place of 8 KiB. Off, rustls does all of TLS; to be
    /// switched off if that code is found to be at fault. National and QUIC sessions are what they
    /// are.
    pub lean_tls: bool,
    /// Logged-in sessions; beyond, a login is told to come back. One costs about 2 KiB, with TLS
    /// too, 50 KiB over QUIC and 12 KiB with national suites; the kernel's 4 KiB, and one
    /// descriptor but over QUIC.
    pub sessions_max: u32,
    /// Logins a second that this node says it can do: gslbs send no more viewers. 0 says nothing,
    /// and they take `sessions_max` for it. One core does 2,000 to 3,000 with TLS, and a process
    /// with more cores about as many more for each.
    pub handshakes_per_s_max: u32,
    /// Connections before login; beyond, they are closed at once. One costs at most 16 KiB. One
    /// address holds no more than one part in `siege.sites_min` of them: several hundred let a NAT
    /// of thousands in within seconds. Reserve listeners have as many places of their own.
    pub handshakes_max: u32,
    /// Connections a second from one address in the long run; 0 sets no limit, neither to those it
    /// holds. Loopback has none.
    pub address_handshakes_per_s: u32,
    /// Connections at once from one address; a provider's NAT hides thousands of viewers.
    pub address_handshakes_burst: u32,
    /// Addresses whose rates are remembered, about 100 bytes each; beyond, new ones are refused.
    pub addresses_max: usize,
    /// Bytes that may wait for one session, 64 KiB of sockets not counted; beyond, it skips.
    pub outbox_bytes_max: usize,
    /// Bytes of recent frames kept of one room, in two framings.
    pub ring_bytes_max: usize,
    /// How long recent frames are kept, in milliseconds: so long a viewer may be away and lose
    /// nothing.
    pub ring_ms: u32,
    /// Rooms known at a time.
    pub rooms_max: usize,
    /// How often clients are asked to speak, in milliseconds.
    pub heartbeat_ms: u32,
    /// Silence after which a session is closed, in milliseconds; more than two heartbeats.
    pub silence_ms_max: u32,
    /// Time from accepting a connection to the end of its login, in milliseconds. Each step has
    /// half of it.
    pub login_ms_max: u32,
    /// Time in which a session must take some bytes, in milliseconds; then it is closed as slow.
    pub write_ms_max: u32,
    /// Shortest life of a session, in milliseconds. Lives differ, so that viewers who came in a
    /// rush do not come back in one.
    pub life_ms_min: u32,
    /// Longest life of a session, in milliseconds.
    pub life_ms_max: u32,
    /// Frames a second that a session may send in the long run. A frame counts as one for each 4 KiB
    /// that it begins, so this bounds the bytes too. WebSocket pings and pongs are frames as well.
    pub frames_per_s: u32,
    /// Frames that a session may send at once.
    pub frames_burst: u32,
    /// Comments a second, of all sessions, that this node passes on, and at once; beyond, senders
    /// are told `busy`. Chatservers judge each of them.
    pub comments_per_s: u32,
    /// How long flushes are gathered before sessions are woken, in milliseconds: longer saves
    /// writes, shorter saves latency.
    pub flush_ms: u32,
    /// How long comments are gathered into one record, in milliseconds.
    pub uplink_ms: u32,
    /// Acts that may wait for the bus in one partition; beyond, senders are told `busy`.
    pub uplink_entries_max: usize,
    /// Leaves told to chatservers a second.
    pub leaves_per_s: u32,
    /// Leaves that may wait; beyond, they are not told.
    pub leaves_max: usize,
    /// Single-use tokens remembered, about 70 bytes each; beyond, logins are refused.
    pub replays_max: usize,
    /// Kicks, and bans, remembered, about 200 bytes each.
    pub revocations_max: usize,
    /// Browser origins that may open a WebSocket, exactly as browsers send them, such as
    /// `https://live.example`. Empty: pages on loopback only. Programs send no origin and may
    /// always try.
    pub origins: Vec<String>,
    /// Over how long sessions are sent away when the node drains, in milliseconds; longer, if the
    /// nodes that take them in need longer.
    pub drain_ms: u32,
    /// Over how long at most, in milliseconds: then all that are left are sent to `enter` at once.
    /// Whoever ends the process should wait for some 20 s more. Raise it where full nodes drain.
    pub drain_ms_max: u32,
    /// How long a node that drains waits for a gslb to say where its sessions can go on, in
    /// milliseconds; they are sent to `enter` if none does. 0 where no gslb that collects is there.
    pub drain_addresses_ms_max: u32,
    /// How many may come in.
    pub entry: Entry,
    /// When the node counts as attacked.
    pub siege: Siege,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            node: NodeId(1),
            workers: 0,
            worker: None,
            unit: UnitId(0),
            region: "local".to_owned(),
            secret: Secret::default(),
            data: PathBuf::from("data/link"),
            listeners: vec![
                ListenerConfig::plain(7401, Transport::Tcp),
                ListenerConfig::plain(7402, Transport::Ws),
            ],
            plain_anywhere: false,
            trusted_proxies: Proxies::default(),
            collectors: Vec::new(),
            report_ms_min: 5,
            report_ms_max: 100,
            auth_url: String::new(),
            control_ms_max: 1_000,
            compress: true,
            lean_tls: true,
            sessions_max: 15_000,
            handshakes_per_s_max: 2_000,
            handshakes_max: 2_000,
            address_handshakes_per_s: 200,
            address_handshakes_burst: 2_000,
            addresses_max: 200_000,
            outbox_bytes_max: 256 * 1024,
            ring_bytes_max: 1024 * 1024,
            ring_ms: 60_000,
            rooms_max: 10_000,
            heartbeat_ms: 25_000,
            silence_ms_max: 60_000,
            login_ms_max: 10_000,
            write_ms_max: 10_000,
            life_ms_min: 45 * 60_000,
            life_ms_max: 75 * 60_000,
            frames_per_s: 20,
            frames_burst: 40,
            comments_per_s: 50_000,
            flush_ms: 2,
            uplink_ms: 5,
            uplink_entries_max: 20_000,
            leaves_per_s: 20_000,
            leaves_max: 200_000,
            replays_max: 1_000_000,
            revocations_max: 100_000,
            origins: Vec::new(),
            drain_ms: 1_000,
            drain_ms_max: 5_000,
            drain_addresses_ms_max: 500,
            entry: Entry::default(),
            siege: Siege::default(),
        }
    }
}

impl Config {
    /// Refuses what cannot work, before anything is bound.
    ///
    /// # Errors
    /// Says which value, and why.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(self.life_ms_min <= self.life_ms_max, "life_ms_min is more than life_ms_max");
        ensure!(self.control_ms_max >= 100, "control_ms_max is less than 100");
        ensure!(self.report_ms_min <= self.report_ms_max, "report_ms_min is over report_ms_max");
        ensure!(
            self.silence_ms_max / 2 >= self.heartbeat_ms,
            "silence_ms_max must be at least two heartbeats"
        );
        self.check_workers()?;
        ensure!(self.drain_ms <= self.drain_ms_max, "drain_ms is more than drain_ms_max");
        ensure!(self.comments_per_s > 0, "comments_per_s of 0 lets nobody say anything");
        self.trusted_proxies.check().context("trusted_proxies")?;
        self.entry.check()?;
        self.siege.check(self.handshakes_max)?;
        for listener in &self.listeners {
            let ListenerConfig { listen, transport, .. } = listener;
            ensure!(
                listener.is_tls() || self.plain_anywhere || listen.ip().is_loopback(),
                "{} on {listen} would be readable by others; set plain_anywhere to allow it",
                transport.name()
            );
            ensure!(
                listener.clients_can_bind() || !listener.must_bind(),
                "clients of {} on {listen} cannot bind their logins: set binder = \"none\"",
                transport.name()
            );
        }
        Ok(())
    }

    /// Places before login that one address may hold.
    pub(crate) fn site_places_max(&self) -> u32 {
        match self.address_handshakes_per_s {
            0 => self.handshakes_max,
            _ => (self.handshakes_max / self.siege.sites_min).max(1),
        }
    }
}

/// Milliseconds of the configuration as a duration.
pub(crate) fn ms(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_pass() {
        Config::default().check().unwrap();
    }

    #[test]
    fn nobody_is_asked_for_a_binder_who_cannot_give_one() {
        let mut config = Config::default();
        config.listeners[0].transport = Transport::Wss;
        config.listeners[0].binder = Binder::Required;

        assert!(config.check().unwrap_err().to_string().contains("binder"));

        config.listeners[0].transport = Transport::Tls;
        config.check().unwrap();
    }

    #[test]
    fn logins_are_bound_wherever_clients_can_bind_them() {
        let listener =
            |transport, binder| ListenerConfig { binder, ..ListenerConfig::plain(0, transport) };
        let must_bind = |transport| listener(transport, Binder::Auto).must_bind();

        assert!([Transport::Tls, Transport::National, Transport::Quic].into_iter().all(must_bind));
        assert!(![Transport::Tcp, Transport::Ws, Transport::Wss].into_iter().any(must_bind));
        assert!(!listener(Transport::Tls, Binder::None).must_bind());
    }

    #[test]
    fn a_listener_that_says_nothing_of_binders_goes_by_its_transport() {
        let listener = r#"{"listen": "127.0.0.1:0", "transport": "tls", "host": "127.0.0.1"}"#;

        let listener: ListenerConfig = serde_json::from_str(listener).unwrap();

        assert!(listener.must_bind());
    }

    #[test]
    fn plain_outside_loopback_must_be_switched_on() {
        let mut config = Config::default();
        config.listeners[0].listen = "0.0.0.0:0".parse().unwrap();

        assert!(config.check().unwrap_err().to_string().contains("plain_anywhere"));

        config.plain_anywhere = true;
        config.check().unwrap();
    }
}
