//! Admitted comments on their way to the bus, past the review hook.

use proto::control::Review;
use proto::envelope::Accepted;
use proto::id::{AppId, ItemId, ViewerId};
use proto::item::Body;
use proto::time::Mono;
use proto::verdict::Verdict;

use super::{Output, Shard};
use crate::asker::{Asked, Asker};
use crate::review::{Answer, Found, Reviews, Rule, Ruling, Step};
use crate::room::drop_as;
use crate::text::Shown;

impl Shard {
    /// The same, with the review hooks of these apps.
    #[must_use]
    pub fn reviewed_by(mut self, rules: impl IntoIterator<Item = (AppId, Rule)>) -> Self {
        self.reviews = Reviews::new(rules);
        self
    }

    /// What waits for review hooks.
    #[must_use]
    pub const fn reviews(&self) -> &Reviews {
        &self.reviews
    }

    /// Publishes what passed everything else, or asks about it first; `room` is what its room says
    /// about reviews.
    pub(super) fn admit(
        &mut self,
        (asker, viewer): (Asker, ViewerId),
        mut accepted: Accepted,
        shown: Shown,
        room: Option<Review>,
        now: Mono,
    ) {
        let Accepted { app, room: name, item } = &mut accepted;
        let id = item.id;
        let asked = Asked {
            asker,
            app: *app,
            room: name.clone(),
            viewer: viewer.clone(),
            is_settled: false,
        };
        self.askers.push(id, asked, now);
        let found = if let Shown::Held(_) = shown { Found::Marked } else { Found::Nothing };
        let mut sent = None;
        if let (Shown::Masked(masked) | Shown::Held(Some(masked)), Body::Comment { text, .. }) =
            (shown, &mut item.body)
        {
            sent = Some(std::mem::replace(text, masked));
        }
        match self.reviews.submit(accepted, found, room, now) {
            Step::Rule(ruling) => self.rule(ruling),
            Step::Unasked(why, ruling) => {
                self.outputs.push_back(Output::Unasked(why));
                self.rule(ruling);
            }
            Step::Ask => {
                let question = self.reviews.question(id, viewer, sent, found);
                self.outputs.extend(question.map(Output::Review));
            }
        }
    }

    /// Takes what a hook said about `id`, or that it said nothing.
    pub(super) fn hear_hook(&mut self, id: ItemId, answer: Option<Answer>, now: Mono) {
        if let Some(ruling) = self.reviews.answer(id, answer, now) {
            self.rule(ruling);
        }
    }

    fn rule(&mut self, ruling: Ruling) {
        let (id, verdict) = match ruling {
            Ruling::Show(accepted) => {
                self.outputs.push_back(Output::Publish(accepted));
                return;
            }
            Ruling::Shadow(id) => (id, Verdict::Shadow(id)),
            Ruling::Refuse(id, refusal) => (id, drop_as(refusal)),
        };
        self.settle(id, verdict);
        self.askers.take(id);
    }
}
