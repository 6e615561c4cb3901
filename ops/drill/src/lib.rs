//! Drills: something is broken on purpose in a running system, and a viewer's side says what it
//! noticed.
//!
//! Each drill's promise is the doc comment of its module. A drill starts a [`Stage`] of its own on
//! free ports of loopback, takes about ten seconds, and ends by itself with one [`Line`].
#![deny(missing_docs)]

mod auth_away;
mod bus_away;
mod bus_busy;
mod clock_step;
mod drain;
pub mod knock;
pub mod line;
mod link_clock;
pub mod panics;
pub mod probe;
mod slow_reader;
pub mod stage;
pub mod wire;

use std::time::Duration;

use clap::ValueEnum;

pub use line::{Line, progress};
pub use probe::Probe;
pub use stage::Stage;

/// A drill ends within this time, whatever happens.
const DRILL_MAX: Duration = Duration::from_secs(90);

/// The drills.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Drill {
    /// The bus takes nothing for some seconds
    BusBusy,
    /// The bus is away for some seconds
    BusAway,
    /// The servers' clock jumps forth and back
    ClockStep,
    /// The clock of the link is wrong
    LinkClock,
    /// The auth service is killed, and stopped, for longer than its keys reach
    AuthAway,
    /// A viewer stops reading
    SlowReader,
    /// The system is shut down during play, and started again on its data
    Drain,
}

impl Drill {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::BusBusy,
        Self::BusAway,
        Self::ClockStep,
        Self::LinkClock,
        Self::AuthAway,
        Self::SlowReader,
        Self::Drain,
    ];

    /// The name in its line and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BusBusy => "bus_busy",
            Self::BusAway => "bus_away",
            Self::ClockStep => "clock_step",
            Self::LinkClock => "link_clock",
            Self::AuthAway => "auth_away",
            Self::SlowReader => "slow_reader",
            Self::Drain => "drain",
        }
    }
}

/// Runs a drill in a folder of its own, which is removed afterwards.
pub async fn run(drill: Drill, seed: u64) -> Line {
    let mut line = Line::new(drill.name(), seed);
    panics::watch();
    let panics = panics::seen();
    let ended = tokio::time::timeout(DRILL_MAX, Box::pin(act(drill, &mut line))).await;
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => line.fail(format!("{error:#}")),
        Err(_) => line.fail(format!("it took longer than {} s", DRILL_MAX.as_secs())),
    }
    let panics = panics::seen() - panics;
    line.check(panics == 0, || format!("{panics} panics"));
    line
}

async fn act(drill: Drill, line: &mut Line) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    match drill {
        Drill::BusBusy => bus_busy::run(folder.path(), line).await,
        Drill::BusAway => bus_away::run(folder.path(), line).await,
        Drill::ClockStep => clock_step::run(folder.path(), line).await,
        Drill::LinkClock => link_clock::run(folder.path(), line).await,
        Drill::AuthAway => auth_away::run(folder.path(), line).await,
        Drill::SlowReader => slow_reader::run(folder.path(), line).await,
        Drill::Drain => drain::run(folder.path(), line).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drill_is_called_as_its_line_is() {
        for &drill in Drill::ALL {
            assert_eq!(Drill::from_str(drill.name(), false), Ok(drill));
        }
        assert_eq!(Drill::ALL.len(), Drill::value_variants().len());
    }
}
