//! What nodes said of one key within the last second.

use std::collections::{BTreeMap, VecDeque};

use proto::id::NodeId;
use proto::time::{Wall, millis};

use super::{Seen, Use, WINDOW};

/// Cells of a window. One more is kept: the oldest counts for the part that is still inside.
const CELLS: u64 = 10;

/// One key's recent past.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// What passed, by tenths of the window.
    cells: VecDeque<Cell>,
    /// What each node wanted, and when it said so.
    wants: BTreeMap<NodeId, (u32, Wall)>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    number: u64,
    passed: u64,
}

impl Window {
    /// Takes in what a node says.
    pub(super) fn add(&mut self, node: NodeId, told: &Use, now: Wall) {
        let number = now.0 / cell_ms();
        // Also what a clock that was set back left in the future.
        self.cells.retain(|it| it.number.abs_diff(number) <= CELLS);
        self.wants.retain(|_, (_, said)| is_recent(*said, now));
        self.wants.insert(node, (told.wanted_per_s, now));
        let index = self.cells.partition_point(|it| it.number < number);
        if self.cells.get(index).is_none_or(|it| it.number != number) {
            self.cells.insert(index, Cell { number, passed: 0 });
        }
        self.cells[index].passed += u64::from(told.passed);
    }

    /// What all say, and which part of it this node does.
    pub(super) fn seen(&self, node: NodeId, now: Wall) -> Seen {
        let (number, age_ms) = (now.0 / cell_ms(), now.0 % cell_ms());
        let passed = self.cells.iter().map(|cell| {
            let inside_ms = match number.saturating_sub(cell.number) {
                0..CELLS => cell_ms(),
                CELLS => cell_ms() - age_ms,
                _ => 0,
            };
            cell.passed * inside_ms
        });
        let own_per_s = self.wants.get(&node).map_or(0, |it| it.0);
        Seen {
            wanted_per_s: self.wants.values().fold(0, |sum, it| sum.saturating_add(it.0)),
            own_per_s,
            passed: u32::try_from(passed.sum::<u64>() / cell_ms()).unwrap_or(u32::MAX),
        }
    }

    /// Whether nothing of it counts any more.
    pub(super) fn is_over(&self, now: Wall) -> bool {
        self.wants.values().all(|(_, said)| !is_recent(*said, now))
    }
}

/// Whether what was said then counts now.
pub(super) fn is_recent(said: Wall, now: Wall) -> bool {
    now.0.abs_diff(said.0) < millis(WINDOW)
}

fn cell_ms() -> u64 {
    millis(WINDOW) / CELLS
}
