//! Admitted comments on their way to the bus, past the review hook.

use proto::control::Review;
use proto::envelope::Accepted;
use proto::id::{AppId, ItemId, ViewerId};
use proto::item::Body;
use proto::time::{Mono, Wall};
use proto::verdict::{Reason, Verdict};

use super::{Output, Shard};
use crate::asker::{Asked, Asker, Mark};
use crate::judge::{Now, Refusal, never};
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
        (asker, viewer, mark): (Asker, ViewerId, Mark),
        accepted: Accepted,
        shown: Shown,
        room: Option<Review>,
        now: Mono,
    ) {
        let asked = Asked {
            asker,
            app: accepted.app,
            room: accepted.room.clone(),
            viewer: viewer.clone(),
            mark,
            found: if let Shown::Held(_) = shown { Found::Marked } else { Found::Nothing },
            was_held: false,
            is_settled: false,
        };
        self.askers.push(accepted.item.id, asked, now);
        self.submit(viewer, accepted, shown, room, now);
    }

    /// The same for one whose sender is known to wait.
    pub(super) fn submit(
        &mut self,
        viewer: ViewerId,
        mut accepted: Accepted,
        shown: Shown,
        room: Option<Review>,
        now: Mono,
    ) {
        let id = accepted.item.id;
        let found = if let Shown::Held(_) = shown { Found::Marked } else { Found::Nothing };
        let mut sent = None;
        if let (Shown::Masked(masked) | Shown::Held(Some(masked)), Body::Comment { text, .. }) =
            (shown, &mut accepted.item.body)
        {
            sent = Some(std::mem::replace(text, masked.into()).into());
        }
        match self.reviews.submit(accepted, found, room, now) {
            Step::Rule(ruling) => self.rule(ruling, now),
            Step::Unasked(why, ruling) => {
                self.outputs.push_back(Output::Unasked(why));
                self.rule(ruling, now);
            }
            Step::Ask => {
                let question = self.reviews.question(id, viewer, sent, found);
                self.outputs.extend(question.map(Output::Review));
            }
        }
    }

    /// Takes what a hook said about `id`, or that it said nothing.
    pub(super) fn hear_hook(&mut self, id: ItemId, answer: Option<Answer>, now: Now) {
        let Some(ruling) = self.reviews.answer(id, answer, now.mono) else { return };
        let refusal = match &ruling {
            Ruling::Show(accepted) => self.hear_again(accepted, now.wall).err(),
            Ruling::Shadow(_) | Ruling::Refuse(..) => None,
        };
        match refusal {
            Some(refusal) => self.refuse(id, refusal, now.mono),
            None => self.rule(ruling, now.mono),
        }
    }

    /// Whether what waited may still be shown.
    fn hear_again(&mut self, accepted: &Accepted, now: Wall) -> Result<(), Refusal> {
        let Accepted { app, room, item } = accepted;
        // Of whom nobody knows any more that they wait, nobody knows who they are.
        let Some(asked) = self.askers.find(item.id) else { return Ok(()) };
        let room = self.rooms.get(&(*app, room.clone())).ok_or(never(Reason::NoRoom))?;
        room.hear_again(&asked.viewer, item.role, now)
    }

    pub(super) fn rule(&mut self, ruling: Ruling, now: Mono) {
        match ruling {
            Ruling::Show(accepted) => self.show(accepted, now),
            Ruling::Shadow(id) => {
                self.settle(id, Verdict::Shadow(id));
                self.askers.take(id);
            }
            Ruling::Refuse(id, refusal) => self.refuse(id, refusal, now),
        }
    }

    /// Tells the sender of an admitted comment that it is not shown after all.
    pub(super) fn refuse(&mut self, id: ItemId, refusal: Refusal, now: Mono) {
        let Some(asked) = self.askers.find(id).filter(|it| !it.is_settled) else { return };
        let mut refusal = refusal;
        if let Some(room) = self.rooms.get_mut(&(asked.app, asked.room.clone())) {
            refusal = room.take_back(&asked.viewer, asked.mark, refusal, now);
        }
        self.settle(id, drop_as(refusal));
        self.askers.take(id);
    }
}
