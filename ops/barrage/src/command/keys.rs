//! `barrage keys`: keys and certificates, for operators.

mod sm2;
mod sm3;

use std::process::ExitCode;

use clap::{Args, Subcommand};

#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make SM2 keys and certificates for the national suites
    Sm2(sm2::Sm2),
    /// Print the SM3 of local files
    Sm3(sm3::Sm3),
}

pub(crate) fn run(args: Keys) -> anyhow::Result<ExitCode> {
    match args.command {
        KeysCommand::Sm2(args) => sm2::run(args),
        KeysCommand::Sm3(args) => sm3::run(&args),
    }
}
