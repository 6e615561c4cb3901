//! Item ids that are never used twice, even when the wall clock steps back.

use proto::id::ItemId;
use proto::time::Wall;

/// Shards there may be: 10 bits of an id.
pub const SHARDS_MAX: u16 = 1 << 10;
/// Ids of one shard and millisecond: 12 bits of an id.
const PER_MS_MAX: u16 = 1 << 12;

/// Where a shard's ids come from.
#[derive(Clone, Debug)]
pub struct Ids {
    shard: u16,
    /// Never falls. Runs ahead of the clock while ids are drawn faster than milliseconds pass.
    ms: u64,
    /// Next free one within `ms`.
    counter: u16,
}

impl Ids {
    /// Ids of `shard` (less than [`SHARDS_MAX`]), all of them later than `floor`.
    #[must_use]
    pub const fn new(shard: u16, floor: Wall) -> Self {
        Self { shard, ms: floor.0, counter: PER_MS_MAX }
    }

    /// The next id.
    pub fn next(&mut self, now: Wall) -> ItemId {
        if now.0 > self.ms {
            (self.ms, self.counter) = (now.0, 0);
        } else if self.counter == PER_MS_MAX {
            (self.ms, self.counter) = (self.ms + 1, 0);
        }
        self.counter += 1;
        ItemId::compose(self.ms, self.shard, self.counter - 1)
    }

    /// No id drawn so far is later than this.
    #[must_use]
    pub const fn floor(&self) -> Wall {
        Wall(self.ms)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_restart_begins_behind_its_floor() {
        let mut before = Ids::new(3, Wall(0));
        let last = before.next(Wall(1_800_000_000_000));

        let first = Ids::new(3, before.floor()).next(Wall(1_700_000_000_000));

        assert!(first > last);
    }

    proptest! {
        #[test]
        fn ids_rise_whatever_the_clock_does(
            steps in proptest::collection::vec((1_700_000_000_000_u64..1_700_000_000_050, 1..5000_u32), 1..20)
        ) {
            let mut ids = Ids::new(1023, Wall(0));
            let mut last = ItemId(0);

            for (now, count) in steps {
                for _ in 0..count {
                    let id = ids.next(Wall(now));
                    prop_assert!(id > last);
                    last = id;
                }
            }
        }
    }
}
