//! What a text holds, judged: repeats, words, links and contacts, in this order.
//!
//! A refusal ends it; of what else is found the latest [`Action`] counts. Moderators and hosts may
//! repeat themselves and link; listed words are listed for everyone.

use std::time::Duration;

use proto::control::{Action, RoomSettings};
use proto::item::Role;
use proto::time::Mono;
use proto::verdict::Reason;

use crate::fold::Folded;
use crate::judge::{Refusal, keeps_order, later, never};
use crate::links::{self, Lead};
use crate::repeats::{Echo, Past, Sketch};
use crate::words::{self, Scanner, Words};

/// How an admitted text is shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Shown {
    /// As it was sent.
    Plain,
    /// To everyone, as this.
    Masked(String),
    /// As it was sent, to its sender alone.
    Shadowed,
    /// Once it is reviewed; then to everyone, as this if anything is masked.
    Held(Option<String>),
}

/// What a text is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Taste<'a> {
    /// The room's settings.
    pub settings: &'a RoomSettings,
    /// Listed words: the app's and the room's.
    pub lists: &'a [&'a Words],
    /// What the sender said lately.
    pub past: &'a Past,
    /// What the room heard lately.
    pub echo: &'a Echo,
}

/// Judges `text`; an admitted one has a sketch to be remembered by, where repeats matter.
pub fn judge(
    scanner: &mut Scanner,
    text: &str,
    role: Role,
    taste: Taste<'_>,
    now: Mono,
) -> Result<(Shown, Option<Sketch>), Refusal> {
    let Taste { settings, lists, past, echo } = taste;
    let (action, masked) = look(scanner, text, role, settings, lists);
    let matters = !keeps_order(role) && settings.repeat_ms.max(settings.echo_max) > 0;
    let sketch = matters.then(|| Sketch::new(text, scanner.folded().glyphs()));
    if let Some(sketch) = &sketch {
        check_repeats(sketch, settings, past, echo, now)?;
    }
    Ok((shown(action, masked)?, sketch))
}

/// Judges what waited since it was admitted: words, links and contacts, as they are listed now.
pub(crate) fn judge_again(
    scanner: &mut Scanner,
    text: &str,
    role: Role,
    settings: &RoomSettings,
    lists: &[&Words],
) -> Result<Shown, Refusal> {
    let (action, masked) = look(scanner, text, role, settings, lists);
    shown(action, masked)
}

/// What is done about the words, links and contacts of `text`; and it with stars for what is masked.
fn look(
    scanner: &mut Scanner,
    text: &str,
    role: Role,
    settings: &RoomSettings,
    lists: &[&Words],
) -> (Action, Option<String>) {
    let hits = scanner.scan(text, lists);
    let worst = hits.iter().map(|it| it.action).max().unwrap_or_default();
    let is_masked = matches!(worst, Action::Mask | Action::Review)
        && hits.iter().any(|it| it.action == Action::Mask);
    let masked = is_masked.then(|| words::mask(text, hits));
    let is_free = keeps_order(role);
    let led = if is_free { Action::Allow } else { led(text, scanner.folded(), settings) };
    (worst.max(led), masked)
}

fn shown(action: Action, masked: Option<String>) -> Result<Shown, Refusal> {
    Ok(match action {
        Action::Allow => Shown::Plain,
        Action::Mask => masked.map_or(Shown::Plain, Shown::Masked),
        Action::Shadow => Shown::Shadowed,
        Action::Review => Shown::Held(masked),
        Action::Refuse => return Err(never(Reason::Words)),
    })
}

fn check_repeats(
    sketch: &Sketch,
    settings: &RoomSettings,
    past: &Past,
    echo: &Echo,
    now: Mono,
) -> Result<(), Refusal> {
    let window = Duration::from_millis(settings.repeat_ms.into());
    let mut wait_ms = past.wait_ms(sketch, window, now);
    if settings.echo_max > 0 {
        wait_ms = wait_ms.max(echo.wait_ms(sketch, settings.echo_max, now));
    }
    if wait_ms > 0 { Err(later(Reason::Repeated, wait_ms)) } else { Ok(()) }
}

/// What is done about the links and contacts of `text`.
fn led(text: &str, folded: &Folded, settings: &RoomSettings) -> Action {
    let RoomSettings { links, contacts, link_hosts, .. } = settings;
    if links.max(contacts) == &Action::Allow {
        return Action::Allow;
    }
    let action = |it: &Lead| match it {
        Lead::Link(host) if links::is_below(host, link_hosts) => Action::Allow,
        Lead::Link(_) => *links,
        Lead::Contact => *contacts,
    };
    links::find(text, folded, action)
}
