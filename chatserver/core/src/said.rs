//! What one sender was told lately: the same comment again gets the same verdict.

use std::collections::VecDeque;

use proto::id::Cid;
use proto::verdict::Verdict;

use crate::asker::Asker;

/// Verdicts remembered for one sender, 64 bytes each. A replay reaches back a few seconds, in which
/// the default rate admits about 10.
pub const VERDICTS_MAX: usize = 32;

/// What was said about one comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Said {
    /// Who asked last.
    pub asker: Asker,
    /// Hash of the comment's text.
    pub text: u64,
    /// None while that is not settled.
    pub verdict: Option<Verdict>,
}

/// The newest verdicts, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    said: VecDeque<Said>,
    /// None of them has a higher number: numbers rise, so that most comments are known to be new
    /// without a look at what was said.
    cid_max: Cid,
    /// How many of them are refusals.
    refusals: usize,
}

impl Verdicts {
    /// What was said about this comment, by the same session or, with this text, by another one.
    pub fn find(&mut self, asker: Asker, text: u64) -> Option<&mut Said> {
        if asker.cid > self.cid_max {
            return None;
        }
        let is_same =
            |it: &Said| it.asker.cid == asker.cid && (it.text == text || it.asker == asker);
        self.said.iter_mut().find(|it| is_same(it))
    }

    /// Remembers one more. Past [`VERDICTS_MAX`] refusals go first: only a forgotten admission
    /// could show an item twice.
    pub fn push(&mut self, said: Said) {
        if self.said.len() >= VERDICTS_MAX {
            let oldest = if self.refusals > 0 {
                self.said.iter().position(|it| is_refusal(it.verdict)).unwrap_or(0)
            } else {
                0
            };
            let gone = self.said.remove(oldest);
            self.refusals -= usize::from(gone.is_some_and(|it| is_refusal(it.verdict)));
        }
        self.cid_max = self.cid_max.max(said.asker.cid);
        self.refusals += usize::from(is_refusal(said.verdict));
        self.said.push_back(said);
    }

    /// What was not settled is now.
    pub fn settle(&mut self, asker: Asker, verdict: Verdict) {
        if let Some(said) = self.said.iter_mut().rev().find(|it| it.asker == asker) {
            self.refusals -= usize::from(is_refusal(said.verdict));
            said.verdict = Some(verdict);
            self.refusals += usize::from(is_refusal(said.verdict));
        }
    }
}

const fn is_refusal(verdict: Option<Verdict>) -> bool {
    matches!(verdict, Some(Verdict::Drop { .. }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proto::id::{ItemId, NodeId, SessionId};
    use proto::verdict::Reason;

    use super::*;

    const DROP: Verdict = Verdict::Drop { reason: Reason::Shape, retry_after_ms: 0 };

    fn asker(session: u64, cid: u64) -> Asker {
        Asker { node: NodeId(1), session: SessionId(session), cid: Cid(cid) }
    }

    fn said(session: u64, cid: u64, verdict: Option<Verdict>) -> Said {
        Said { asker: asker(session, cid), text: cid % 3, verdict }
    }

    #[test]
    fn refusals_are_forgotten_before_admissions() {
        let mut verdicts = Verdicts::default();
        verdicts.push(said(1, 0, Some(Verdict::Admit(ItemId(1)))));
        verdicts.push(said(1, 1, None));
        verdicts.settle(asker(1, 1), DROP);
        for cid in 2..=VERDICTS_MAX as u64 {
            verdicts.push(said(1, cid, Some(Verdict::Admit(ItemId(1)))));
        }

        assert!(verdicts.find(asker(1, 0), 0).is_some());
        assert!(verdicts.find(asker(1, 1), 1).is_none());
        verdicts.push(said(1, 99, None));
        assert!(verdicts.find(asker(1, 0), 0).is_none());
    }

    #[test]
    fn another_session_finds_its_text_under_its_number() {
        let mut verdicts = Verdicts::default();
        verdicts.push(said(1, 7, None));

        assert!(verdicts.find(asker(2, 7), 7 % 3).is_some());
        assert!(verdicts.find(asker(2, 7), 2).is_none());
        assert!(verdicts.find(asker(1, 7), 2).is_some());
    }

    proptest! {
        /// Beside a plain list of all that was said.
        #[test]
        fn what_is_remembered_is_found(
            acts in prop::collection::vec((1..3_u64, 0..40_u64, any::<bool>()), 1..200)
        ) {
            let mut verdicts = Verdicts::default();
            let mut plain: Vec<Said> = Vec::new();

            for (session, cid, refused) in acts {
                let next = said(session, cid, refused.then_some(DROP));
                let known = plain.iter().find(|it| {
                    it.asker.cid == next.asker.cid
                        && (it.text == next.text || it.asker == next.asker)
                });
                prop_assert_eq!(verdicts.find(next.asker, next.text).copied(), known.copied());
                if known.is_none() {
                    if plain.len() >= VERDICTS_MAX {
                        let refusal = plain.iter().position(|it| is_refusal(it.verdict));
                        plain.remove(refusal.unwrap_or(0));
                    }
                    plain.push(next);
                    verdicts.push(next);
                }
            }
            let refusals = plain.iter().filter(|it| is_refusal(it.verdict)).count();
            prop_assert_eq!(verdicts.refusals, refusals);
        }
    }
}
