//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::hold::Wish;

/// Long and noisy runs; each ends by itself and prints one JSON line
#[derive(Debug, Parser)]
#[command(name = "soak", max_term_width = 100)]
pub(crate) struct Args {
    /// What to run
    #[arg(value_enum)]
    run: Run,
    /// A few seconds of it
    #[arg(long)]
    short: bool,
    /// Seed of everything drawn, to repeat a run; a fresh one if none is given
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Folder for what `fuzz` finds to show something new; `ops/soak/corpus` adds it to the corpus
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
    /// Sessions of `hold`; 100,000 if none are told
    #[arg(long, value_name = "N")]
    sessions: Option<usize>,
    /// Seconds of `hold`; 120 if none are told
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Log lines: `level` or `package=level,…`
    #[arg(long, default_value = "error")]
    pub(crate) log: String,
}

/// The runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Run {
    /// Every one in turn
    All,
    /// Simulated worlds with fresh seeds: 500
    Sim,
    /// A link's machines beside a simple picture of them: 20 million steps
    Model,
    /// The whole system with a crowd: 2,000 viewers
    Crowd,
    /// Viewers who come and go: 16 minutes
    Churn,
    /// Every connection is cut at once: 1,000 viewers, 10 times
    Storm,
    /// One viewer in a hundred stops reading: 10 beside 1,000
    Slow,
    /// Connections that stall in every phase: 5,000
    Slowloris,
    /// TLS sessions at worker processes, each with its heartbeats: 100,000
    Hold,
    /// One of two segment bases turns slow: 2,000 pollers
    Bases,
    /// A room gets twenty times what it shows, and gifts: 1,000 viewers, two minutes
    Flow,
    /// A room gets 200,000 comments a second, past all who would refuse them: 20 s
    Flood,
    /// How long a comment takes on every way to a reader: 20 a second, one minute
    Latency,
    /// Hostile bytes for decoders, a session's machine and a live link: 15 minutes
    Fuzz,
    /// Whether the time of refusing a token tells of its MAC: 2 million tokens of each kind
    Timing,
    /// The drills
    Drills,
}

/// How much.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Size {
    /// A few seconds.
    Short,
    /// Minutes.
    Long,
}

impl Args {
    /// What to run, in turn.
    pub(crate) fn runs(&self) -> &[Run] {
        const ALL: &[Run] = &[
            Run::Sim,
            Run::Model,
            Run::Crowd,
            Run::Churn,
            Run::Storm,
            Run::Slow,
            Run::Slowloris,
            Run::Hold,
            Run::Bases,
            Run::Flow,
            Run::Flood,
            Run::Latency,
            Run::Fuzz,
            Run::Timing,
            Run::Drills,
        ];
        match self.run {
            Run::All => ALL,
            Run::Sim
            | Run::Model
            | Run::Crowd
            | Run::Churn
            | Run::Storm
            | Run::Slow
            | Run::Slowloris
            | Run::Hold
            | Run::Bases
            | Run::Flow
            | Run::Flood
            | Run::Latency
            | Run::Fuzz
            | Run::Timing
            | Run::Drills => std::slice::from_ref(&self.run),
        }
    }

    /// What `hold` is to hold, where it is told.
    pub(crate) const fn wish(&self) -> Wish {
        Wish { sessions: self.sessions, seconds: self.seconds }
    }

    /// How much of it.
    pub(crate) const fn size(&self) -> Size {
        if self.short { Size::Short } else { Size::Long }
    }
}

impl Run {
    /// The word in its line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Sim => "sim",
            Self::Model => "model",
            Self::Crowd => "crowd",
            Self::Churn => "churn",
            Self::Storm => "storm",
            Self::Slow => "slow",
            Self::Slowloris => "slowloris",
            Self::Hold => "hold",
            Self::Bases => "bases",
            Self::Flow => "flow",
            Self::Flood => "flood",
            Self::Latency => "latency",
            Self::Fuzz => "fuzz",
            Self::Timing => "timing",
            Self::Drills => "drills",
        }
    }
}

impl Size {
    /// The word for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
        }
    }

    /// One of two values.
    pub(crate) fn pick<T>(self, short: T, long: T) -> T {
        match self {
            Self::Short => short,
            Self::Long => long,
        }
    }

    /// A run ends within this time, whatever happens.
    pub(crate) fn run_max(self) -> Duration {
        self.pick(Duration::from_mins(2), Duration::from_mins(30))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Args::try_parse_from(line.split(' '))
    }

    #[test]
    fn all_is_every_other_run_once() {
        let args = parse("soak all --short").unwrap();

        assert_eq!(args.size(), Size::Short);
        let all: Vec<&Run> = Run::value_variants().iter().filter(|&&it| it != Run::All).collect();
        assert_eq!(args.runs().iter().collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_run_alone_is_long_unless_told() {
        let args = parse("soak churn --seed 7").unwrap();

        assert_eq!(args.runs(), [Run::Churn]);
        assert_eq!((args.size(), args.seed), (Size::Long, Some(7)));
    }

    #[test]
    fn every_run_is_called_as_its_line_is() {
        for run in Run::value_variants() {
            assert_eq!(Run::from_str(run.name(), false).as_ref(), Ok(run));
        }
        assert!(parse("soak").is_err());
        assert!(parse("soak nothing").is_err());
    }
}
