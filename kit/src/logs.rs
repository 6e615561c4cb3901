//! Log lines: to standard error, so that standard output is free for what a command prints.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging for the whole process, once.
///
/// `filter` is `level` or `package=level,…`, for example `info,link=debug`. With `json`, one
/// object a line.
///
/// # Errors
/// When `filter` cannot be read, or logging was started before.
pub fn init(json: bool, filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| anyhow::anyhow!("log filter {filter:?} cannot be read: {error}"))?;
    // Colours are for a terminal; in a file they would be noise.
    let is_terminal = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(is_terminal)
        .with_env_filter(filter);
    let started = if json { lines.json().flatten_event(true).try_init() } else { lines.try_init() };
    started.map_err(|error| anyhow::anyhow!("logging was not started: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_filter_is_named() {
        let error = init(false, "link=loud").unwrap_err();

        assert!(error.to_string().contains("link=loud"), "{error}");
    }
}
