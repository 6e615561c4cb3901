//! `barrage bench`: measure.

use std::process::ExitCode;

use crate::cli::{self, Bench};

pub(crate) async fn run(args: Bench) -> anyhow::Result<ExitCode> {
    let names: Vec<&str> = match args.name.as_str() {
        "all" => bench::NAMES.to_vec(),
        name => vec![name],
    };
    for name in names {
        for line in bench::run(name).await? {
            let text = if args.json { serde_json::to_string(&line)? } else { line.text() };
            cli::line(&text);
        }
    }
    Ok(ExitCode::SUCCESS)
}
