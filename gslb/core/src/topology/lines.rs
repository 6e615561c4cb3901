//! Machine rooms' lines: which nodes use them, and what a policy says about them.

use std::collections::BTreeMap;

use proto::address::Carrier;

use crate::fleet::Fleet;
use crate::fleet::row::ONE;
use crate::policy::{LINES_MAX, ORDINARY, Policy};

/// Stands for a line that the policy does not list: no budget, ordinary price.
const NO_LINE: u16 = 0;

/// A line of the policy.
#[derive(Debug)]
pub(crate) struct Line {
    /// 0: none.
    pub(crate) egress_bps_max: u64,
    /// What its price leaves of a node's share, of [`ONE`].
    pub(crate) worth: u64,
    /// Slots, and what part of the node's egress is this line's, of [`ONE`].
    pub(crate) users: Vec<(u32, u64)>,
}

/// Numbers of lines.
#[derive(Debug, Default)]
pub(super) struct Index(BTreeMap<Carrier, BTreeMap<String, u16>>);

impl Index {
    pub(super) fn find(&self, machine_room: &str, carrier: Carrier) -> u16 {
        self.0.get(&carrier).and_then(|it| it.get(machine_room)).copied().unwrap_or(NO_LINE)
    }
}

/// The lines of a policy by number; [`NO_LINE`] alone where it lists none.
pub(super) fn of(fleet: &Fleet, policy: &Policy) -> (Box<[Line]>, Index) {
    let listed = &policy.lines[..policy.lines.len().min(LINES_MAX)];
    let cheapest = listed.iter().map(|it| it.cost.max(1)).fold(ORDINARY, u32::min);
    let worth = |cost| worth(cost, cheapest, policy.weights.cost);
    let mut lines = vec![Line { egress_bps_max: 0, worth: worth(ORDINARY), users: Vec::new() }];
    let mut index = Index::default();
    for (number, line) in (NO_LINE + 1..).zip(listed) {
        let of_carrier = index.0.entry(line.carrier).or_default();
        of_carrier.insert(line.machine_room.clone(), number);
        let egress_bps_max = line.egress_bps_max;
        lines.push(Line { egress_bps_max, worth: worth(line.cost.max(1)), users: Vec::new() });
    }
    for (slot, member) in fleet.live().filter(|_| !listed.is_empty()) {
        let addresses = member.report.addresses.iter();
        let numbers = addresses.map(|it| index.find(&it.machine_room, it.carrier));
        let mut used: Vec<usize> = numbers.map(usize::from).collect();
        used.sort_unstable();
        used.dedup();
        let budgets: Vec<u64> = used.iter().map(|&it| lines[it].egress_bps_max.max(1)).collect();
        let total: u128 = budgets.iter().copied().map(u128::from).sum();
        for (number, budget) in used.into_iter().zip(budgets) {
            let part = u128::from(budget) * u128::from(ONE) / total;
            let part = u64::try_from(part).expect("a part of ONE is at most ONE");
            lines[number].users.push((slot, part));
        }
    }
    (lines.into(), index)
}

/// What a price leaves of a share: all at the cheapest, or where prices weigh nothing.
fn worth(cost: u32, cheapest: u32, weight: u16) -> u64 {
    let dearer = u64::from(cost - cheapest) * ONE / u64::from(cost);
    ONE - dearer * u64::from(weight.min(1000)) / 1000
}
