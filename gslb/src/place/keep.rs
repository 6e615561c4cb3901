//! Reads the files again when they change, and replaces the table.
//!
//! A file that cannot be used changes nothing: the table from before stays, and a metric, health
//! and the log say so until the file is mended. At the start there is no table from before, and
//! the files that can be used are; a table that lacks files gives way to one that lacks fewer. A
//! file that is wrong is read again now and then, even if it does not change: it may have been the
//! disk.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kit::clock::Clock;
use kit::health::Part;
use kit::meter::{Meter, list};
use prometheus::{IntCounter, IntGauge};
use proto::time::Mono;
use tokio_util::sync::CancellationToken;

use super::config::Config;
use super::file::Wrong;
use super::table::Place;
use crate::known::Known;

/// Between two looks at the files.
const LOOK: Duration = Duration::from_secs(5);
/// From reading a file that is wrong to reading it again if it stays as it is; it doubles up to the
/// longest one.
const AGAIN: Duration = Duration::from_secs(10);
/// See [`AGAIN`].
const AGAIN_MAX: Duration = Duration::from_secs(600);

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
    /// Files that the table in use lacks.
    lacking: BTreeSet<PathBuf>,
    /// While a file is wrong: when to read all of them again, and how long to wait after that.
    again: Option<(Mono, Duration)>,
}

#[derive(Debug)]
struct Counts {
    taken: IntCounter,
    refused: IntCounter,
    ipv4: IntGauge,
    ipv6: IntGauge,
}

/// A file's number, length, and time of change, which unlike the time of writing nobody can set
/// back; none of one that is not there.
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
        Self {
            config,
            known,
            clock,
            health,
            counts,
            seen: None,
            lacking: BTreeSet::new(),
            again: None,
        }
    }

    /// Looks until `shutdown`.
    pub(crate) async fn keep(mut self, shutdown: CancellationToken) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = self.clock.sleep(LOOK) => {}
                () = shutdown.cancelled() => return Ok(()),
            }
            tokio::select! {
                looked = self.look() => looked?,
                () = shutdown.cancelled() => return Ok(()),
            }
        }
    }

    /// Looks at the files once, and reads all of them if one changed or is to be read again.
    ///
    /// # Errors
    /// When the configuration is wrong, or the reading itself broke down.
    pub(crate) async fn look(&mut self) -> anyhow::Result<()> {
        let files = self.config.files.clone();
        let stamps = tokio::task::spawn_blocking(move || stamps(&files)).await?;
        let changed = self.seen.as_ref() != Some(&stamps);
        if !changed && self.again.is_none_or(|(at, _)| self.clock.mono() < at) {
            return Ok(());
        }
        let config = self.config.clone();
        let loaded = tokio::task::spawn_blocking(move || Place::load(&config)).await?;
        let (place, wrong) = loaded?;
        // What changed while it was read has another stamp at the next look.
        let is_first = self.seen.replace(stamps).is_none();
        let wait = self.again.filter(|_| !changed).map_or(AGAIN, |(_, wait)| wait);
        let again = (self.clock.mono() + wait, (2 * wait).min(AGAIN_MAX));
        self.again = (!wrong.is_empty()).then_some(again);
        self.tell(&wrong);
        let lacking: BTreeSet<PathBuf> = wrong.into_iter().map(|it| it.file).collect();
        let is_better = lacking.is_subset(&self.lacking) && (changed || lacking != self.lacking);
        if is_first || lacking.is_empty() || is_better {
            self.lacking = lacking;
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
        self.known.replace_place(place);
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |it: Metadata| (it.ino(), it.len(), it.ctime(), it.ctime_nsec());
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

    #[tokio::test]
    async fn a_file_that_is_mended_in_place_is_read_whatever_its_time_says() {
        let mut world = World::new();
        let path = world.folder.path().join("asn.csv");
        fs::write(&path, TELECOM.replace("4134", "zzzz")).unwrap();
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        world.look().await;
        assert_eq!(world.loads("refused"), 1);

        fs::write(&path, TELECOM).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(written).unwrap();
        world.look().await;

        assert_eq!(world.carrier(), Carrier::Telecom);
    }

    #[tokio::test]
    async fn a_file_that_is_wrong_is_read_again_less_and_less_often() {
        let mut world = World::new();
        world.write("asn.csv", "1.2");
        world.look().await;
        world.look().await;
        assert_eq!(world.loads("refused"), 1);

        let (_, wait) = world.keeper.as_ref().unwrap().again.unwrap();
        world.keeper.as_mut().unwrap().again = Some((Mono(0), wait));
        world.look().await;

        assert_eq!((world.loads("taken"), world.loads("refused")), (1, 2));
        let (_, longer) = world.keeper.as_ref().unwrap().again.unwrap();
        assert_eq!((wait, longer), (2 * AGAIN, 4 * AGAIN));
    }

    #[tokio::test]
    async fn of_two_broken_files_the_one_that_is_mended_counts() {
        let mut world = World::new();
        world.config.files.insert(0, world.folder.path().join("absent.mmdb"));
        world.write("asn.csv", "1.2");
        world.look().await;

        world.write("asn.csv", TELECOM);
        world.look().await;
        assert_eq!(world.carrier(), Carrier::Telecom);
        world.write("asn.csv", "1.2");
        world.look().await;

        assert_eq!(world.carrier(), Carrier::Telecom);
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
            self.known.sight().place.of("1.2.3.4".parse().unwrap()).carrier
        }

        fn loads(&self, outcome: &str) -> u64 {
            self.meter.counter(list::GSLB_PLACE_LOADS_TOTAL, &[outcome]).get()
        }
    }
}
