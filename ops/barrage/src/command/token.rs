//! `barrage token`: mint one from keys at hand, or explain why one is refused.

use std::process::ExitCode;

use anyhow::Context;
use auth_core::derive::LinkId;
use auth_core::keyring::{Keyring, epoch_of};
use auth_core::link_id;
use auth_core::policy::Policies;
use auth_core::revocation::Revocations;
use auth_core::token::{Claims, Rooms, Scope, explain, flag};
use kit::clock::Clock;
use proto::control::EpochFact;
use proto::id::AppId;
use proto::keys::{Master, Masters};
use proto::time::Wall;

use crate::cli::{self, Token, TokenCommand, TokenKeys, TokenMint, TokenVerify};

pub(crate) fn run(args: Token) -> anyhow::Result<ExitCode> {
    match args.command {
        TokenCommand::Mint(args) => mint(args),
        TokenCommand::Verify(args) => verify(&args),
    }
}

fn mint(args: TokenMint) -> anyhow::Result<ExitCode> {
    let (keyring, link, now) = keys(&args.keys)?;
    let claims = Claims {
        app: AppId(args.app),
        link,
        iat_s: u32::try_from(now.unix_s()).context("tokens end in the year 2106")?,
        ttl_s: args.ttl,
        flags: flag::SINGLE_USE | if args.read_only { 0 } else { flag::MAY_SEND },
        caps: 0,
        jti: kit::seed::random_bytes()?,
        account: args.account,
        device: None,
        rooms: Rooms::try_from(args.rooms)?,
    };
    cli::line(&keyring.mint(&claims)?);
    Ok(ExitCode::SUCCESS)
}

fn verify(args: &TokenVerify) -> anyhow::Result<ExitCode> {
    let (keyring, link, now) = keys(&args.keys)?;
    let revocations = Revocations::new(1);
    let policies = Policies::default();
    let scope =
        Scope { keys: &keyring, links: &[link], policies: &policies, revocations: &revocations };
    let explanation = explain(&args.token, &scope, now);
    cli::line(&explanation.to_string());
    Ok(if explanation.verdict.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A keyring of the one epoch that the keys are of.
fn keys(args: &TokenKeys) -> anyhow::Result<(Keyring, LinkId, Wall)> {
    let now = args.at.map_or_else(|| Clock::system().wall(), |it| Wall(it.saturating_mul(1000)));
    let master = Master { kid: args.kid, key: args.master.clone() };
    let mut keyring = Keyring::new(&Masters { interval_s: args.interval, masters: vec![master] })?;
    let fact = EpochFact {
        epoch: epoch_of(now, args.interval),
        interval_s: args.interval,
        alg: args.alg,
        random: args.random.clone(),
        kids: vec![args.kid],
    };
    keyring.handle(&fact, now)?;
    Ok((keyring, link_id(&args.address), now))
}
