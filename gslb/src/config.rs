//! What an operator can set.

mod delivery;
mod full;
mod segments;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::sealed::SECRET_BYTES_MIN;
use auth_core::secret::Secret;
use gslb_core::fleet::{Fleet, Limits, NODES_MAX};
use gslb_core::policy::Policy;
use kit::proxy::Proxies;
use proto::enter::Retry;
use proto::id::NodeId;
use proto::limits::WORD_BYTES_MAX;
use serde::{Deserialize, Serialize};

use crate::place;

pub use delivery::Delivery;
pub use full::Full;
pub use segments::{Bases, Segments};

/// Largest batch that any configuration may allow: its answers are 1 MiB.
pub(crate) const BATCH_MAX: u32 = 1_000;

/// The gslb's configuration, `[gslb]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Config {
    /// Where `POST /v1/enter` is served; port 0 picks a free one.
    pub listen: SocketAddr,
    /// This process among the `[[node]]`s; its role there is `gslb`.
    pub node: NodeId,
    /// The secret of that `[[node]]`: the master keys are fetched with it.
    pub secret: Secret,
    /// Where the auth service is, without a path. HTTPS only, since the masters come from there.
    pub auth_url: String,
    /// Folder of a copy of the master keys, sealed under `secret` and for its owner alone: with it
    /// a gslb that starts while the auth service is away still mints.
    pub data: PathBuf,
    /// Seconds: `/readyz` warns when epochs are known for less. Give a quarter of what the auth
    /// service plans ahead, its `interval_s` × `ahead`; then there is as long to repair it before
    /// nobody enters any more.
    pub horizon_s_min: u32,
    /// Who tickets must be made for (`aud`); empty: tickets must not have an `aud`.
    pub audience: String,
    /// The region of viewers of whom `[gslb.place]` knows none. A viewer gets addresses of the own
    /// region first.
    pub region: String,
    /// Milliseconds between two snapshots. At 2,000 nodes one costs some 50 µs, so 5 ms is one
    /// hundredth of a core; raise it with the number of nodes.
    pub snapshot_ms: u32,
    /// Milliseconds a load report holds. Links report every 100 ms at the latest: below 200 ms
    /// one lost datagram takes a node out of the answers.
    pub lease_ms: u32,
    /// Link nodes known at a time, about 1 KiB each; at most 32,768. More are refused.
    pub nodes_max: u32,
    /// Who gets the next viewers.
    pub policy: Policy,
    /// Where segments are served; empty: what the broadcasters announce.
    pub segments: Vec<Segments>,
    /// How segment bases return that were bad for their viewers.
    pub bases: Bases,
    /// Proxies in front of this process that append to `X-Forwarded-For`. A number too high lets
    /// clients choose their own address; too low puts everybody under the proxy's rate.
    pub trusted_hops: u32,
    /// Proxies that pass TCP connections on and say whose they are (PROXY protocol, version 2), as
    /// networks such as `10.1.0.0/16`. Each of their connections must begin with such a header,
    /// and nobody else's may. Who can connect from such a network can choose an address.
    pub trusted_proxies: Proxies,
    /// How clients are told to try again.
    pub retry: Retry,
    /// Kicks and bans remembered, about 200 bytes each. Beyond it, tickets older than the oldest
    /// kick are refused, whoever they are of.
    pub revocations_max: u32,
    /// Questions of one `POST /v1/enter:batch`. An answer to one takes about 1 KiB of memory while
    /// it is sent, and all of a batch take one core's time one after another.
    pub batch_max: u32,
    /// Bearer tokens of operators, for `GET /v1/nodes`; each at least 32 bytes. Without any nobody
    /// may look.
    pub operator_keys: Vec<Secret>,
    /// By which ways items reach a viewer, by what kind of client it is.
    pub delivery: Delivery,
    /// When those ask again for whom there is no place.
    pub full: Full,
    /// How often one client address may ask, and all together.
    pub rate: Rate,
    /// How an address becomes a carrier and a region.
    pub place: place::Config,
    /// Where load reports come in.
    pub collector: Collector,
    /// What the server spends on its clients.
    pub http: kit::http::Limits,
}

/// How often one client address (IPv6: its /64) may ask, and all together. `[gslb.rate]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Rate {
    /// Whether there are limits.
    pub enabled: bool,
    /// Questions a second in the long run. Many viewers can share one address of a carrier.
    pub per_s: u32,
    /// Questions at once.
    pub burst: u32,
    /// Addresses told apart, 8 bytes each. Addresses that fall together share a rate.
    pub addresses_max: u32,
    /// Questions a second of all addresses together; 0: any number. More are told to come back, as
    /// `[gslb.full]` says, before their tickets are looked at. A core answers some 50,000 over
    /// HTTP: give what this machine can do for the others to be answered in time.
    pub all_per_s: u32,
}

/// Where load reports come in. `[gslb.collector]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Collector {
    /// Whether this process collects; otherwise others write to the load table.
    pub enabled: bool,
    /// Where datagrams are received; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Milliseconds between two values of a region while something changes.
    pub pack_ms: u32,
    /// Milliseconds between two values of a region while nothing does.
    pub idle_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: local(8001),
            node: NodeId(1),
            secret: Secret::default(),
            auth_url: "https://127.0.0.1:8003".to_owned(),
            data: PathBuf::from("data/gslb"),
            horizon_s_min: 900,
            audience: String::new(),
            region: "local".to_owned(),
            snapshot_ms: 5,
            lease_ms: 300,
            nodes_max: 20_000,
            policy: Policy::default(),
            segments: Vec::new(),
            bases: Bases::default(),
            trusted_hops: 0,
            trusted_proxies: Proxies::default(),
            retry: Retry::default(),
            revocations_max: 100_000,
            batch_max: 100,
            operator_keys: Vec::new(),
            delivery: Delivery::default(),
            full: Full::default(),
            rate: Rate::default(),
            place: place::Config::default(),
            collector: Collector::default(),
            http: kit::http::Limits::default(),
        }
    }
}

impl Config {
    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// Names the value.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.auth_url.starts_with("https://"),
            "auth_url: the master keys are fetched over HTTPS only, and {:?} is not",
            self.auth_url
        );
        ensure!(!self.data.as_os_str().is_empty(), "data: there must be a folder");
        let region = self.region.len();
        ensure!(
            (1..=WORD_BYTES_MAX).contains(&region),
            "region: a name has 1 to {WORD_BYTES_MAX} bytes, this one has {region}"
        );
        let nodes = self.nodes_max as usize;
        ensure!((1..=NODES_MAX).contains(&nodes), "nodes_max: {nodes} is not 1 to {NODES_MAX}");
        for (name, value) in [
            ("snapshot_ms", self.snapshot_ms),
            ("lease_ms", self.lease_ms),
            ("revocations_max", self.revocations_max),
        ] {
            ensure!(value > 0, "{name}: 0 does not work");
        }
        segments::check(&self.segments).context("segments")?;
        self.bases.check().context("bases")?;
        check_retry(&self.retry).context("retry")?;
        ensure!(
            (1..=BATCH_MAX).contains(&self.batch_max),
            "batch_max: {} is not 1 to {BATCH_MAX}",
            self.batch_max
        );
        for key in &self.operator_keys {
            let bytes = key.expose().len();
            ensure!(
                bytes >= SECRET_BYTES_MIN,
                "operator_keys: one has {bytes} bytes, fewer than {SECRET_BYTES_MIN}"
            );
        }
        self.delivery.check().context("delivery")?;
        self.full.check().context("full")?;
        self.policy.check().context("policy")?;
        ensure!(
            self.policy.fresh_ms_max > self.collector.idle_ms,
            "policy: fresh_ms_max must be more than collector.idle_ms, or no load is ever believed"
        );
        self.trusted_proxies.check().context("trusted_proxies")?;
        self.place.check().context("place")?;
        self.rate.check().context("rate")?;
        self.collector.check(self.lease_ms).context("collector")
    }
}

impl Config {
    /// A fleet within the bounds.
    pub(crate) fn fleet(&self) -> Fleet {
        Fleet::new(Limits {
            lease: Duration::from_millis(self.lease_ms.into()),
            nodes_max: self.nodes_max as usize,
        })
    }
}

fn check_retry(retry: &Retry) -> anyhow::Result<()> {
    let Retry { base_ms, max_ms, factor, jitter } = *retry;
    ensure!(base_ms > 0 && base_ms <= max_ms, "base_ms: {base_ms} is not 1 to max_ms, {max_ms}");
    ensure!(factor >= 1.0 && factor.is_finite(), "factor: {factor} is not 1 or more");
    ensure!((0.0..=1.0).contains(&jitter), "jitter: {jitter} is not 0 to 1");
    Ok(())
}

impl Rate {
    fn check(&self) -> anyhow::Result<()> {
        for (name, value) in
            [("per_s", self.per_s), ("burst", self.burst), ("addresses_max", self.addresses_max)]
        {
            ensure!(value > 0 || !self.enabled, "{name}: 0 lets nobody in; use enabled = false");
        }
        Ok(())
    }
}

impl Collector {
    fn check(&self, lease_ms: u32) -> anyhow::Result<()> {
        let Self { pack_ms, idle_ms, .. } = *self;
        ensure!(pack_ms > 0 && pack_ms <= idle_ms, "pack_ms: {pack_ms} is not 1 to idle_ms");
        ensure!(
            idle_ms < lease_ms,
            "idle_ms: after {idle_ms} ms the leases of {lease_ms} ms are over"
        );
        Ok(())
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self { enabled: true, per_s: 200, burst: 2_000, addresses_max: 65_536, all_per_s: 200_000 }
    }
}

impl Default for Collector {
    fn default() -> Self {
        Self { enabled: true, listen: local(8001), pack_ms: 5, idle_ms: 100 }
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
mod tests {
    use proto::enter::Delivery as Path;

    use super::*;

    #[test]
    fn the_defaults_can_work() {
        Config::default().check().unwrap();
    }

    #[test]
    fn what_cannot_work_is_named() {
        let check = |name: &str, change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            let refused = format!("{:#}", config.check().unwrap_err());
            assert!(refused.starts_with(name), "{name}: {refused}");
        };

        check("auth_url", |it| it.auth_url = "http://127.0.0.1:8003".to_owned());
        check("data", |it| it.data = PathBuf::new());
        check("region", |it| it.region = String::new());
        check("nodes_max", |it| it.nodes_max = 32_769);
        check("lease_ms", |it| it.lease_ms = 0);
        check("policy", |it| it.policy.replicas = 0);
        check("policy", |it| it.policy.fresh_ms_max = it.collector.idle_ms);
        check("segments", |it| it.segments = vec![base("cdn.example")]);
        check("segments", |it| it.segments = vec![base("https://cdn.example/")]);
        check("segments", |it| it.segments = vec![base("https://cdn.example"); 2]);
        check("segments", |it| {
            it.segments = (0..17).map(|it| base(&format!("https://{it}.example"))).collect();
        });
        check("segments", |it| {
            it.segments = vec![Segments { weight: 0, ..base("https://cdn.example") }];
        });
        check("bases", |it| it.bases.step_ms = 0);
        check("bases", |it| it.bases.quiet_ms = 1_000);
        check("retry", |it| it.retry.max_ms = 1);
        check("retry", |it| it.retry.factor = f32::NAN);
        check("retry", |it| it.retry.jitter = 1.5);
        check("batch_max", |it| it.batch_max = 0);
        check("operator_keys", |it| it.operator_keys = vec![Secret::new("short".to_owned())]);
        check("delivery", |it| it.delivery.weak = vec![Path::Segments]);
        check("delivery", |it| it.delivery.native = vec![Path::Push, Path::Push]);
        check("full", |it| it.full.returns_per_s = 0);
        check("full", |it| it.full.wait_ms_max = it.full.wait_ms_min);
        check("trusted_proxies", |it| {
            it.trusted_proxies = std::iter::repeat_n("10.0.0.0/8".parse().unwrap(), 257).collect();
        });
        check("place", |it| it.place.files = vec![PathBuf::from("places.txt")]);
        check("rate", |it| it.rate.burst = 0);
        check("collector", |it| (it.collector.idle_ms, it.policy.fresh_ms_max) = (300, 301));
        check("collector", |it| it.collector.pack_ms = 101);
    }

    fn base(base: &str) -> Segments {
        Segments { base: base.to_owned(), weight: 1, region: String::new() }
    }
}
