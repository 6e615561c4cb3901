//! `barrage gslb place`: where addresses are, and which file says so.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use gslb::place::{Evidence, Finding, Survey};
use stack::Config;

use crate::cli;

#[derive(Args, Debug)]
pub(crate) struct Place {
    /// IPv4 or IPv6
    #[arg(required = true, value_name = "ADDRESS")]
    addresses: Vec<IpAddr>,
    /// TOML file, with the files of addresses in [gslb.place]; `BARRAGE_SECTION__FIELD` in the
    /// environment wins over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Fails when a file cannot be used, as then a running gslb warns.
pub(crate) fn run(args: &Place) -> anyhow::Result<ExitCode> {
    let gslb = Config::load(args.config.as_deref())?.gslb;
    ensure!(
        !gslb.place.files.is_empty(),
        "the configuration has no files of addresses: set [gslb.place] files"
    );
    let (survey, wrong) = Survey::load(&gslb.place)?;
    for &address in &args.addresses {
        let finding = survey.of(address);
        cli::line(&Shown { address, finding: &finding, region: &gslb.region }.to_string());
    }
    for file in &wrong {
        cli::complain(&file.to_string());
    }
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A finding as an operator reads it.
struct Shown<'a> {
    /// As it was asked for.
    address: IpAddr,
    finding: &'a Finding,
    /// Of those of whom nothing is known.
    region: &'a str,
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Finding { address, carrier, region, is_reserved, system, place } = self.finding;
        write!(f, "{}", self.address)?;
        if *address != self.address {
            write!(f, " carries {address}")?;
        }
        match region {
            Some(region) => write!(f, ": carrier {carrier}, region {region}")?,
            None => write!(f, ": carrier {carrier}, region {} by default", self.region)?,
        }
        if *is_reserved {
            return write!(f, "\n  it is no address of the public internet");
        }
        line(f, system.as_ref(), "no file knows its autonomous system")?;
        line(f, place.as_ref(), "no file knows its country")
    }
}

fn line(f: &mut Formatter<'_>, evidence: Option<&Evidence>, none: &str) -> fmt::Result {
    match evidence {
        None => write!(f, "\n  {none}"),
        Some(Evidence { says, first, last, file }) => {
            write!(f, "\n  {says}: {first} to {last} in {}", file.display())
        }
    }
}
