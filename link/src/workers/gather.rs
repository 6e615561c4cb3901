//! What the workers of a node say, as one report: a machine that holds each one's last word.

use std::time::Duration;

use proto::address::Address;
use proto::load::{Load, LoadReport};
use proto::time::{Mono, Wall};

/// A worker that says nothing for so long is left out: it hangs, or its end is not known yet.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The last word of each worker.
#[derive(Debug)]
pub(super) struct Gather {
    words: Vec<Option<Word>>,
}

#[derive(Debug)]
struct Word {
    at: Mono,
    report: LoadReport,
}

/// What a report changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum News {
    /// Nothing: it is a sign of life.
    None,
    /// Numbers, or addresses.
    Some,
    /// Whether the worker takes viewers.
    Urgent,
}

/// The report is not newer than one that was heard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Replayed;

/// What the node says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gathered {
    pub(super) addresses: Vec<Address>,
    pub(super) reserve: Vec<Address>,
    pub(super) load: Load,
}

impl Gather {
    pub(super) fn new(workers: u8) -> Self {
        Self { words: (0..workers).map(|_| None).collect() }
    }

    /// Hears a report of the worker with this number, of those that there are.
    pub(super) fn hear(
        &mut self,
        no: usize,
        report: LoadReport,
        now: Mono,
    ) -> Result<News, Replayed> {
        let stamp = |it: &LoadReport| (it.start, it.counter);
        let Some(before) = self.words[no].replace(Word { at: now, report }) else {
            return Ok(News::Urgent);
        };
        let word = self.words[no].as_mut().expect("it was put there just now");
        if stamp(&word.report) <= stamp(&before.report) {
            *word = before;
            return Err(Replayed);
        }
        let (old, new) = (&before.report, &word.report);
        let takes = |it: &Load| (it.draining, it.besieged, it.sessions < it.sessions_max);
        Ok(if takes(&old.load) != takes(&new.load) {
            News::Urgent
        } else if old.load != new.load || stated(old) != stated(new) {
            News::Some
        } else {
            News::None
        })
    }

    /// Forgets a worker that has ended.
    pub(super) fn forget(&mut self, no: usize) {
        self.words[no] = None;
    }

    /// The report of all that were heard lately; none if there is nobody.
    ///
    /// Viewers are sent to workers that take them. One that drains alone takes its places and its
    /// sessions with it; what is attacked is the machine.
    pub(super) fn gathered(&self, now: Mono) -> Option<Gathered> {
        let heard = self.words.iter().flatten().filter(|it| now.since(it.at) <= SILENCE_MAX);
        let heard: Vec<&LoadReport> = heard.map(|it| &it.report).collect();
        let draining = heard.iter().all(|it| it.load.draining);
        let staying = |it: &&&LoadReport| draining || !it.load.draining;
        let has_room = |it: &LoadReport| it.load.sessions < it.load.sessions_max;
        let is_full = !heard.iter().filter(staying).any(|it| has_room(it));
        let open = || heard.iter().filter(staying).filter(move |it| is_full || has_room(it));
        let load = heard.iter().filter(staying).map(|it| it.load).reduce(sum)?;
        let besieged = heard.iter().any(|it| it.load.besieged);
        Some(Gathered {
            addresses: open().flat_map(|it| it.addresses.clone()).collect(),
            reserve: open().flat_map(|it| it.reserve.clone()).collect(),
            load: Load { besieged, ..load },
        })
    }
}

fn stated(report: &LoadReport) -> (&[Address], &[Address], Wall) {
    (&report.addresses, &report.reserve, report.start)
}

/// What two workers carry. Each counts the CPU time that it takes in thousandths of the machine's.
fn sum(a: Load, b: Load) -> Load {
    Load {
        sessions: a.sessions.saturating_add(b.sessions),
        sessions_max: a.sessions_max.saturating_add(b.sessions_max),
        handshakes: a.handshakes.saturating_add(b.handshakes),
        handshakes_per_s: a.handshakes_per_s.saturating_add(b.handshakes_per_s),
        handshakes_per_s_max: a.handshakes_per_s_max.saturating_add(b.handshakes_per_s_max),
        egress_bps: a.egress_bps.saturating_add(b.egress_bps),
        cpu_permille: a.cpu_permille.saturating_add(b.cpu_permille).min(1000),
        accept_queue: a.accept_queue.saturating_add(b.accept_queue),
        draining: a.draining,
        besieged: a.besieged || b.besieged,
    }
}

#[cfg(test)]
mod tests {
    use proto::address::{Carrier, Transport};
    use proto::id::{NodeId, UnitId};

    use super::*;

    fn report(port: u16, counter: u64, load: Load) -> LoadReport {
        let address = Address {
            host: "127.0.0.1".to_owned(),
            port,
            transport: Transport::Tls,
            carrier: Carrier::Bgp,
            machine_room: String::new(),
        };
        LoadReport {
            node: NodeId(1),
            unit: UnitId(0),
            region: String::new(),
            counter,
            start: Wall(1),
            addresses: vec![address],
            reserve: Vec::new(),
            load,
        }
    }

    fn load(sessions: u32) -> Load {
        Load { sessions, sessions_max: 10, cpu_permille: 400, ..Load::default() }
    }

    fn gather(loads: &[Load]) -> Gather {
        let mut gather = Gather::new(8);
        for (no, (port, &load)) in (1..).zip(loads).enumerate() {
            gather.hear(no, report(port, 1, load), Mono(0)).unwrap();
        }
        gather
    }

    fn ports(gather: &Gather) -> Vec<u16> {
        gather.gathered(Mono(0)).unwrap().addresses.iter().map(|it| it.port).collect()
    }

    #[test]
    fn loads_add_up_and_addresses_are_put_together() {
        let gather = gather(&[load(3), load(4), load(5)]);

        let Gathered { load, .. } = gather.gathered(Mono(0)).unwrap();

        assert_eq!((load.sessions, load.sessions_max, load.cpu_permille), (12, 30, 1000));
        assert_eq!(ports(&gather), [1, 2, 3]);
    }

    #[test]
    fn a_worker_that_is_full_is_not_named_while_another_has_room() {
        assert_eq!(ports(&gather(&[load(10), load(9)])), [2]);
        assert_eq!(ports(&gather(&[load(10), load(10)])), [1, 2]);
    }

    #[test]
    fn a_worker_that_drains_alone_takes_no_viewers_and_the_node_does() {
        let draining = Load { draining: true, ..load(7) };

        let one = gather(&[draining, load(1)]);
        let all = gather(&[draining, draining]);

        assert_eq!(ports(&one), [2]);
        assert_eq!(one.gathered(Mono(0)).unwrap().load, load(1));
        assert_eq!(ports(&all), [1, 2]);
        let load = all.gathered(Mono(0)).unwrap().load;
        assert_eq!((load.draining, load.sessions), (true, 14));
    }

    #[test]
    fn a_node_is_besieged_where_one_of_its_workers_is() {
        let besieged = Load { besieged: true, ..load(1) };

        let all = gather(&[load(1), besieged]).gathered(Mono(0)).unwrap().load;

        assert!(all.besieged);
    }

    #[test]
    fn who_ended_or_is_silent_is_left_out() {
        let mut gather = gather(&[load(1), load(2)]);
        let later = Mono(0) + SILENCE_MAX + Duration::from_millis(1);
        gather.hear(1, report(2, 2, load(2)), later).unwrap();

        assert_eq!(gather.gathered(later).unwrap().load.sessions, 2);
        gather.forget(1);
        assert_eq!(gather.gathered(later), None);
    }

    #[test]
    fn only_what_is_newer_counts_and_what_it_changes_is_told() {
        let mut gather = gather(&[load(1)]);
        let mut hear = |counter, load| gather.hear(0, report(1, counter, load), Mono(0));

        assert_eq!(hear(1, load(1)), Err(Replayed));
        assert_eq!(hear(2, load(1)), Ok(News::None));
        assert_eq!(hear(3, load(2)), Ok(News::Some));
        assert_eq!(hear(4, load(10)), Ok(News::Urgent));
        assert_eq!(hear(5, Load { draining: true, ..load(10) }), Ok(News::Urgent));
        assert_eq!(hear(4, load(1)), Err(Replayed));
    }
}
