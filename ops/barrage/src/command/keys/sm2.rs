//! `barrage keys sm2`: certificates for the national suites.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use channel::national::certs::{Authority, Key, Life, Names, Request};
use clap::{Args, Subcommand};
use kit::clock::Clock;

use super::files::{File, Out, write};
use crate::cli;

const CA: File = File { name: "ca.pem", mode: 0o644, what: "clients trust it" };
const CA_KEY: File =
    File { name: "ca-key.pem", mode: 0o600, what: "the authority's key: keep it off the servers" };
const CHAIN: File = File { name: "chain.pem", mode: 0o644, what: "the server's certificate" };
const KEY: File = File { name: "key.pem", mode: 0o600, what: "the server's key" };
const REQUEST: File =
    File { name: "request.pem", mode: 0o644, what: "give it to the authority, not the key" };

#[derive(Args, Debug)]
pub(crate) struct Sm2 {
    #[command(subcommand)]
    command: Sm2Command,
}

#[derive(Debug, Subcommand)]
enum Sm2Command {
    /// Make an authority: ca.pem for clients, ca-key.pem to sign with
    Ca {
        /// What the authority is called
        #[arg(long, value_name = "NAME", default_value = "Barrage SM2 authority")]
        name: String,
        /// Days that it holds
        #[arg(long, value_name = "N", default_value_t = 3650)]
        days: u32,
        #[command(flatten)]
        out: Out,
    },
    /// Make a server's key and certificate: key.pem, chain.pem
    Leaf {
        #[command(flatten)]
        names: NameArgs,
        #[command(flatten)]
        authority: AuthorityDir,
        /// Days that the certificate holds, at most as long as the authority
        #[arg(long, value_name = "N", default_value_t = 365)]
        days: u32,
        #[command(flatten)]
        out: Out,
    },
    /// Make a server's key and a request to sign elsewhere: key.pem, request.pem
    Csr {
        #[command(flatten)]
        names: NameArgs,
        #[command(flatten)]
        out: Out,
    },
    /// Sign a request: chain.pem
    Sign {
        /// The request, from `barrage keys sm2 csr` or from another tool
        request: PathBuf,
        #[command(flatten)]
        authority: AuthorityDir,
        /// Days that the certificate holds, at most as long as the authority
        #[arg(long, value_name = "N", default_value_t = 365)]
        days: u32,
        #[command(flatten)]
        out: Out,
    },
}

#[derive(Args, Debug)]
struct NameArgs {
    /// DNS name (`*.` in front is possible) or IP address of the server; may be repeated
    #[arg(long = "name", value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Args, Debug)]
struct AuthorityDir {
    /// Folder with the authority's ca.pem and ca-key.pem
    #[arg(long, value_name = "DIR", default_value = ".")]
    ca: PathBuf,
}

impl Sm2 {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Sm2Command::Ca { name, days, out } => ca(&name, life(days), &out.out),
            Sm2Command::Leaf { names, authority, days, out } => {
                leaf(names.names, &authority.ca, life(days), &out.out)
            }
            Sm2Command::Csr { names, out } => csr(names.names, &out.out),
            Sm2Command::Sign { request, authority, days, out } => {
                sign(&request, &authority.ca, life(days), &out.out)
            }
        }?;
        Ok(ExitCode::SUCCESS)
    }
}

fn ca(name: &str, life: Life, out: &Path) -> anyhow::Result<()> {
    let authority = Authority::create(fresh_key()?, name, life)?;
    let key_pem = authority.key().to_pem()?;
    write(out, &[(CA_KEY, &key_pem), (CA, &authority.to_pem()?)])
}

fn leaf(names: Vec<String>, ca: &Path, life: Life, out: &Path) -> anyhow::Result<()> {
    let names = Names::new(names)?;
    let authority = authority(ca)?;
    let key = fresh_key()?;
    let chain_pem = authority.issue(&key, &names, life)?;
    write(out, &[(KEY, &key.to_pem()?), (CHAIN, &chain_pem)])
}

fn csr(names: Vec<String>, out: &Path) -> anyhow::Result<()> {
    let names = Names::new(names)?;
    let key = fresh_key()?;
    write(out, &[(KEY, &key.to_pem()?), (REQUEST, &Request::create(&key, &names)?)])
}

fn sign(request: &Path, ca: &Path, life: Life, out: &Path) -> anyhow::Result<()> {
    let request_pem = fs::read_to_string(request)
        .with_context(|| format!("cannot read the request {}", request.display()))?;
    let request = Request::from_pem(&request_pem)?;
    let chain_pem = authority(ca)?.sign(&request, life)?;
    write(out, &[(CHAIN, &chain_pem)])?;
    cli::line(&format!("signed for {}", request.names()));
    Ok(())
}

fn authority(dir: &Path) -> anyhow::Result<Authority> {
    let (ca, key) = (dir.join(CA.name), dir.join(CA_KEY.name));
    let missing = |path: &Path| {
        format!(
            "cannot read {}: --ca names the folder that `barrage keys sm2 ca` wrote to",
            path.display()
        )
    };
    let ca_pem = fs::read_to_string(&ca).with_context(|| missing(&ca))?;
    let key_pem = kit::private::read(&key).with_context(|| missing(&key))?;
    let key_pem = String::from_utf8(key_pem.with_context(|| missing(&key))?)
        .context("the authority's key is not text")?;
    Ok(Authority::from_pem(&ca_pem, &key_pem)?)
}

fn fresh_key() -> anyhow::Result<Key> {
    Ok(Key::from_seed(&kit::seed::random_bytes()?)?)
}

fn life(days: u32) -> Life {
    Life { now: Clock::system().wall(), days }
}
