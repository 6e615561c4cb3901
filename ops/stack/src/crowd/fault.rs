//! Faults put between the SDK and the audit, to prove that the audit sees them.

use std::collections::BTreeMap;
use std::str::FromStr;

/// `lose=1/1000`: every 1000th item is spoiled this way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fault {
    /// How.
    pub kind: FaultKind,
    /// Every how many-th item.
    pub every: u64,
}

/// How an item is spoiled.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FaultKind {
    /// It is not handed on.
    Lose,
    /// It is handed on twice.
    Repeat,
    /// It changes places with the next one of the same viewer.
    Swap,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is no fault: say lose=1/1000, repeat=1/1000 or swap=1/1000");
        let (kind, share) = text.split_once('=').ok_or_else(wrong)?;
        let kind = match kind {
            "lose" => FaultKind::Lose,
            "repeat" => FaultKind::Repeat,
            "swap" => FaultKind::Swap,
            _ => return Err(wrong()),
        };
        let every = share.strip_prefix("1/").and_then(|it| it.parse().ok()).filter(|&it| it > 0);
        Ok(Self { kind, every: every.ok_or_else(wrong)? })
    }
}

/// Spoils what passes through, by count, so that a run is spoiled the same way each time.
#[derive(Debug)]
pub(super) struct Spoiler<T> {
    faults: Vec<Fault>,
    passed: u64,
    held: BTreeMap<usize, T>,
}

impl<T: Clone> Spoiler<T> {
    /// A spoiler with these faults; with none, everything passes as it is.
    pub(super) const fn new(faults: Vec<Fault>) -> Self {
        Self { faults, passed: 0, held: BTreeMap::new() }
    }

    /// What `viewer` gets instead of `item`.
    pub(super) fn pass(&mut self, viewer: usize, item: T) -> Vec<T> {
        self.passed += 1;
        let hit = self.faults.iter().find(|it| self.passed.is_multiple_of(it.every));
        let mut handed = match hit.map(|it| it.kind) {
            Some(FaultKind::Lose) => Vec::new(),
            Some(FaultKind::Repeat) => vec![item.clone(), item],
            Some(FaultKind::Swap) => {
                let earlier = self.held.insert(viewer, item);
                return earlier.into_iter().collect();
            }
            None => vec![item],
        };
        handed.extend(self.held.remove(&viewer));
        handed
    }

    /// What is still held back, by viewer.
    pub(super) fn flush(&mut self) -> Vec<(usize, T)> {
        std::mem::take(&mut self.held).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(fault: &str) -> Vec<u32> {
        let mut spoiler = Spoiler::new(vec![fault.parse().unwrap()]);
        let mut out: Vec<u32> = (1..=6).flat_map(|it| spoiler.pass(0, it)).collect();
        out.extend(spoiler.flush().into_iter().map(|(_, it)| it));
        out
    }

    #[test]
    fn each_fault_does_what_its_name_says() {
        assert_eq!(passed("lose=1/3"), [1, 2, 4, 5]);
        assert_eq!(passed("repeat=1/3"), [1, 2, 3, 3, 4, 5, 6, 6]);
        assert_eq!(passed("swap=1/3"), [1, 2, 4, 3, 5, 6]);
    }

    #[test]
    fn nonsense_is_refused_with_what_to_say() {
        for text in ["", "lose", "lose=2/3", "lose=1/0", "burn=1/3"] {
            assert!(text.parse::<Fault>().unwrap_err().contains("lose=1/1000"), "{text}");
        }
    }
}
