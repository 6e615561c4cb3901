//! Random worlds against `Merge`: pushes, segments, repeats, reconnects and switches in any
//! interleaving give each item exactly once and in order; what is lost is told.

mod world;

use proptest::prelude::*;
use proto::frame::{Path, Place, Resumed};
use proto::heat::Heat;
use proto::id::{Gen, ItemId, Seq, SlotNo};
use proto::item::Placed;
use proto::time::Mono;
use sdk_core::merge::{Input, Limits, Merge, Output, Via};

use world::{Frame, World, world};

const GEN: Gen = Gen(7);
const MS_A_STEP: u64 = 3;

/// A viewer under test, with everything it was given.
struct Viewer {
    merge: Merge,
    now: Mono,
    shown: Vec<(Place, ItemId, Via)>,
    gaps: Vec<(Place, Place, Option<u32>)>,
    wanted: Vec<SlotNo>,
}

impl Viewer {
    fn new(path: Path) -> Self {
        let mut viewer = Self {
            merge: Merge::new(Limits::default()),
            now: Mono(0),
            shown: Vec::new(),
            gaps: Vec::new(),
            wanted: Vec::new(),
        };
        viewer.handle(Input::Joined { path, resumed: Resumed::Fresh });
        viewer
    }

    fn handle(&mut self, input: Input) {
        self.now = Mono(self.now.0 + MS_A_STEP);
        self.merge.handle(input, self.now);
        self.drain();
    }

    fn frame(&mut self, frame: &Frame) {
        self.handle(match frame.clone() {
            Frame::Batch(batch) => Input::Batch(batch),
            Frame::Seal(seal) => Input::Seal(seal),
            Frame::Heat { heat, slot } => Input::Heat { heat, gen_no: GEN, slot },
        });
    }

    /// Lets every wait run out.
    fn finish(&mut self) {
        while let Some(deadline) = self.merge.deadline() {
            self.now = self.now.max(deadline);
            self.merge.tick(self.now);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.merge.poll() {
            match output {
                Output::Show(it) => self.shown.push((it.place, it.item.id, it.via)),
                Output::Fetch { slot, .. } => self.wanted.push(slot),
                Output::Gap { from, to, items } => self.gaps.push((from, to, items)),
                Output::Recall(_) => {}
            }
        }
    }

    fn ids(&self) -> Vec<ItemId> {
        self.shown.iter().map(|&(_, id, _)| id).collect()
    }

    fn assert_in_order(&self) -> Result<(), TestCaseError> {
        for pair in self.shown.windows(2) {
            prop_assert!(pair[0].0 < pair[1].0, "{:?} then {:?}", pair[0].0, pair[1].0);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn pushes_with_repeats_and_reconnects_give_each_item_once_in_order(
        world in world(),
        late_seals: bool,
        script in script(),
    ) {
        let frames = world.frames(late_seals);
        let mut viewer = Viewer::new(Path::Push);
        let mut next: usize = 0;

        for choice in script.iter().cycle().take(1_000) {
            match choice % 16 {
                // A takeover sends its last flushes again.
                0 if next > 0 => viewer.frame(&frames[next.saturating_sub(2)]),
                1 => next = resume(&mut viewer, &frames, next, usize::from(*choice) / 16),
                2 => answer(&mut viewer, &world),
                _ if next < frames.len() => {
                    viewer.frame(&frames[next]);
                    next += 1;
                }
                _ => break,
            }
        }
        frames[next..].iter().for_each(|it| viewer.frame(it));
        while !viewer.wanted.is_empty() {
            answer(&mut viewer, &world);
        }
        viewer.finish();

        prop_assert_eq!(viewer.ids(), world.ids_from(0));
        viewer.assert_in_order()?;
        prop_assert_eq!(viewer.gaps, []);
    }

    #[test]
    fn polling_loses_only_what_no_segment_repeats_and_tells_it(
        world in world(),
        script in script(),
    ) {
        let mut viewer = Viewer::new(Path::Segments);
        let mut script = script.into_iter().cycle();
        let lost: Vec<bool> = world.slots.iter().map(|_| script.next() < Some(64)).collect();

        for slot in 0..world.slots.len() {
            if lost[slot] {
                viewer.handle(Input::Lost { gen_no: GEN, slot: SlotNo(slot as u64) });
            } else {
                viewer.handle(Input::Segment(world.segment(slot)));
            }
            if script.next() < Some(64) && slot > 0 && !lost[slot - 1] {
                viewer.handle(Input::Segment(world.segment(slot - 1)));
            }
        }
        viewer.finish();

        let arrives = |slot: usize, it: &Placed| {
            !lost[slot] || (it.item.lane.is_protected() && lost.get(slot + 1) == Some(&false))
        };
        let mut expected = Vec::new();
        let mut missing = Vec::new();
        for slot in 0..world.slots.len() {
            for placed in world.items(slot) {
                if arrives(slot, placed) {
                    expected.push(placed.item.id);
                } else {
                    missing.push(placed.seq);
                }
            }
        }
        prop_assert_eq!(viewer.ids(), expected);
        viewer.assert_in_order()?;
        // Nobody misses what was before the first segment that came.
        let entered = lost.iter().position(|it| !it).unwrap_or(lost.len());
        let first = (entered..lost.len()).flat_map(|it| world.items(it)).map(|it| it.seq).next();
        let closing = viewer.shown.iter().filter(|it| !world_repeats(&world, &lost, it.0.seq));
        let last = closing.map(|it| it.0.seq).max();
        for seq in missing.into_iter().filter(|&it| Some(it) > first && Some(it) < last) {
            prop_assert!(
                viewer.gaps.iter().any(|(from, to, _)| from.seq <= seq && seq < to.seq),
                "{seq} is in none of {:?}", viewer.gaps
            );
        }
        if !lost.contains(&true) {
            prop_assert_eq!(viewer.gaps, []);
        }
    }

    #[test]
    fn switching_between_push_and_segments_loses_and_repeats_nothing(
        world in world(),
        switches in prop::collection::vec(2_usize..5, 1..4),
        lag in 1_usize..3,
        script in script(),
    ) {
        let mut viewer = Viewer::new(Path::Push);
        let mut hot = false;
        let mut heats = std::collections::BTreeMap::new();
        let mut at = 0;
        for gap in switches {
            at += gap;
            hot = !hot;
            heats.insert(at, if hot { Heat::Hot } else { Heat::Cold });
        }
        let heat_at = |slot: usize| heats.range(..=slot).next_back().map_or(Heat::Cold, |it| *it.1);
        let mut script = script.into_iter().cycle();
        let mut polled = Vec::new();

        for slot in 0..world.slots.len() {
            // Announced one slot ahead, in the stream.
            if let Some(&heat) = heats.get(&(slot + 1)) {
                viewer.frame(&Frame::Heat { heat, slot: SlotNo(slot as u64 + 1) });
            }
            for frame in frames_of(&world, slot) {
                // A link may push a hot room's protected flushes too: they change nothing.
                if heat_at(slot) == Heat::Cold || script.next() < Some(40) {
                    viewer.frame(&frame);
                }
                if polled.len() > lag || script.next() < Some(40) {
                    deliver(&mut viewer, &world, &mut polled);
                }
            }
            if heat_at(slot) == Heat::Hot || heat_at(slot + 1) == Heat::Hot {
                polled.push(slot);
            }
        }
        while !polled.is_empty() {
            deliver(&mut viewer, &world, &mut polled);
        }
        viewer.finish();

        prop_assert_eq!(viewer.ids(), world.ids_from(0));
        viewer.assert_in_order()?;
        prop_assert_eq!(viewer.gaps, []);
    }

    #[test]
    fn any_order_of_any_inputs_keeps_the_promises(world in world(), script in script()) {
        let frames = world.frames(false);
        let mut viewer = Viewer::new(Path::Push);

        for (step, &choice) in script.iter().enumerate() {
            let pick = usize::from(choice) + step * 31;
            let slot = pick % world.slots.len();
            let slot_no = SlotNo(slot as u64);
            match choice % 8 {
                0 => viewer.handle(Input::Segment(world.segment(slot))),
                1 => viewer.handle(Input::Lost { gen_no: GEN, slot: slot_no }),
                2 => viewer.frame(&Frame::Heat { heat: Heat::Hot, slot: slot_no }),
                3 => viewer.frame(&Frame::Heat { heat: Heat::Cold, slot: slot_no }),
                4 => viewer.handle(Input::Joined { path: Path::Push, resumed: Resumed::Fresh }),
                5 => viewer.handle(Input::Skipped { items: 1 }),
                _ => viewer.frame(&frames[pick % frames.len()]),
            }
        }
        viewer.finish();

        let mut ids = viewer.ids();
        let total = ids.len();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), total);
        let mut high = None;
        for &(place, id, _) in &viewer.shown {
            prop_assert!(Some(place) > high || is_protected(&world, id));
            high = high.max(Some(place));
        }
    }
}

/// Reconnects: the link has everything behind the cursor, or lost the older part of it.
fn resume(viewer: &mut Viewer, frames: &[Frame], next: usize, forgotten: usize) -> usize {
    let Some(cursor) = viewer.merge.cursor() else {
        return next;
    };
    let is_behind = |it: &Frame| match it {
        Frame::Batch(batch) => batch.items.last().is_some_and(|it| it.seq > cursor.seq),
        Frame::Seal(_) | Frame::Heat { .. } => false,
    };
    let kept_from = frames[..next].iter().position(is_behind).unwrap_or(next);
    let from = (kept_from + forgotten).min(next);
    let lost_items = frames[kept_from..from].iter().any(is_behind);
    let resumed = if lost_items {
        let to = Place { gen_no: GEN, seq: Seq(u64::MAX) };
        Resumed::Gap { from: Place { gen_no: GEN, seq: Seq(cursor.seq.0 + 1) }, to }
    } else {
        Resumed::Recovered { items: 0 }
    };
    viewer.handle(Input::Joined { path: Path::Push, resumed });
    from
}

/// One wanted segment comes.
fn answer(viewer: &mut Viewer, world: &World) {
    if !viewer.wanted.is_empty() {
        let slot = viewer.wanted.remove(0);
        let slot = usize::try_from(slot.0).expect("few slots");
        viewer.handle(Input::Segment(world.segment(slot)));
    }
}

fn deliver(viewer: &mut Viewer, world: &World, polled: &mut Vec<usize>) {
    if !polled.is_empty() {
        viewer.handle(Input::Segment(world.segment(polled.remove(0))));
    }
}

fn frames_of(world: &World, slot: usize) -> Vec<Frame> {
    let all = world.frames(false);
    let of_slot = |it: &Frame| match it {
        Frame::Batch(batch) => batch.slot == SlotNo(slot as u64),
        Frame::Seal(seal) => seal.slot == SlotNo(slot as u64),
        Frame::Heat { .. } => false,
    };
    all.into_iter().filter(of_slot).collect()
}

/// Whether `seq` belongs to a lost slot, so that it can only have come as a repeat.
fn world_repeats(world: &World, lost: &[bool], seq: Seq) -> bool {
    (0..lost.len()).any(|slot| lost[slot] && world.items(slot).any(|it| it.seq == seq))
}

fn is_protected(world: &World, id: ItemId) -> bool {
    let mut all = (0..world.slots.len()).flat_map(|it| world.items(it));
    all.any(|it| it.item.id == id && it.item.lane.is_protected())
}

fn script() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..200)
}

/// A failing case is printed; it is written down as a test, not as a file.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
