//! `barrage token`: mint a token, verify one, or explain why one is refused.

mod explain;
mod source;

use std::process::ExitCode;

use anyhow::Context;
use auth_core::policy::Policies;
use auth_core::token::{Claims, Rooms, Scope, flag};
use clap::{Args, Subcommand};
use proto::id::{AppId, RoomId, ViewerId};

use self::source::{Source, SourceArgs};
use crate::cli;

#[derive(Args, Debug)]
pub(crate) struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Mint a token for tests
    ///
    /// Its key comes from --random and a master key, which is never an argument: it is in
    /// BARRAGE_TOKEN_MASTER or --master-file. Or it comes from a running auth service together with
    /// the sealed file of masters, which only operators can read.
    Mint(Mint),
    /// Lay a token open, and say in one line whether it is valid
    Verify(Given),
    /// Say which check a token fails, when and where it was minted, and what to do
    Explain(Given),
}

#[derive(Args, Debug)]
struct Mint {
    #[command(flatten)]
    source: SourceArgs,
    #[arg(long, default_value_t = 1)]
    app: u32,
    #[arg(long, default_value = "somebody")]
    account: ViewerId,
    /// Rooms of the token
    #[arg(long = "room", default_value = "demo")]
    rooms: Vec<RoomId>,
    /// Seconds within which it must be used, at most 120
    #[arg(long, default_value_t = 60)]
    ttl: u16,
    /// May only read
    #[arg(long)]
    read_only: bool,
}

#[derive(Args, Debug)]
struct Given {
    #[command(flatten)]
    source: SourceArgs,
    /// The token's text, `dm1.…`
    token: String,
}

pub(crate) async fn run(args: Token) -> anyhow::Result<ExitCode> {
    match args.command {
        TokenCommand::Mint(args) => mint(args).await,
        TokenCommand::Verify(args) => verify(&args).await,
        TokenCommand::Explain(args) => explain(&args).await,
    }
}

async fn mint(args: Mint) -> anyhow::Result<ExitCode> {
    let source = Source::find(&args.source).await?;
    let link = source.links.first().context("--address names no link")?;
    let claims = Claims {
        app: AppId(args.app),
        link: auth_core::link_id(link),
        iat_s: u32::try_from(source.now.unix_s()).context("tokens end in the year 2106")?,
        ttl_s: args.ttl,
        flags: flag::SINGLE_USE | if args.read_only { 0 } else { flag::MAY_SEND },
        caps: 0,
        jti: kit::seed::random_bytes()?,
        account: args.account,
        device: None,
        rooms: Rooms::try_from(args.rooms)?,
    };
    cli::line(&source.keyring()?.mint(&claims)?);
    Ok(ExitCode::SUCCESS)
}

async fn verify(args: &Given) -> anyhow::Result<ExitCode> {
    let source = Source::find(&args.source).await?;
    let policies = source.policies(&args.token).await?;
    let explanation = explained(args, &source, &policies)?;
    cli::line(&explanation.to_string());
    Ok(code(explanation.verdict.is_ok()))
}

async fn explain(args: &Given) -> anyhow::Result<ExitCode> {
    let source = Source::find(&args.source).await?;
    let policies = source.policies(&args.token).await?;
    let explanation = match source.keyring {
        Ok(_) => Some(explained(args, &source, &policies)?),
        Err(_) => None,
    };
    cli::line(&explain::words(&args.token, &source, explanation.as_ref()));
    Ok(code(explanation.is_some_and(|it| it.verdict.is_ok())))
}

fn explained(
    args: &Given,
    source: &Source,
    policies: &Policies,
) -> anyhow::Result<auth_core::token::Explanation> {
    let links = source.link_ids();
    let scope = Scope {
        keys: source.keyring()?,
        links: &links,
        policies,
        revocations: &source.revocations,
    };
    Ok(auth_core::token::explain(&args.token, &scope, source.now))
}

fn code(is_valid: bool) -> ExitCode {
    if is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
