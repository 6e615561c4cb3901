//! Which comments wait for the word of a review hook, and what is done when none comes.
//!
//! [`Reviews`] holds what waits, calls no one, and decides in time that is told to it. A hook is
//! asked about what passed everything else, by as many calls at a time as its rule says; a comment
//! for which there is no call left, or whose hook does not answer, meets the rule's [`Fail`]
//! instead. Comments of one sender that wait may overtake each other, and be overtaken.

use std::collections::BTreeMap;

use proto::control::Review;
use proto::envelope::Accepted;
use proto::id::{AppId, ItemId, RoomId, ViewerId};
use proto::item::{Body, Role};
use proto::limits::TEXT_BYTES_MAX;
use proto::time::{Mono, Wall};
use proto::verdict::Reason;
use serde::{Deserialize, Serialize};

use crate::breaker::{Breaker, Ended};
use crate::judge::{Refusal, later, never};
use crate::shape;

/// When a sender may try again whose comment was refused because nobody answered.
const FAIL_RETRY_MS: u64 = 1000;

/// What becomes of a comment about which the hook says nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fail {
    /// It is shown.
    Open,
    /// It is refused.
    #[default]
    Closed,
}

/// How an app's hook is asked.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// About which comments, in rooms that say nothing about it.
    pub when: Review,
    /// What is done when it does not answer.
    pub fail: Fail,
    /// Calls at a time.
    pub calls_max: usize,
}

/// Whether something was found in a comment that is to be reviewed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Found {
    /// A word, a link or a contact whose action is [`proto::control::Action::Review`].
    Marked,
    /// Nothing of the kind.
    Nothing,
}

/// What a hook is asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Question {
    /// App of the room.
    pub app: AppId,
    /// Where it was sent.
    pub room: RoomId,
    /// Under which id it would be shown.
    pub id: ItemId,
    /// Who sent it.
    pub viewer: ViewerId,
    /// What the sender is, by token.
    pub role: Role,
    /// When it was judged.
    pub at: Wall,
    /// What it says, unmasked.
    pub text: String,
    /// Why it is asked.
    pub found: Found,
}

/// What a hook says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It is shown.
    Allow,
    /// It is not.
    Refuse,
    /// Only its sender sees it.
    Shadow,
    /// This is shown in its place.
    Mask(String),
}

/// An answer that cannot be followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadAnswer {
    /// None of allow, refuse, shadow, mask.
    #[error("the verdict is none that there is")]
    Verdict,
    /// A mask without a text, or with one that no comment may have.
    #[error("the text in the comment's place is none that a comment may have")]
    Text,
}

/// Why a hook was not asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unasked {
    /// The app has none.
    NoHook,
    /// As many calls are under way as may be.
    Full,
    /// It failed too often, and is left alone for a while.
    Shut,
}

/// What becomes of a comment.
#[derive(Clone, Debug, PartialEq)]
pub enum Ruling {
    /// It is shown.
    Show(Accepted),
    /// Only its sender sees it.
    Shadow(ItemId),
    /// It is refused.
    Refuse(ItemId, Refusal),
}

/// What is to be done about a comment that passed everything else.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// This at once.
    Rule(Ruling),
    /// This, because the hook that should be asked is not.
    Unasked(Unasked, Ruling),
    /// It waits: ask the hook, then tell [`Reviews::answer`].
    Ask,
}

/// All comments that wait.
#[derive(Debug, Default)]
pub struct Reviews {
    hooks: BTreeMap<AppId, Hook>,
    /// As many as all hooks' calls.
    held: BTreeMap<ItemId, Held>,
}

#[derive(Debug)]
struct Hook {
    rule: Rule,
    breaker: Breaker,
    calls: usize,
}

#[derive(Debug)]
struct Held {
    accepted: Accepted,
    begun: Mono,
}

impl Answer {
    /// What a hook says in words; `text` stands in a masked comment's place.
    ///
    /// # Errors
    /// When it cannot be followed.
    pub fn read(verdict: &str, text: Option<String>) -> Result<Self, BadAnswer> {
        match (verdict, text) {
            ("allow", _) => Ok(Self::Allow),
            ("refuse", _) => Ok(Self::Refuse),
            ("shadow", _) => Ok(Self::Shadow),
            ("mask", Some(text)) if is_text(&text) => Ok(Self::Mask(text)),
            ("mask", _) => Err(BadAnswer::Text),
            (_, _) => Err(BadAnswer::Verdict),
        }
    }
}

impl Reviews {
    /// Nothing waits yet; these apps have hooks.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = (AppId, Rule)>) -> Self {
        let hook = |rule| Hook { rule, breaker: Breaker::default(), calls: 0 };
        let hooks = rules.into_iter().map(|(app, rule)| (app, hook(rule))).collect();
        Self { hooks, held: BTreeMap::new() }
    }

    /// Takes a comment that may be shown by everything else; `room` is what its room says about
    /// reviews, if anything.
    pub fn submit(
        &mut self,
        accepted: Accepted,
        found: Found,
        room: Option<Review>,
        now: Mono,
    ) -> Step {
        let hook = self.hooks.get_mut(&accepted.app);
        let when = room.or_else(|| hook.as_ref().map(|it| it.rule.when)).unwrap_or_default();
        match (when, found) {
            (Review::All, _) | (Review::Listed, Found::Marked) => {}
            (Review::Listed | Review::None, Found::Nothing) => {
                return Step::Rule(Ruling::Show(accepted));
            }
            // Somebody wants it reviewed, and the room has nobody asked.
            (Review::None, Found::Marked) => {
                return Step::Rule(refuse(&accepted, never(Reason::Review)));
            }
        }
        let Some(hook) = hook else {
            return Step::Unasked(Unasked::NoHook, refuse(&accepted, never(Reason::Review)));
        };
        if hook.calls >= hook.rule.calls_max {
            return Step::Unasked(Unasked::Full, hook.fail(accepted));
        }
        if !hook.breaker.begin(now) {
            return Step::Unasked(Unasked::Shut, hook.fail(accepted));
        }
        hook.calls += 1;
        self.held.insert(accepted.item.id, Held { accepted, begun: now });
        Step::Ask
    }

    /// What becomes of a comment that waited, by its hook's answer or for the lack of one; `None`
    /// if it does not wait.
    pub fn answer(&mut self, id: ItemId, answer: Option<Answer>, now: Mono) -> Option<Ruling> {
        let Held { mut accepted, begun } = self.held.remove(&id)?;
        let hook = self.hooks.get_mut(&accepted.app)?;
        hook.calls -= 1;
        hook.breaker.end(begun, if answer.is_some() { Ended::Well } else { Ended::Badly }, now);
        Some(match answer {
            Some(Answer::Allow) => Ruling::Show(accepted),
            Some(Answer::Refuse) => refuse(&accepted, never(Reason::Review)),
            Some(Answer::Shadow) => Ruling::Shadow(id),
            Some(Answer::Mask(text)) => {
                if let Body::Comment { text: shown, .. } = &mut accepted.item.body {
                    *shown = text.into();
                }
                Ruling::Show(accepted)
            }
            None => hook.fail(accepted),
        })
    }

    /// What the hook is asked about the comment `id`, which waits; `sent` is its text, if another is
    /// to be shown.
    #[must_use]
    pub fn question(
        &self,
        id: ItemId,
        viewer: ViewerId,
        sent: Option<String>,
        found: Found,
    ) -> Option<Question> {
        let Accepted { app, room, item } = &self.held.get(&id)?.accepted;
        let text = sent.unwrap_or_else(|| item.body.text().unwrap_or_default().to_owned());
        let (role, at) = (item.role, item.at);
        Some(Question { app: *app, room: room.clone(), id, viewer, role, at, text, found })
    }

    /// Comments that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.held.len()
    }

    /// Hooks that are left alone because they failed.
    #[must_use]
    pub fn shut(&self) -> usize {
        self.hooks.values().filter(|it| it.breaker.is_open()).count()
    }
}

impl Hook {
    fn fail(&self, accepted: Accepted) -> Ruling {
        match self.rule.fail {
            Fail::Open => Ruling::Show(accepted),
            Fail::Closed => refuse(&accepted, later(Reason::Review, FAIL_RETRY_MS)),
        }
    }
}

const fn refuse(accepted: &Accepted, refusal: Refusal) -> Ruling {
    Ruling::Refuse(accepted.item.id, refusal)
}

fn is_text(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && shape::graphemes(text).is_ok()
}

#[cfg(test)]
#[path = "review/tests.rs"]
mod tests;
