//! Reads the files again when they change, and replaces the table.
//!
//! A file that cannot be used changes nothing: the table from before stays, and a metric, health
//! and the log say so until the file is mended. At the start there is no table from before, and
//! the files that can be used are.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kit::clock::Clock;
use kit::health::Part;
use kit::meter::{Meter, list};
use prometheus::{IntCounter, IntGauge};
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::file::Wrong;
use super::table::Place;
use crate::known::Known;

/// Between two looks at the files.
const LOOK: Duration = Duration::from_secs(5);

/// The files, and how they were when they were last read.
#[derive(Debug)]
pub(crate) struct Keeper {
    config: Config,
    known: Arc<Known>,
    clock: Clock,
    health: Part,
    counts: Counts,
    /// None before the first look.
    seen: Option<Vec<Stamp>>,
}

#[derive(Debug)]
struct Counts {
    taken: IntCounter,
    refused: IntCounter,
    ipv4: IntGauge,
    ipv6: IntGauge,
}

/// A file's number, length, and time of change; none of one that is not there.
type Stamp = Option<(u64, u64, i64, i64)>;

impl Keeper {
    pub(crate) fn new(
        config: Config,
        known: Arc<Known>,
        clock: Clock,
        health: Part,
        meter: &Meter,
    ) -> Self {
        let loads = |outcome| meter.counter(list::GSLB_PLACE_LOADS_TOTAL, &[outcome]);
        let ranges = |family| meter.gauge(list::GSLB_PLACE_RANGES, &[family]);
        let counts = Counts {
            taken: loads("taken"),
            refused: loads("refused"),
            ipv4: ranges("ipv4"),
            ipv6: ranges("ipv6"),
        };
        Self { config, known, clock, health, counts, seen: None }
    }

    /// Looks until `shutdown`.
    pub(crate) async fn keep(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = self.clock.sleep(LOOK) => {}
                () = shutdown.cancelled() => return Ok(()),
            }
            self.look().await?;
        }
    }

    /// Looks at the files once, and reads all of them if one changed.
    ///
    /// # Errors
    /// When the configuration is wrong, or the reading itself broke down.
    pub(crate) async fn look(&mut self) -> anyhow::Result<()> {
        let files = self.config.files.clone();
        let stamps = tokio::task::spawn_blocking(move || stamps(&files)).await?;
        if self.seen.as_ref() == Some(&stamps) {
            return Ok(());
        }
        let config = self.config.clone();
        let loaded = tokio::task::spawn_blocking(move || Place::load(&config)).await?;
        let (place, wrong) = loaded?;
        // What changed while it was read has another stamp at the next look.
        let is_first = self.seen.replace(stamps).is_none();
        self.tell(&wrong);
        if is_first || wrong.is_empty() {
            self.replace(place);
        }
        Ok(())
    }

    fn tell(&self, wrong: &[Wrong]) {
        for file in wrong {
            self.counts.refused.inc();
            tracing::warn!(why = %file, "a file of addresses is not used");
        }
        match wrong.first() {
            Some(file) => self.health.warn(file.to_string()),
            None => self.health.ok(),
        }
    }

    fn replace(&self, place: Place) {
        let (ipv4, ipv6) = place.ranges();
        self.counts.ipv4.set(i64::try_from(ipv4).unwrap_or(i64::MAX));
        self.counts.ipv6.set(i64::try_from(ipv6).unwrap_or(i64::MAX));
        self.counts.taken.inc();
        tracing::info!(ipv4, ipv6, "the table of addresses is new");
        self.known.place.store(Arc::new(place));
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |it: Metadata| (it.ino(), it.len(), it.mtime(), it.mtime_nsec());
    let of = |file: &Path| std::fs::metadata(file).ok().map(stamp);
    files.iter().map(|it| of(it)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use auth_core::policy::Policies;
    use auth_core::ticket::TicketKeys;
    use kit::health::Health;
    use proto::address::Carrier;
    use tempfile::TempDir;

    use super::*;

    const TELECOM: &str = "1.2.0.0,1.2.255.255,4134,x\n";
    const MOBILE: &str = "1.2.0.0,1.2.255.255,9808,x\n1.3.0.0,1.3.0.255,9808,x\n";

    #[tokio::test]
    async fn a_file_that_changes_is_read_again() {
        let mut world = World::new();
        world.write("asn.csv", TELECOM);
        world.look().await;
        assert_eq!(world.carrier(), Carrier::Telecom);

        world.write("asn.csv", MOBILE);
        world.look().await;

        assert_eq!(world.carrier(), Carrier::Mobile);
        assert_eq!((world.loads("taken"), world.loads("refused")), (2, 0));
        assert_eq!(world.meter.gauge(list::GSLB_PLACE_RANGES, &["ipv4"]).get(), 3);
    }

    #[tokio::test]
    async fn a_file_that_stays_is_not_read_again() {
        let mut world = World::new();
        world.write("asn.csv", TELECOM);

        world.look().await;
        world.look().await;

        assert_eq!(world.loads("taken"), 1);
    }

    #[tokio::test]
    async fn a_broken_file_changes_nothing_until_it_is_mended() {
        let mut world = World::new();
        world.write("asn.csv", TELECOM);
        world.look().await;

        for broken in ["", "1.2.0.0,1.2.255.255,9808,x\n1.2", "1.3.0.0,1.2.0.0,9808,x\n"] {
            world.write("asn.csv", broken);
            world.look().await;
            assert_eq!(world.carrier(), Carrier::Telecom);
        }
        fs::remove_file(world.folder.path().join("asn.csv")).unwrap();
        world.look().await;
        assert_eq!(world.carrier(), Carrier::Telecom);
        assert_eq!((world.loads("taken"), world.loads("refused")), (1, 4));
        let warnings = world.health.warnings();
        assert!(warnings[0].1.contains("asn.csv: it cannot be read"), "{warnings:?}");

        world.write("asn.csv", MOBILE);
        world.look().await;

        assert_eq!(world.carrier(), Carrier::Mobile);
        assert_eq!(world.health.warnings(), []);
    }

    #[tokio::test]
    async fn at_the_start_the_files_that_can_be_used_are() {
        let mut world = World::new();
        world.config.files.insert(0, world.folder.path().join("absent.mmdb"));
        world.write("asn.csv", TELECOM);

        world.look().await;

        assert_eq!(world.carrier(), Carrier::Telecom);
        assert_eq!(world.health.failures(), []);
        assert!(world.health.warnings()[0].1.contains("absent.mmdb"));
    }

    /// A gslb that has one file.
    struct World {
        folder: TempDir,
        config: Config,
        known: Arc<Known>,
        health: Health,
        meter: Meter,
        keeper: Option<Keeper>,
    }

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let tickets = TicketKeys::new(&[], &Default::default(), None).unwrap();
            Self {
                config: Config { files: vec![folder.path().join("asn.csv")], ..Config::default() },
                folder,
                known: Arc::new(Known::new(tickets, Policies::new(&[]), 1)),
                health: Health::default(),
                meter: Meter::new(),
                keeper: None,
            }
        }

        /// Replaces a file as operators should: the new one is another file.
        fn write(&self, name: &str, text: &str) {
            let new = self.folder.path().join("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, self.folder.path().join(name)).unwrap();
        }

        async fn look(&mut self) {
            let keeper = self.keeper.get_or_insert_with(|| {
                let part = self.health.part("gslb.place");
                let (config, known) = (self.config.clone(), Arc::clone(&self.known));
                Keeper::new(config, known, Clock::system(), part, &self.meter)
            });
            keeper.look().await.unwrap();
        }

        fn carrier(&self) -> Carrier {
            self.known.place.load().of("1.2.3.4".parse().unwrap()).carrier
        }

        fn loads(&self, outcome: &str) -> u64 {
            self.meter.counter(list::GSLB_PLACE_LOADS_TOTAL, &[outcome]).get()
        }
    }
}
