//! `barrage keys policy`: who may enter an app or a room.

use std::process::ExitCode;

use auth::state::PolicyState;
use clap::{Args, Subcommand, ValueEnum};
use proto::id::{AppId, RoomId};
use proto::policy::{Access, Entry, Policy};

use super::operator::{Operator, Target};
use crate::cli;

#[derive(Args, Debug)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Show what holds
    Get(Whose),
    /// Change what holds; what is not named stays as it is
    Set(Set),
    /// Remove a policy: a room goes by its app's again, an app by the configured one
    Unset(Whose),
}

/// Whose policy.
#[derive(Args, Debug)]
struct Whose {
    #[command(flatten)]
    target: Target,
    /// Number of the app
    #[arg(long)]
    app: u32,
    /// One of its rooms; without it the app's own policy
    #[arg(long)]
    room: Option<RoomId>,
}

#[derive(Args, Debug)]
struct Set {
    #[command(flatten)]
    whose: Whose,
    /// Who needs a ticket: open (nobody), guest (only who sends), token (everybody)
    #[arg(long, value_parser = entry)]
    entry: Option<Entry>,
    /// One session of an account in a room; a newer one closes the older
    #[arg(long, value_name = "YES")]
    single_device: Option<YesNo>,
    /// Seconds within which a token must be used, 1 to 120, and at most half of `[auth] interval_s`
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u16>,
    /// A token opens one session only
    #[arg(long, value_name = "YES")]
    single_use: Option<YesNo>,
    /// Seconds that servers' clocks may be apart, at most 60
    #[arg(long, value_name = "SECONDS")]
    skew: Option<u16>,
    /// What accounts may do without a verified claim: send, read, refuse
    #[arg(long, value_name = "ACCESS", value_parser = access)]
    unverified: Option<Access>,
    /// What minors may do: send, read, refuse
    #[arg(long, value_name = "ACCESS", value_parser = access)]
    minors: Option<Access>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

pub(crate) async fn run(args: PolicyArgs) -> anyhow::Result<ExitCode> {
    let state = match args.command {
        PolicyCommand::Get(whose) => whose.operator()?.get(&whose.path()).await?,
        PolicyCommand::Unset(whose) => whose.operator()?.delete(&whose.path()).await?,
        PolicyCommand::Set(set) => {
            let (operator, path) = (set.whose.operator()?, set.whose.path());
            let before: PolicyState = operator.get(&path).await?;
            operator.put(&path, &set.change(before.policy)).await?
        }
    };
    cli::line(&describe(&state));
    Ok(ExitCode::SUCCESS)
}

impl Whose {
    fn operator(&self) -> anyhow::Result<Operator> {
        Operator::find(&self.target)
    }

    fn path(&self) -> String {
        let app = AppId(self.app);
        match &self.room {
            Some(room) => format!("/v1/policies/{app}/{room}"),
            None => format!("/v1/policies/{app}"),
        }
    }
}

impl Set {
    fn change(&self, policy: Policy) -> Policy {
        let is = |given: Option<YesNo>, before| given.map_or(before, |it| it == YesNo::Yes);
        Policy {
            entry: self.entry.unwrap_or(policy.entry),
            single_device: is(self.single_device, policy.single_device),
            token_ttl_s: self.ttl.unwrap_or(policy.token_ttl_s),
            single_use: is(self.single_use, policy.single_use),
            skew_s: self.skew.unwrap_or(policy.skew_s),
            unverified: self.unverified.unwrap_or(policy.unverified),
            minors: self.minors.unwrap_or(policy.minors),
        }
    }
}

fn describe(state: &PolicyState) -> String {
    let PolicyState { app, room, version, own, policy, rooms } = state;
    let whose = room.as_ref().map_or_else(|| format!("app {app}"), |it| format!("room {it}"));
    let from = match (own, room) {
        (Some(_), _) => format!("its own, version {version}"),
        (None, Some(_)) => "its app's".to_owned(),
        (None, None) => "as configured".to_owned(),
    };
    let yes = |it| if it { "yes" } else { "no" };
    let mut lines = vec![
        format!("{whose}: {from}"),
        format!("entry          {}", word(&policy.entry)),
        format!("single device  {}", yes(policy.single_device)),
        format!("token ttl      {} s", policy.token_ttl_s),
        format!("single use     {}", yes(policy.single_use)),
        format!("skew           {} s", policy.skew_s),
        format!("unverified     {}", word(&policy.unverified)),
        format!("minors         {}", word(&policy.minors)),
    ];
    if !rooms.is_empty() {
        let rooms: Vec<&str> = rooms.iter().map(RoomId::as_str).collect();
        lines.push(format!("rooms with their own: {}", rooms.join(" ")));
    }
    lines.join("\n")
}

fn entry(text: &str) -> Result<Entry, String> {
    parse(text, &[Entry::Open, Entry::Guest, Entry::Token])
}

fn access(text: &str) -> Result<Access, String> {
    parse(text, &[Access::Send, Access::Read, Access::Refuse])
}

/// The words are those of the wire, so that there is one set of them.
fn parse<T: serde::Serialize + Copy>(text: &str, all: &[T]) -> Result<T, String> {
    let found = all.iter().find(|it| word(*it) == text);
    found.copied().ok_or_else(|| {
        let words: Vec<String> = all.iter().map(word).collect();
        format!("one of: {}", words.join(", "))
    })
}

fn word<T: serde::Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
