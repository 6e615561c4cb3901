//! `sim`: runs the world with many seeds and says which ones break a promise.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use sim::{Plan, run};

/// Runs the cores together in a simulated world
#[derive(Debug, Parser)]
struct Args {
    /// First seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Viewers in the world
    #[arg(long, default_value_t = 12)]
    viewers: usize,
    /// Seconds of virtual time in which comments are made
    #[arg(long, default_value_t = 40)]
    seconds: u64,
}

#[expect(clippy::print_stdout, reason = "the output of a command")]
fn main() -> ExitCode {
    let args = Args::parse();
    let length = Duration::from_secs(args.seconds);
    let plan = Plan { viewers: args.viewers, length, ..Plan::default() };
    let mut failures = 0;
    for seed in args.seed..args.seed.saturating_add(args.seeds) {
        let outcome = run(seed, plan);
        let hash = outcome.hash.get(..16).unwrap_or_default();
        println!(
            "seed {seed}: {} sealed, {} shed, {} gifts, {} breaks, {} deaths, {} steps, {hash}",
            outcome.sealed,
            outcome.shed,
            outcome.gifts,
            outcome.breaks,
            outcome.deaths,
            outcome.steps
        );
        for broken in &outcome.broken {
            println!("  {broken}");
        }
        failures += usize::from(!outcome.broken.is_empty());
    }
    if failures > 0 {
        println!("{failures} of {} seeds broke a promise", args.seeds);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
