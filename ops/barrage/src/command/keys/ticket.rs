//! `barrage keys ticket`: a key with which a business server signs tickets.

use std::process::ExitCode;

use anyhow::Context;
use auth_core::app::TicketAlg;
use auth_core::ticket::Pair;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::files::{File, Out, write};

/// What a public key's files may be read by.
const PUBLIC: u32 = 0o644;
/// And those of a secret.
const SECRET: u32 = 0o600;

#[derive(Args, Debug)]
pub(super) struct Ticket {
    /// What tickets are signed with
    #[arg(long, value_enum, default_value_t = Alg::Eddsa)]
    alg: Alg,
    /// Name of the key, which its tickets carry as `kid`: each key of an app has its own
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    kid: String,
    #[command(flatten)]
    out: Out,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Alg {
    /// Ed25519
    Eddsa,
    /// ECDSA over P-256
    Es256,
    /// HMAC-SHA-256: both ends have the same secret
    Hs256,
}

/// A key in `[[app]]`, with its text.
#[derive(Serialize)]
struct Entry<'a> {
    kid: &'a str,
    alg: TicketAlg,
    key: &'a str,
}

impl Ticket {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let (alg, private_name, mode) = match self.alg {
            Alg::Eddsa => (TicketAlg::EdDsa, "ticket-key.pem", PUBLIC),
            Alg::Es256 => (TicketAlg::Es256, "ticket-key.pem", PUBLIC),
            Alg::Hs256 => (TicketAlg::Hs256, "ticket-key.txt", SECRET),
        };
        let pair = Pair::from_seed(alg, &self.kid, &kit::seed::random_bytes()?)
            .context("what was drawn is no key, as happens once in 2^32 times: call it again")?;
        let entry = Entry { kid: &self.kid, alg, key: pair.ticket_key.key.expose() };
        let entry = format!("[[app.ticket_keys]]\n{}", toml::to_string_pretty(&entry)?);
        let private = File {
            name: private_name,
            mode: SECRET,
            what: "the business server signs with it: keep it nowhere else",
        };
        let configured = File {
            name: "ticket-key.toml",
            mode,
            what: "for the configuration, below the app's [[app]]; or instead:",
        };
        let set = File {
            name: "jwks.json",
            mode,
            what: "name it as the app's jwks, or add its entry to the set that is named there",
        };
        let (private_text, jwks) = (pair.private.expose(), pair.jwks.expose());
        write(&self.out.out, &[(private, private_text), (configured, &entry), (set, jwks)])?;
        Ok(ExitCode::SUCCESS)
    }
}
