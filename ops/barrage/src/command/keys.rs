//! `barrage keys`: what operators decide while everything runs, and keys and certificates.

mod epochs;
mod files;
pub(crate) mod masters;
pub(crate) mod operator;
mod policy;
mod sdk;
mod sm2;
mod sm3;
mod ticket;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::sm2::Sm2;
use self::sm3::Sm3;
use self::ticket::Ticket;

#[derive(Args, Debug)]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Show the epochs, their masters' numbers, and how long logins go on; nothing secret
    Show(epochs::Show),
    /// Add a master key, which mints in every epoch that begins at least half an epoch from now
    ///
    /// No login fails. It mints from the next epoch on, and in the second half of an epoch from the
    /// one after.
    ///
    /// Call the service that draws the epochs; `show` says whether it does. Another one reads the
    /// new file within a second where they share the folder; where each has its own, copy
    /// masters.sealed to it at once. Older masters are removed when no epoch needs them.
    Rotate(operator::Target),
    /// Declare epochs of a master void, after a theft; rotate first
    ///
    /// Tokens that the master minted in these epochs are refused everywhere within a second, and
    /// nobody mints with it. Where it is the only master of the running epoch, nobody can log in
    /// until it ends: so rotate first, wait for some seconds until all links have the new one,
    /// then revoke. It cannot be undone.
    Revoke(epochs::Revoke),
    /// List the numbers of the masters in a sealed file, and check who can read it
    Masters(masters::MastersArgs),
    /// Show or change who may enter an app or a room
    Policy(policy::PolicyArgs),
    /// Show or change which SDK versions are served
    Sdk(sdk::SdkArgs),
    /// Make a key that a business server signs tickets with
    ///
    /// Its two ends are files: one to sign with, and one to verify with, as the configuration takes
    /// it and as a JWK set. Nothing secret is printed, and nothing is overwritten. To change a key
    /// while tickets come in, add the new one, let the business server sign with it, and take the
    /// old one out when its last ticket has ended.
    Ticket(Ticket),
    /// Make SM2 keys and certificates for the national suites
    Sm2(Sm2),
    /// Print the SM3 of local files
    Sm3(Sm3),
}

pub(crate) async fn run(args: Keys) -> anyhow::Result<ExitCode> {
    match args.command {
        KeysCommand::Show(args) => epochs::show(&args).await,
        KeysCommand::Rotate(target) => epochs::rotate(&target).await,
        KeysCommand::Revoke(args) => epochs::revoke(&args).await,
        KeysCommand::Masters(args) => masters::run(&args),
        KeysCommand::Policy(args) => policy::run(args).await,
        KeysCommand::Sdk(args) => sdk::run(args).await,
        KeysCommand::Ticket(args) => args.run(),
        KeysCommand::Sm2(args) => args.run(),
        KeysCommand::Sm3(args) => args.run(),
    }
}
