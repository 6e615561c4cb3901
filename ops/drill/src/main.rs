//! `drill`: runs drills by name, or all of them, and prints one JSON line each.

use std::process::ExitCode;

use clap::Parser;
use drill::{Drill, progress};

/// Breaks something on purpose in a running system and checks what viewers notice
#[derive(Debug, Parser)]
struct Args {
    /// Which drills; all of them if none is named
    #[arg(value_enum)]
    drills: Vec<Drill>,
    /// Seed of everything drawn; a fresh one if none is given
    #[arg(long)]
    seed: Option<u64>,
    /// Log lines: `level` or `package=level,…`
    #[arg(long, default_value = "error")]
    log: String,
}

fn main() -> ExitCode {
    match start(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            progress(&format!("drill: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn start(args: &Args) -> anyhow::Result<bool> {
    kit::logs::init(false, &args.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let seed = args.seed.map_or_else(kit::seed::fresh, Ok)?;
    let drills = if args.drills.is_empty() { Drill::ALL } else { &args.drills };
    let mut all_well = true;
    for &drill in drills {
        progress(&format!("drill {}, seed {seed}", drill.name()));
        let line = runtime.block_on(Box::pin(drill::run(drill, seed)));
        line.print();
        all_well &= line.is_ok();
    }
    runtime.shutdown_background();
    Ok(all_well)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drills_are_named_in_snake_case() {
        let args = Args::try_parse_from(["drill", "bus_away", "drain", "--seed", "7"]).unwrap();

        assert_eq!(args.drills, [Drill::BusAway, Drill::Drain]);
        assert_eq!(args.seed, Some(7));
        assert!(Args::try_parse_from(["drill", "earthquake"]).is_err());
    }
}
