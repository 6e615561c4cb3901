//! What the workers of a node say, as one report: a machine that holds each one's last word.

use std::time::Duration;

use proto::address::Address;
use proto::load::{Load, LoadReport};
use proto::time::{Mono, Wall};

/// A worker that says nothing for so long is left out: it hangs, or its end is not known yet.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);

/// A full worker takes viewers again when it has less than so many percent of its sessions: one whose
/// viewers come and go would be named and left out with each report.
const ROOM_PERCENT: u64 = 98;

/// The last word of each worker.
#[derive(Debug)]
pub(super) struct Gather {
    words: Vec<Option<Word>>,
}

#[derive(Debug)]
struct Word {
    at: Mono,
    report: LoadReport,
    /// It had no place lately, and has few.
    is_full: bool,
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
        let before = self.words[no].as_ref();
        if before.is_some_and(|it| stamp(&report) <= stamp(&it.report)) {
            return Err(Replayed);
        }
        let was_full = before.is_some_and(|it| it.is_full);
        let word = Word { at: now, is_full: is_full(&report.load, was_full), report };
        let news = before.map_or(News::Urgent, |it| news(it, &word));
        self.words[no] = Some(word);
        Ok(news)
    }

    /// When a worker was heard last, if it was.
    pub(super) fn heard_at(&self, no: usize) -> Option<Mono> {
        self.words[no].as_ref().map(|it| it.at)
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
        let heard: Vec<&Word> = heard.collect();
        let draining = heard.iter().all(|it| it.report.load.draining);
        let staying = heard.iter().filter(|it| draining || !it.report.load.draining);
        let staying: Vec<&Word> = staying.copied().collect();
        let is_full = staying.iter().all(|it| it.is_full);
        let open = || staying.iter().filter(|it| is_full || !it.is_full).map(|it| &it.report);
        let load = staying.iter().map(|it| it.report.load).reduce(sum)?;
        let besieged = heard.iter().any(|it| it.report.load.besieged);
        Some(Gathered {
            addresses: open().flat_map(|it| it.addresses.clone()).collect(),
            reserve: open().flat_map(|it| it.reserve.clone()).collect(),
            load: Load { besieged, ..load },
        })
    }
}

/// What a worker's word changes.
fn news(old: &Word, new: &Word) -> News {
    let (was, is) = (&old.report, &new.report);
    let takes = |it: &Word| (it.report.load.draining, it.report.load.besieged, it.is_full);
    if takes(old) != takes(new) {
        News::Urgent
    } else if was.load != is.load || stated(was) != stated(is) {
        News::Some
    } else {
        News::None
    }
}

fn is_full(load: &Load, was_full: bool) -> bool {
    let (sessions, max) = (u64::from(load.sessions), u64::from(load.sessions_max));
    sessions >= max || was_full && sessions * 100 >= max * ROOM_PERCENT
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
    fn a_full_worker_is_named_again_when_it_has_room_for_some() {
        let load = |sessions| Load { sessions, sessions_max: 100, ..Load::default() };
        let mut gather = gather(&[load(100), load(50)]);
        let mut hear = |counter, sessions| {
            let news = gather.hear(0, report(1, counter, load(sessions)), Mono(0)).unwrap();
            (news, ports(&gather))
        };

        assert_eq!(hear(2, 99), (News::Some, vec![2]));
        assert_eq!(hear(3, 98), (News::Some, vec![2]));
        assert_eq!(hear(4, 97), (News::Urgent, vec![1, 2]));
        assert_eq!(hear(5, 99), (News::Some, vec![1, 2]));
        assert_eq!(hear(6, 100), (News::Urgent, vec![2]));
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
