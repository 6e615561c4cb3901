//! Admission: a fixed order of checks, the first refusal wins.
//!
//! shape → length → room → sender (banned, muted, room muted, not among the speakers, read only) →
//! rate → slow mode; then
//! what the text holds ([`crate::text`]).
//! The cheap and the certain come first, so a flood is refused before it costs a look-up.
//! Presence is not checked here: a link passes on comments of sessions that are in the room, and
//! a chatserver that has just started knows none of them.

use proto::control::{RoomSettings, Speakers, Standing};
use proto::item::Role;
use proto::limits::TEXT_BYTES_MAX;
use proto::time::{Mono, Wall};
use proto::verdict::Reason;

use crate::rate::Rate;
use crate::shape;

/// Both kinds of time at one moment: rates live in the one, mutes in the other.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Now {
    /// This process's time.
    pub mono: Mono,
    /// The world's time.
    pub wall: Wall,
}

/// Why a comment is not shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("refused as {}", reason.name())]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// When trying again makes sense; 0 if it does not.
    pub retry_after_ms: u32,
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Comment<'a> {
    /// The text as it was sent.
    pub text: &'a str,
    /// What the sender is.
    pub role: Role,
    /// Whether the token allows sending.
    pub may_send: bool,
}

/// What the room says.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Whether it takes items.
    pub open: bool,
    /// What it allows.
    pub settings: &'a RoomSettings,
}

/// What is known about the sender in this room.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    /// What the sender is by the room's word.
    pub standing: Standing,
    /// Banned until then; 0: not.
    pub banned_until: Wall,
    /// Muted until then; 0: not.
    pub muted_until: Wall,
    /// The sender's bucket.
    pub rate: Rate,
    /// When the sender's last comment was admitted.
    pub last: Option<Mono>,
}

/// Decides about a comment. `rules` is `None` where the room does not exist.
pub fn judge(
    comment: Comment<'_>,
    history: &History,
    rules: Option<Rules<'_>>,
    now: Now,
) -> Result<(), Refusal> {
    let graphemes = shape::graphemes(comment.text).map_err(|_| never(Reason::Shape))?;
    if comment.text.len() > TEXT_BYTES_MAX {
        return Err(never(Reason::TooLong));
    }
    // The length depends on the room: without one there is nothing to compare with.
    let Rules { open, settings } = rules.ok_or(never(Reason::NoRoom))?;
    if graphemes > usize::try_from(settings.graphemes_max).unwrap_or(usize::MAX) {
        return Err(never(Reason::TooLong));
    }
    if !open {
        return Err(never(Reason::RoomClosed));
    }
    check_sender(comment, history, settings, now.wall)?;
    check_rate(comment.role, history, settings, now.mono)
}

/// Decides once more about a comment that waited since it was admitted: what was done to the room
/// and to its sender meanwhile counts.
pub(crate) fn judge_again(
    role: Role,
    history: &History,
    rules: Option<Rules<'_>>,
    now: Wall,
) -> Result<(), Refusal> {
    let Rules { open, settings } = rules.ok_or(never(Reason::NoRoom))?;
    if !open {
        return Err(never(Reason::RoomClosed));
    }
    check_sender(Comment { text: "", role, may_send: true }, history, settings, now)
}

fn check_sender(
    comment: Comment<'_>,
    history: &History,
    settings: &RoomSettings,
    now: Wall,
) -> Result<(), Refusal> {
    if history.banned_until > now {
        return Err(until(Reason::Banned, history.banned_until, now));
    }
    if history.muted_until > now {
        return Err(until(Reason::Muted, history.muted_until, now));
    }
    if settings.mute_all && !keeps_order(comment.role) {
        return Err(never(Reason::RoomMuted));
    }
    if let Some(reason) = not_among(settings.speakers, history.standing, comment.role) {
        return Err(never(reason));
    }
    if !comment.may_send {
        return Err(never(Reason::ReadOnly));
    }
    Ok(())
}

/// Why somebody is not among the speakers of a room, if so.
fn not_among(speakers: Speakers, standing: Standing, role: Role) -> Option<Reason> {
    if keeps_order(role) {
        return None;
    }
    let Standing { listed, follows, .. } = standing;
    let (is_among, reason) = match speakers {
        Speakers::All => return None,
        Speakers::Followers => (follows || listed || role == Role::Vip, Reason::FollowersOnly),
        Speakers::Listed => (listed, Reason::ListedOnly),
        Speakers::Moderators => (false, Reason::ModeratorsOnly),
    };
    (!is_among).then_some(reason)
}

fn check_rate(
    role: Role,
    history: &History,
    settings: &RoomSettings,
    now: Mono,
) -> Result<(), Refusal> {
    let wait_ms = history.rate.wait_ms(settings.viewer_burst, settings.viewer_refill_ms, now);
    if wait_ms > 0 {
        return Err(later(Reason::RateLimited, wait_ms));
    }
    if let Some(last) = history.last
        && !keeps_order(role)
    {
        let next_at = last.0.saturating_add(u64::from(settings.slow_mode_ms));
        if next_at > now.0 {
            return Err(later(Reason::SlowMode, next_at - now.0));
        }
    }
    Ok(())
}

/// Whether the room's own silence does not bind this role.
pub(crate) const fn keeps_order(role: Role) -> bool {
    match role {
        Role::Moderator | Role::Host => true,
        Role::Guest | Role::Viewer | Role::Vip => false,
    }
}

/// A refusal that does not end by itself.
#[must_use]
pub(crate) const fn never(reason: Reason) -> Refusal {
    Refusal { reason, retry_after_ms: 0 }
}

/// A refusal that ends by itself after `wait_ms`.
#[must_use]
pub(crate) fn later(reason: Reason, wait_ms: u64) -> Refusal {
    Refusal { reason, retry_after_ms: u32::try_from(wait_ms).unwrap_or(u32::MAX) }
}

fn until(reason: Reason, end: Wall, now: Wall) -> Refusal {
    later(reason, end.0.saturating_sub(now.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Now = Now { mono: Mono(100_000), wall: Wall(1_800_000_000_000) };

    fn comment(text: &str) -> Comment<'_> {
        Comment { text, role: Role::Viewer, may_send: true }
    }

    fn rules(settings: &RoomSettings) -> Option<Rules<'_>> {
        Some(Rules { open: true, settings })
    }

    /// A history against which everything speaks.
    fn worst() -> History {
        let mut rate = Rate::default();
        for _ in 0..5 {
            rate.take(1000, NOW.mono);
        }
        History {
            standing: Standing::default(),
            banned_until: Wall(NOW.wall.0 + 7000),
            muted_until: Wall(NOW.wall.0 + 8000),
            rate,
            last: Some(NOW.mono),
        }
    }

    #[test]
    fn the_first_refusal_in_the_fixed_order_wins() {
        let settings =
            RoomSettings { mute_all: true, slow_mode_ms: 9000, ..RoomSettings::default() };
        let bad = Comment { text: "\0", role: Role::Viewer, may_send: false };
        let (long, endless) = ("x".repeat(101), "x".repeat(3000));
        let closed = Some(Rules { open: false, settings: &settings });
        let mut history = worst();
        let reason = |text, may_send, history: &History, rules: Option<Rules<'_>>| {
            let comment = Comment { text, may_send, ..bad };
            judge(comment, history, rules, NOW).unwrap_err().reason
        };
        let free = RoomSettings { mute_all: false, ..settings.clone() };

        assert_eq!(reason("\0", false, &history, None), Reason::Shape);
        assert_eq!(reason(&endless, false, &history, None), Reason::TooLong);
        assert_eq!(reason(&long, false, &history, None), Reason::NoRoom);
        assert_eq!(reason(&long, false, &history, closed), Reason::TooLong);
        assert_eq!(reason("x", false, &history, closed), Reason::RoomClosed);
        assert_eq!(reason("x", false, &history, rules(&settings)), Reason::Banned);
        history.banned_until = NOW.wall;
        assert_eq!(reason("x", false, &history, rules(&settings)), Reason::Muted);
        history.muted_until = NOW.wall;
        assert_eq!(reason("x", false, &history, rules(&settings)), Reason::RoomMuted);
        assert_eq!(reason("x", false, &history, rules(&free)), Reason::ReadOnly);
        assert_eq!(reason("x", true, &history, rules(&free)), Reason::RateLimited);
        history.rate = Rate::default();
        assert_eq!(reason("x", true, &history, rules(&free)), Reason::SlowMode);
        history.last = None;
        assert_eq!(judge(comment("x"), &history, rules(&free), NOW), Ok(()));
    }

    #[test]
    fn a_refusal_that_passes_says_when() {
        let settings = RoomSettings { slow_mode_ms: 9000, ..RoomSettings::default() };
        let mut history = worst();
        let wait = |history: &History| {
            judge(comment("x"), history, rules(&settings), NOW).unwrap_err().retry_after_ms
        };

        assert_eq!(wait(&history), 7000);
        history.banned_until = Wall(0);
        assert_eq!(wait(&history), 8000);
        history.muted_until = Wall(0);
        assert_eq!(wait(&history), 1000);
        history.rate = Rate::default();
        assert_eq!(wait(&history), 9000);
    }

    #[test]
    fn moderators_and_hosts_speak_in_a_muted_or_slow_room() {
        let settings =
            RoomSettings { mute_all: true, slow_mode_ms: 9000, ..RoomSettings::default() };
        let history = History { last: Some(NOW.mono), ..History::default() };

        for role in [Role::Moderator, Role::Host] {
            let comment = Comment { role, ..comment("x") };
            assert_eq!(judge(comment, &history, rules(&settings), NOW), Ok(()));
        }
    }

    #[test]
    fn a_room_says_who_may_speak_and_why_others_may_not() {
        use Role::{Host, Moderator, Viewer, Vip};
        use Speakers::{All, Followers, Listed, Moderators};
        let (listed, follows) = (
            Standing { listed: true, ..Standing::default() },
            Standing { follows: true, ..Standing::default() },
        );
        let judged = |speakers, standing, role| {
            let settings = RoomSettings { speakers, ..RoomSettings::default() };
            let history = History { standing, ..History::default() };
            let comment = Comment { role, ..comment("x") };
            judge(comment, &history, rules(&settings), NOW).err().map(|it| it.reason)
        };
        let nobody = Standing::default();

        assert_eq!(judged(All, nobody, Viewer), None);
        assert_eq!(judged(Followers, nobody, Viewer), Some(Reason::FollowersOnly));
        assert_eq!(judged(Followers, follows, Viewer), None);
        assert_eq!(judged(Followers, listed, Viewer), None);
        assert_eq!(judged(Followers, nobody, Vip), None);
        assert_eq!(judged(Listed, follows, Vip), Some(Reason::ListedOnly));
        assert_eq!(judged(Listed, listed, Viewer), None);
        assert_eq!(judged(Moderators, listed, Vip), Some(Reason::ModeratorsOnly));
        for speakers in [Followers, Listed, Moderators] {
            assert_eq!(judged(speakers, nobody, Moderator), None);
            assert_eq!(judged(speakers, nobody, Host), None);
        }
    }

    #[test]
    fn length_counts_graphemes_not_characters() {
        let settings = RoomSettings { graphemes_max: 3, ..RoomSettings::default() };
        let judged = |text: &str| judge(comment(text), &History::default(), rules(&settings), NOW);

        assert_eq!(judged("👩\u{200D}👩\u{200D}👧e\u{301}x"), Ok(()));
        assert_eq!(judged("abcd").unwrap_err().reason, Reason::TooLong);
    }

    proptest! {
        #[test]
        fn any_comment_gets_a_verdict(text in any::<String>(), open: bool, may_send: bool) {
            let settings = RoomSettings::default();
            let rules = Some(Rules { open, settings: &settings });

            let judged = judge(Comment { may_send, ..comment(&text) }, &History::default(), rules, NOW);

            prop_assert!(judged.is_err() || (open && may_send));
        }
    }
}
