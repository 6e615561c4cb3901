//! Where the keys of tokens come from: given ones, or those of a running auth service.

use std::path::PathBuf;

use anyhow::{Context, anyhow, ensure};
use auth::state::{PolicyState, State};
use auth_core::derive::LinkId;
use auth_core::keyring::{Keyring, epoch_of};
use auth_core::link_id;
use auth_core::policy::Policies;
use auth_core::revocation::Revocations;
use auth_core::secret::Secret;
use auth_core::token::Unverified;
use clap::Args;
use kit::clock::Clock;
use proto::control::{EpochFact, Fact};
use proto::keys::{Master, Masters};
use proto::policy::PolicyFact;
use proto::time::Wall;

use crate::command::keys::masters::Place;
use crate::command::keys::operator::{Operator, Target};
use crate::command::secret;
use crate::run_file::RunFile;

/// Where a master key is looked for.
const MASTER_VARIABLE: &str = "BARRAGE_TOKEN_MASTER";

#[derive(Args, Debug)]
pub(crate) struct SourceArgs {
    /// R of the epoch, 32 bytes in hex: the master key then comes from BARRAGE_TOKEN_MASTER or
    /// --master-file. Without it, the epochs of a running auth service and its file of masters
    #[arg(long, value_name = "HEX", requires = "address")]
    random: Option<String>,
    /// With --random: file with the master key in it, 32 bytes in hex, mode 600
    #[arg(long, value_name = "FILE", requires = "random")]
    master_file: Option<PathBuf>,
    /// With --random: algorithm; 1 HMAC-SHA-256, 2 HMAC-SM3, 3 HMAC-SHA-512/256
    #[arg(long, default_value_t = 1)]
    alg: u8,
    /// With --random: seconds of an epoch
    #[arg(long, default_value_t = 600)]
    interval: u32,
    /// With --random: number of the master key
    #[arg(long, default_value_t = 0)]
    kid: u8,
    /// `host:port` of the link; by default any of a running `up`
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    /// Unix seconds to act at; now by default
    #[arg(long)]
    at: Option<u64>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    place: Place,
}

/// What tokens are minted with and checked against.
pub(crate) struct Source {
    /// Or why there are no masters.
    pub(crate) keyring: anyhow::Result<Keyring>,
    pub(crate) interval_s: u32,
    pub(crate) revocations: Revocations,
    /// Addresses that a token may be for.
    pub(crate) links: Vec<String>,
    pub(crate) now: Wall,
    operator: Option<Operator>,
}

impl Source {
    pub(crate) async fn find(args: &SourceArgs) -> anyhow::Result<Self> {
        let at = args.at.map(|it| Wall(it.saturating_mul(1000)));
        let links = args.address.iter().cloned().collect();
        match &args.random {
            Some(random) => {
                let master = secret::given(args.master_file.as_deref(), MASTER_VARIABLE)?;
                let master = master.with_context(|| {
                    format!(
                        "no master key: set {MASTER_VARIABLE}, or name a file with --master-file"
                    )
                })?;
                let now = at.unwrap_or_else(|| Clock::system().wall());
                Ok(Self {
                    keyring: Ok(given(args, &master, random, now)?),
                    interval_s: args.interval,
                    revocations: Revocations::new(1),
                    links,
                    now,
                    operator: None,
                })
            }
            None => Self::ask(args, links, at).await,
        }
    }

    /// From the auth service that runs.
    async fn ask(
        args: &SourceArgs,
        mut links: Vec<String>,
        at: Option<Wall>,
    ) -> anyhow::Result<Self> {
        let operator = Operator::find(&args.target)?;
        let state: State = operator.get("/v1/epochs").await?;
        let now = at.unwrap_or(state.server_ms);
        if links.is_empty() && args.target.url.is_none() {
            links = RunFile::read(&args.target.data)?.links;
        }
        let mut revocations = Revocations::new(1);
        for it in &state.revoked {
            let fact =
                Fact::Revoked { kid: it.kid, from_epoch: it.from_epoch, to_epoch: it.to_epoch };
            revocations.handle(&fact, now);
        }
        Ok(Self {
            keyring: unsealed(args, &state, now),
            interval_s: state.interval_s,
            revocations,
            links,
            now,
            operator: Some(operator),
        })
    }

    /// What mints and verifies.
    pub(crate) fn keyring(&self) -> anyhow::Result<&Keyring> {
        self.keyring.as_ref().map_err(|error| {
            anyhow!(
                "the masters are needed, and cannot be read: {error:#}; name their \
                     configuration with --config"
            )
        })
    }

    pub(crate) fn link_ids(&self) -> Vec<LinkId> {
        self.links.iter().map(|it| link_id(it)).collect()
    }

    /// What the rooms that a token names ask of it.
    pub(crate) async fn policies(&self, token: &str) -> anyhow::Result<Policies> {
        let mut policies = Policies::default();
        let (Some(operator), Ok(token)) = (&self.operator, Unverified::read(token)) else {
            return Ok(policies);
        };
        let app = token.claims.app;
        for room in token.claims.rooms.iter() {
            // An app that the service does not know has no policies; the verdict will say so.
            let path = format!("/v1/policies/{app}/{room}");
            let Ok(state) = operator.get::<PolicyState>(&path).await else { continue };
            let PolicyState { app, room, version, policy, .. } = state;
            let policy = Some(policy);
            policies.handle(&Fact::Policy(PolicyFact { app, room, version, policy }));
        }
        Ok(policies)
    }
}

/// A keyring of the one epoch that the given keys are of.
fn given(args: &SourceArgs, master: &Secret, random: &str, now: Wall) -> anyhow::Result<Keyring> {
    ensure!(args.interval > 0, "--interval is 0");
    let master = Master { kid: args.kid, key: master.expose().to_owned() };
    let mut keyring = Keyring::new(&Masters { interval_s: args.interval, masters: vec![master] })?;
    let fact = EpochFact {
        epoch: epoch_of(now, args.interval),
        interval_s: args.interval,
        alg: args.alg,
        random: random.to_owned(),
        kids: vec![args.kid],
    };
    keyring.handle(&fact, now)?;
    Ok(keyring)
}

/// A keyring of the epochs that run, with the masters of the file.
fn unsealed(args: &SourceArgs, state: &State, now: Wall) -> anyhow::Result<Keyring> {
    let is_elsewhere = args.target.url.is_some() && args.place.config.is_none();
    ensure!(!is_elsewhere, "--url names a service, and nothing names its file");
    let masters = args.place.file(&args.target.data)?.read()?;
    let mut keyring = Keyring::new(&Masters { interval_s: state.interval_s, masters })?;
    for fact in &state.epochs {
        keyring.handle(fact, now).context("an epoch of the service cannot be used")?;
    }
    for it in &state.revoked {
        keyring.revoke(it.kid, it.from_epoch, it.to_epoch);
    }
    Ok(keyring)
}
