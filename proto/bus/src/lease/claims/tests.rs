//! Members of one log, in virtual time.

use proptest::prelude::*;

use super::*;

/// Milliseconds between two turns of a member.
const STEP_MS: u64 = 10;

#[test]
fn a_lone_member_gains_everything_at_once() {
    let mut world = World::new(16);
    world.start(1);

    world.run(30);

    assert_eq!(world.held(1).len(), 16);
}

#[test]
fn a_lone_member_keeps_its_terms() {
    let mut world = World::new(4);
    world.start(1);
    world.run(30);
    let before = world.held(1);

    world.run(60_000);

    assert_eq!(world.held(1), before);
    assert_eq!(world.changes, 4);
}

#[test]
fn a_second_member_gets_its_half_within_two_renewals() {
    let mut world = World::new(16);
    world.start(1);
    world.run(1000);
    world.start(2);

    world.run(1000);

    assert_eq!((world.held(1).len(), world.held(2).len()), (8, 8));
}

#[test]
fn shares_differ_by_the_rounding_only_and_then_rest() {
    let mut world = World::new(16);
    for node in 1..=3 {
        world.start(node);
    }
    world.run(5000);
    let changes = world.changes;

    world.run(60_000);

    let mut shares = [1, 2, 3].map(|it| world.held(it).len());
    shares.sort_unstable();
    assert_eq!(shares, [4, 6, 6]);
    assert_eq!(world.changes, changes);
}

#[test]
fn members_beyond_the_partitions_hold_nothing() {
    let mut world = World::new(1);
    world.start(1);
    world.run(1000);
    world.start(2);

    world.run(5000);

    assert_eq!((world.held(1).len(), world.held(2).len()), (1, 0));
}

#[test]
fn a_dead_members_partitions_are_taken_over_within_2500_ms() {
    let mut world = World::new(16);
    world.start(1);
    world.start(2);
    world.run(5000);

    world.stop(2);
    world.run(2500);

    assert_eq!(world.held(1).len(), 16);
}

#[test]
fn a_member_that_leaves_is_followed_at_once() {
    let mut world = World::new(16);
    world.start(1);
    world.start(2);
    world.run(5000);

    world.leave(2);
    world.run(50);

    assert_eq!(world.held(1).len(), 16);
    assert!(world.held(2).is_empty());
}

#[test]
fn a_stopped_member_hears_of_its_loss_first_and_takes_nothing_from_the_living() {
    let mut world = World::new(4);
    world.start(1);
    world.run(1000);
    world.start(2);
    world.run(2000);
    world.stop(2);
    world.run(3000);
    let taken_over = world.held(1);

    world.resume(2);
    world.turn_of(2);

    assert!(world.held(2).is_empty());
    assert_eq!(world.held(1), taken_over);
    world.run(2000);
    assert_eq!((world.held(1).len(), world.held(2).len()), (2, 2));
}

#[test]
fn a_member_that_cannot_append_stops_before_others_begin() {
    let mut world = World::new(4);
    world.start(1);
    world.run(1000);

    world.member(1).is_cut_off = true;
    world.run(2000);
    assert!(world.held(1).is_empty());

    world.member(1).is_cut_off = false;
    world.run(1000);
    assert_eq!(world.held(1).len(), 4);
}

#[test]
fn a_restarted_member_takes_its_own_claims_over_at_once_with_newer_terms() {
    let mut world = World::new(4);
    world.start(1);
    world.run(1000);
    let before = world.held(1);

    world.stop(1);
    world.start(1);
    world.run(50);

    let after = world.held(1);
    assert_eq!(after.len(), 4);
    assert!(before.iter().zip(&after).all(|(old, new)| old.1 < new.1));
}

#[test]
fn claims_on_partitions_that_do_not_exist_are_ignored() {
    let mut claims = Claims::new(NodeId(1), 4, Mono(0));
    let claim = Claim { partition: PartitionNo(5), term: Term(u64::MAX), is_alive: true };

    claims.handle(Input::Seen { claim, node: NodeId(2) }, Mono(0));
    claims.tick(Mono(0));

    let seat = Claim { partition: PartitionNo(4), term: Term(1), is_alive: true };
    assert_eq!(claims.poll(), Some(Output::Put(seat)));
    assert_eq!(claims.poll(), None);
}

#[derive(Clone, Debug)]
enum Act {
    Start(u32),
    Stop(u32),
    Resume(u32),
    CutOff(u32),
    Mend(u32),
    Leave(u32),
    Run(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let node = 1..=4_u32;
    prop_oneof![
        node.clone().prop_map(Act::Start),
        node.clone().prop_map(Act::Stop),
        node.clone().prop_map(Act::Resume),
        node.clone().prop_map(Act::CutOff),
        node.clone().prop_map(Act::Mend),
        node.prop_map(Act::Leave),
        (0..4000_u64).prop_map(Act::Run),
    ]
}

proptest! {
    /// `World` checks after every turn that no partition has two holders whose claims are alive,
    /// and that no term is gained twice.
    #[test]
    fn whatever_happens_there_is_one_owner_and_in_the_end_everything_is_owned(
        acts in prop::collection::vec(act(), 1..30),
    ) {
        let mut world = World::new(5);
        for act in acts {
            match act {
                Act::Start(node) => world.start(node),
                Act::Stop(node) => world.stop(node),
                Act::Resume(node) => world.resume(node),
                Act::CutOff(node) => world.cut_off(node, true),
                Act::Mend(node) => world.cut_off(node, false),
                Act::Leave(node) => world.leave(node),
                Act::Run(ms) => world.run(ms),
            }
        }
        world.start(9);

        world.run(10_000);

        prop_assert_eq!(world.owned(), 5);
    }
}

/// Members, and the log between them.
struct World {
    partitions: u32,
    now: Mono,
    log: Vec<(NodeId, Claim)>,
    members: BTreeMap<u32, Member>,
    terms: BTreeMap<(PartitionNo, Term), u32>,
    changes: usize,
}

struct Member {
    claims: Claims,
    read: usize,
    is_running: bool,
    is_cut_off: bool,
}

impl World {
    fn new(partitions: u32) -> Self {
        Self {
            partitions,
            now: Mono(1000),
            log: vec![],
            members: BTreeMap::new(),
            terms: BTreeMap::new(),
            changes: 0,
        }
    }

    /// A new life of `node`; the old one, if it runs, ends.
    fn start(&mut self, node: u32) {
        let claims = Claims::new(NodeId(node), self.partitions, self.now);
        let member = Member { claims, read: 0, is_running: true, is_cut_off: false };
        self.members.insert(node, member);
        self.turn_of(node);
    }

    fn member(&mut self, node: u32) -> &mut Member {
        self.members.get_mut(&node).unwrap()
    }

    fn stop(&mut self, node: u32) {
        if let Some(member) = self.members.get_mut(&node) {
            member.is_running = false;
        }
    }

    fn resume(&mut self, node: u32) {
        if let Some(member) = self.members.get_mut(&node) {
            member.is_running = true;
        }
    }

    fn cut_off(&mut self, node: u32, is_cut_off: bool) {
        if let Some(member) = self.members.get_mut(&node) {
            member.is_cut_off = is_cut_off;
        }
    }

    fn leave(&mut self, node: u32) {
        let now = self.now;
        if let Some(member) = self.members.get_mut(&node).filter(|it| it.is_running) {
            member.claims.handle(Input::Leave, now);
            self.turn_of(node);
            self.members.remove(&node);
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms / STEP_MS {
            self.now = self.now + Duration::from_millis(STEP_MS);
            for node in self.members.keys().copied().collect::<Vec<_>>() {
                self.turn_of(node);
            }
            self.check();
        }
    }

    /// As the loop around the machine: decide, append, read.
    fn turn_of(&mut self, node: u32) {
        let Self { now, log, members, terms, changes, .. } = self;
        let member = members.get_mut(&node).unwrap();
        if !member.is_running {
            return;
        }
        member.claims.tick(*now);
        while let Some(output) = member.claims.poll() {
            match output {
                Output::Put(claim) if member.is_cut_off => {
                    member.claims.handle(Input::Failed { claim }, *now);
                }
                Output::Put(claim) => {
                    log.push((NodeId(node), claim));
                    member.claims.handle(Input::Kept { claim, sent: *now }, *now);
                }
                Output::Gained { partition, term } => {
                    *changes += 1;
                    let gained = terms.entry((partition, term)).or_default();
                    *gained += 1;
                    assert_eq!(*gained, 1, "{term:?} of {partition:?} was gained twice");
                }
                Output::Lost { .. } => *changes += 1,
            }
        }
        if !member.is_cut_off {
            for &(node, claim) in &log[member.read..] {
                member.claims.handle(Input::Seen { claim, node }, *now);
            }
            member.read = log.len();
        }
    }

    /// Of all that think they hold a partition, stopped ones aside, one at most.
    fn check(&self) {
        let running = self.members.values().filter(|it| it.is_running);
        let mut held: Vec<_> = running.flat_map(|it| it.claims.held()).map(|it| it.0).collect();
        let all = held.len();
        held.sort_unstable();
        held.dedup();
        assert!(held.len() == all || self.is_overtaking(), "two owners at {:?}", self.now);
    }

    /// A restarted member takes over from its own other life, and of two that claim at the same
    /// time the one with the higher term may come second: the other hears of it in its next turn.
    fn is_overtaking(&self) -> bool {
        self.members.values().any(|it| it.is_running && it.read < self.log.len())
    }

    fn held(&self, node: u32) -> Vec<(PartitionNo, Term)> {
        self.members.get(&node).map(|it| it.claims.held().collect()).unwrap_or_default()
    }

    fn owned(&self) -> usize {
        let running = self.members.values().filter(|it| it.is_running && !it.is_cut_off);
        let mut held: Vec<_> = running.flat_map(|it| it.claims.held()).map(|it| it.0).collect();
        held.sort_unstable();
        held.dedup();
        held.len()
    }
}
