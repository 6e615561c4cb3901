//! `barrage keys`: keys and certificates, for operators.

mod sm2;
mod sm3;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::sm2::Sm2;
use self::sm3::Sm3;

#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make SM2 keys and certificates for the national suites
    Sm2(Sm2),
    /// Print the SM3 of local files
    Sm3(Sm3),
}

pub(crate) fn run(args: Keys) -> anyhow::Result<ExitCode> {
    match args.command {
        KeysCommand::Sm2(args) => args.run(),
        KeysCommand::Sm3(args) => args.run(),
    }
}
