//! Places: the time to look an address up, and to load the files.

use std::hint::black_box;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use gslb::place::{Config, Place};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::line::Line;
use crate::timing::{median, per_second};
use crate::{cpu, timing};

/// Addresses that are looked up in turn; their table does not fit the processor's first cache.
const ADDRESSES: usize = 65_536;

/// `gslb.place.lookup` and `gslb.place.load`: all of IPv4 and IPv6, of the package
/// `@ip-location-db/asn`.
pub(crate) fn run() -> anyhow::Result<Vec<Line>> {
    let files = [asn("ipv4")?, asn("ipv6")?];
    let mut asked = Vec::new();
    for file in &files {
        asked.extend(first_addresses(file)?);
    }
    asked.shuffle(&mut StdRng::seed_from_u64(1));
    asked.truncate(ADDRESSES);

    let config = Config { files: files.into(), ..Config::default() };
    let (place, mut loads_ms) = (load(&config)?, [0.0; timing::ROUNDS]);
    for load_ms in &mut loads_ms {
        let start = cpu::thread();
        black_box(load(&config)?);
        *load_ms = (cpu::thread() - start).as_secs_f64() * 1e3;
    }
    let mut cycle = asked.iter().cycle();
    let looked_up = per_second(|| {
        let &address = cycle.next().unwrap_or_else(|| unreachable!("a cycle does not end"));
        black_box(place.of(black_box(address)));
    });
    Ok(vec![
        Line::alone("gslb.place.lookup", 1e9 / looked_up, "ns"),
        Line::alone("gslb.place.load", median(&mut loads_ms), "ms"),
    ])
}

fn load(config: &Config) -> anyhow::Result<Place> {
    let (place, wrong) = Place::load(config)?;
    ensure!(wrong.is_empty(), "files that cannot be used: {wrong:?}");
    Ok(place)
}

/// The first address of every range, each of which some system announces.
fn first_addresses(file: &Path) -> anyhow::Result<Vec<IpAddr>> {
    let text = std::fs::read_to_string(file)?;
    let first = |line: &str| line.split(',').next()?.parse().ok();
    Ok(text.lines().filter_map(first).collect())
}

/// Where `ops/tools/install` puts it.
fn asn(family: &str) -> anyhow::Result<PathBuf> {
    let tools = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools"),
        PathBuf::from,
    );
    let file = tools.join(format!("node/node_modules/@ip-location-db/asn/asn-{family}.csv"));
    let there = file.canonicalize();
    there.with_context(|| format!("{} is missing: run ops/tools/install", file.display()))
}
