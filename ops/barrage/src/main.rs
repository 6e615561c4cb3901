//! `barrage`: the whole system in one command.

mod cli;
mod command;
mod run_file;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use cli::{Cli, Command};

/// The system's own costs a sixth more CPU time in fan-out.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(&anyhow::Error::new(error).context("cannot start the runtime"));
        }
    };
    let ended = runtime.block_on(run(cli.command));
    runtime.shutdown_background();
    match ended {
        Ok(code) => code,
        Err(error) => failed(&error),
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => Box::pin(command::up::run(args)).await,
        Command::Auth(args) => command::role::run("auth", &args),
        Command::Gslb(args) => command::simulate::run(&args),
        Command::Link(args) => command::role::run("link", &args),
        Command::Chatserver(args) => command::role::run("chatserver", &args),
        Command::Broadcaster(args) => command::role::run("broadcaster", &args),
        Command::Watch(args) => Box::pin(command::watch::run(args)).await,
        Command::Say(args) => Box::pin(command::say::run(args)).await,
        Command::Replay(args) => Box::pin(command::replay::run(args)).await,
        Command::Room(args) => Box::pin(command::business::room::run(args)).await,
        Command::Mute(args) => Box::pin(command::business::people::mute(args)).await,
        Command::Ban(args) => Box::pin(command::business::people::ban(args)).await,
        Command::Kick(args) => Box::pin(command::business::people::kick(args)).await,
        Command::Words(args) => Box::pin(command::business::words::run(args)).await,
        Command::Backup(args) => command::business::backup::run(&args),
        Command::Archive(args) => Box::pin(command::archive::run(args)).await,
        Command::Export(args) => command::export::run(&args),
        Command::Dict(args) => command::dict::run(&args),
        Command::Plan(args) => command::plan::run(&args),
        Command::Keys(args) => Box::pin(command::keys::run(args)).await,
        Command::Token(args) => Box::pin(command::token::run(args)).await,
        Command::Bench(args) => Box::pin(command::bench::run(args)).await,
        Command::LinkWorker => {
            Box::pin(stack::workers::run()).await?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Version => {
            cli::line(&format!("barrage {}", env!("CARGO_PKG_VERSION")));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    cli::complain(&format!("{error:#}"));
    ExitCode::from(2)
}
