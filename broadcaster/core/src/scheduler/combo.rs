//! Equal gifts of one sender become one with their sum.

use std::collections::VecDeque;
use std::time::Duration;

use proto::id::ItemId;
use proto::item::{Body, Item};
use proto::time::Mono;

use super::Waiting;

/// Gifts that one stands for, beside itself.
const JOINED_MAX: usize = 1_000;
/// Waiting gifts that are looked at for each that comes, the newest first.
const LOOKED_AT_MAX: usize = 256;

/// Adds a gift to an equal one of its sender that came no more than `window` before; whether there
/// was one.
pub(super) fn join(
    queue: &mut VecDeque<Waiting>,
    item: &Item,
    window: Duration,
    now: Mono,
) -> bool {
    let Body::Gift { gift_no, count, text } = &item.body else {
        return false;
    };
    let near = queue.iter_mut().rev().take(LOOKED_AT_MAX);
    for waiting in near.take_while(|it| now.since(it.since) < window) {
        let Body::Gift { gift_no: same_no, count: sum, text: same_text } = &mut waiting.item.body
        else {
            continue;
        };
        let is_equal = waiting.item.sender == item.sender
            && waiting.item.role == item.role
            && *same_no == *gift_no
            && same_text == text;
        if !is_equal || waiting.joined.len() >= JOINED_MAX {
            continue;
        }
        if let Some(both) = sum.checked_add(*count) {
            *sum = both;
            waiting.joined.push((item.id, *count));
            return true;
        }
    }
    false
}

/// Takes a gift out again.
pub(super) fn leave(waiting: &mut Waiting, id: ItemId) {
    let Some(at) = waiting.joined.iter().position(|it| it.0 == id) else {
        return;
    };
    let (_, count) = waiting.joined.remove(at);
    if let Body::Gift { count: sum, .. } = &mut waiting.item.body {
        *sum -= count;
    }
}

/// Takes the first gift out: the next one stands for the rest. Whether there is one.
pub(super) fn go_on(waiting: &mut Waiting) -> bool {
    let Some(&(next, _)) = waiting.joined.first() else {
        return false;
    };
    let rest = waiting.joined.iter().map(|it| it.1).sum();
    waiting.joined.remove(0);
    waiting.item.id = next;
    if let Body::Gift { count: sum, .. } = &mut waiting.item.body {
        *sum = rest;
    }
    true
}
