//! Equal items that wait become one with their count: gifts of one sender, and comments of anybody.

use std::collections::VecDeque;

use proto::id::{ItemId, SenderRef};
use proto::item::{Body, Item, Role, Style};
use proto::time::{Mono, Wall};

use super::{Limits, Waiting};

/// Items that one stands for, beside itself.
const JOINED_MAX: usize = 1_000;
/// Waiting items that are looked at for each that comes, the newest first.
const LOOKED_AT_MAX: usize = 256;

/// An item that joined another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    pub(super) id: ItemId,
    sender: SenderRef,
    at: Wall,
    count: u32,
}

/// Adds an item to an equal one that waits, where the room wants that; whether there was one.
pub(super) fn join(queue: &mut VecDeque<Waiting>, item: &Item, limits: &Limits, now: Mono) -> bool {
    match &item.body {
        Body::Gift { count, .. } if !limits.combo.is_zero() => {
            let is_near = |it: &Waiting| now.since(it.since) < limits.combo;
            let is_equal = |it: &Item| it.sender == item.sender && gift(it) == gift(item);
            add(queue, item, *count, is_near, is_equal)
        }
        Body::Comment { count, .. } if limits.merges_equal && plain_text(item).is_some() => {
            add(queue, item, *count, |_| true, |it| plain_text(it) == plain_text(item))
        }
        Body::Gift { .. }
        | Body::Comment { .. }
        | Body::Like { .. }
        | Body::Entry
        | Body::Notice { .. }
        | Body::Tombstone { .. }
        | Body::System { .. }
        | Body::Effect { .. }
        | Body::Custom { .. }
        | Body::Erasure { .. } => false,
    }
}

/// Takes an item out again.
pub(super) fn leave(waiting: &mut Waiting, id: ItemId) {
    let Some(at) = waiting.joined.iter().position(|it| it.id == id) else {
        return;
    };
    let Joined { count, .. } = waiting.joined.remove(at);
    if let Some(sum) = sum(&mut waiting.item.body) {
        *sum -= count;
    }
}

/// Takes the first item out: the next one stands for the rest. Whether there is one.
pub(super) fn go_on(waiting: &mut Waiting) -> bool {
    if waiting.joined.is_empty() {
        return false;
    }
    let rest = waiting.joined.iter().map(|it| it.count).sum();
    let Joined { id, sender, at, .. } = waiting.joined.remove(0);
    (waiting.item.id, waiting.item.sender, waiting.item.at) = (id, sender, at);
    if let Some(sum) = sum(&mut waiting.item.body) {
        *sum = rest;
    }
    true
}

fn add(
    queue: &mut VecDeque<Waiting>,
    item: &Item,
    count: u32,
    is_near: impl Fn(&Waiting) -> bool,
    is_equal: impl Fn(&Item) -> bool,
) -> bool {
    for waiting in queue.iter_mut().rev().take(LOOKED_AT_MAX).take_while(|it| is_near(it)) {
        let is_joinable = waiting.joined.len() < JOINED_MAX && waiting.item.role == item.role;
        if !is_joinable || !is_equal(&waiting.item) {
            continue;
        }
        let Some(sum) = sum(&mut waiting.item.body) else { continue };
        let Some(both) = sum.checked_add(count) else { continue };
        *sum = both;
        let &Item { id, sender, at, .. } = item;
        waiting.joined.push(Joined { id, sender, at, count });
        return true;
    }
    false
}

/// A gift's number and words.
fn gift(item: &Item) -> Option<(u32, &str)> {
    let Body::Gift { gift_no, text, .. } = &item.body else {
        return None;
    };
    Some((*gift_no, text))
}

/// The text of a comment that may become one with others: how it looks says nothing, and neither
/// does who sent it.
fn plain_text(item: &Item) -> Option<&str> {
    let Body::Comment { text, style, .. } = &item.body else {
        return None;
    };
    let is_plain = *style == Style::default() && !item.lane.is_protected();
    match item.role {
        Role::Guest | Role::Viewer => is_plain.then_some(text),
        Role::Vip | Role::Moderator | Role::Host => None,
    }
}

fn sum(body: &mut Body) -> Option<&mut u32> {
    if let Body::Gift { count, .. } | Body::Comment { count, .. } = body {
        return Some(count);
    }
    None
}
