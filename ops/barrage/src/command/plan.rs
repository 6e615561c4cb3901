//! `barrage plan`: what an event would take, before it is paid for.

mod cost;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::json;

use self::cost::{Event, Prices, Way};
use crate::cli;

/// Prices the three ways in which a room's items reach viewers: files from a CDN, an FLV stream from
/// a CDN, and pushes down the long connection over TLS. Bytes are those of made-up comments, made here
/// and now; what a core does is measured, and named with the benchmark that measures it again.
#[derive(Args, Debug)]
pub(crate) struct Plan {
    /// Viewers at a time; k and M are thousands and millions
    #[arg(long, value_parser = many, default_value = "10M")]
    viewers: u64,
    /// Length of the event
    #[arg(long, value_name = "HOURS", default_value_t = 3.0)]
    hours: f64,
    /// Items that the room shows in a second
    #[arg(long, value_name = "ITEMS", default_value_t = 50)]
    room_rate: u32,
    /// Length of a slot
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    interval_ms: u32,
    /// Length of a flush
    #[arg(long, value_name = "MS", default_value_t = 200)]
    flush_ms: u32,
    /// Cores of a link node; six tenths of them are planned for
    #[arg(long, default_value_t = 16)]
    node_cores: u32,
    /// Network of a link node, of which seven tenths are planned for
    #[arg(long, value_name = "GBIT/S", default_value_t = 10.0)]
    node_gbps: f64,
    /// TOML with what you pay: currency, cdn_per_gb, cdn_per_million_requests, egress_per_gb,
    /// core_per_hour. Without it there is no money in the plan
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Plan) -> anyhow::Result<ExitCode> {
    ensure!(args.viewers > 0, "--viewers is 0");
    ensure!(args.hours > 0.0 && args.hours.is_finite(), "--hours must be more than 0");
    ensure!((1..=10_000).contains(&args.room_rate), "--room-rate is 1 to 10000");
    ensure!((200..=10_000).contains(&args.interval_ms), "--interval-ms is 200 to 10000");
    ensure!((20..=1000).contains(&args.flush_ms), "--flush-ms is 20 to 1000");
    ensure!(args.node_cores > 0, "--node-cores is 0");
    ensure!(args.node_gbps > 0.0 && args.node_gbps.is_finite(), "--node-gbps must be more than 0");
    let prices = args.prices.as_ref().map(|file| {
        let text = std::fs::read_to_string(file);
        let text = text.with_context(|| format!("cannot read {}", file.display()))?;
        toml::from_str::<Prices>(&text).with_context(|| format!("{} is no table", file.display()))
    });
    let prices = prices.transpose()?;
    let event = Event {
        viewers: args.viewers,
        hours: args.hours,
        interval_ms: args.interval_ms,
        flush_ms: args.flush_ms,
        items_per_flush: f64::from(args.room_rate) * f64::from(args.flush_ms) / 1000.0,
        node_cores: args.node_cores,
        node_gbps: args.node_gbps,
        sizes: bench::sizes(args.room_rate, args.interval_ms, args.flush_ms)?,
    };
    let ways = event.ways();
    if args.json {
        let ways: Vec<_> = ways.iter().map(|it| told(it, prices.as_ref())).collect();
        let plan = json!({ "ways": ways, "bytes": event.sizes, "coefficients": cost::NAMED });
        cli::line(&plan.to_string());
    } else {
        for line in table(&event, &ways, prices.as_ref()) {
            cli::line(&line);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn told(way: &Way, prices: Option<&Prices>) -> serde_json::Value {
    json!({
        "way": way.name,
        "requests_per_s": way.requests_per_s,
        "gbit_per_s": way.gbit_per_s,
        "terabytes": way.terabytes,
        "cores": way.cores,
        "nodes": way.nodes,
        "money": prices.map(|it| way.money(it)),
    })
}

fn table(event: &Event, ways: &[Way], prices: Option<&Prices>) -> Vec<String> {
    let mut lines = vec![
        format!("{} viewers for {} hours", event.viewers, event.hours),
        String::new(),
        format!(
            "{:<8}{:>16}{:>12}{:>12}{:>10}{:>8}{:>16}",
            "way", "requests/s", "Gbit/s", "TB", "cores", "nodes", "money"
        ),
    ];
    for way in ways {
        let count = |it: Option<f64>| it.map_or_else(|| "-".to_owned(), |it| format!("{it:.0}"));
        let money = prices
            .map_or_else(|| "-".to_owned(), |it| format!("{:.0} {}", way.money(it), it.currency));
        lines.push(format!(
            "{:<8}{:>16.0}{:>12.1}{:>12.1}{:>10}{:>8}{:>16}",
            way.name,
            way.requests_per_s,
            way.gbit_per_s,
            way.terabytes,
            count(way.cores),
            count(way.nodes),
            money
        ));
    }
    lines.push(String::new());
    lines.push("What it rests on:".to_owned());
    let sizes = event.sizes;
    let bytes = [
        ("a slot's file", sizes.segment),
        ("a flush as a frame", sizes.flush_frame),
        ("the end of a slot as a frame", sizes.seal_frame),
        ("a flush as an FLV tag", sizes.flush_tag),
    ];
    lines.extend(bytes.map(|(what, bytes)| format!("  {bytes:>10} bytes  {what}, made now")));
    lines.extend(cost::NAMED.iter().map(|it| format!("  {:>10} {}", it.value, it.what)));
    if prices.is_none() {
        lines.push("Without --prices there is no money in it.".to_owned());
    }
    lines
}

/// `10M`, `200k`, `5000`.
fn many(text: &str) -> Result<u64, String> {
    let (digits, times) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1.0), |digits| (digits, 1e6)),
    };
    let number: f64 = digits.parse().map_err(|_| format!("{text} is no number of viewers"))?;
    if !(0.0..=1e10).contains(&(number * times)) {
        return Err(format!("{text} is not between 0 and ten thousand millions"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just checked")]
    Ok((number * times).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_and_millions_are_read() {
        assert_eq!(["10M", "2.5k", "7"].map(|it| many(it).unwrap()), [10_000_000, 2500, 7]);
        for text in ["", "M", "-1", "10G", "1e99"] {
            assert!(many(text).is_err(), "{text}");
        }
    }
}
