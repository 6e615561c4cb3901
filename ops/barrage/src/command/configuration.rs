//! `--print-config` and `--check`: what a command does with its configuration instead of running.

use std::process::ExitCode;

use stack::Config;

use crate::cli;

/// Prints or checks; `None` if the command is to run.
pub(crate) fn answer(args: &cli::Config, config: &Config) -> anyhow::Result<Option<ExitCode>> {
    if args.print_config {
        cli::line(kit::config::print(config).trim_end());
    } else if args.check {
        config.check()?;
        cli::line("the configuration is good");
    } else {
        return Ok(None);
    }
    Ok(Some(ExitCode::SUCCESS))
}
