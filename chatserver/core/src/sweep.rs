//! What rooms showed of viewers' comments in the last ten minutes, to be looked at again when a
//! list of words changes.
//!
//! Filled from `sealed`, so that every chatserver has all of them. A search goes through a room a
//! bounded number of comments at a time, and ends where the room was when it began. What is shown
//! in the [`LATE`] after it may have been judged by the old list still: it is looked at once a
//! second.
//!
//! Rooms have their turns one after the other. Where a list changes again, a room that has not had
//! its turn keeps its place, and one that is being looked at begins anew behind all others.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use proto::control::Action;
use proto::id::{AppId, ItemId, RoomId};
use proto::item::{Body, Placed};
use proto::limits::HOLD_MS_MAX;
use proto::time::Mono;

use crate::words::{Scanner, Words};

/// How far back is looked.
pub const MEMORY: Duration = Duration::from_mins(10);
/// What was judged before a list changed is shown within so long: until every chatserver has the
/// list, and while a room holds it back.
pub const LATE: Duration = Duration::from_millis(5_000 + HOLD_MS_MAX as u64);
/// How often it is looked for.
const LATE_LOOK: Duration = Duration::from_secs(1);
/// What a comment takes besides its text.
const OVERHEAD_BYTES: usize = 100;

type Key = (AppId, RoomId);

/// The comments, and the searches through them.
#[derive(Debug)]
pub struct Sweep {
    bytes_max: usize,
    bytes: usize,
    rooms: BTreeMap<Key, VecDeque<Said>>,
    /// Rooms of all comments, in the order in which they came.
    order: VecDeque<(Mono, Key)>,
    /// Comments that came so far.
    count: u64,
    /// Comments that were forgotten early since [`Sweep::forgotten`] was last asked.
    forgotten: u64,
    searches: BTreeMap<Key, Search>,
    /// Rooms that are searched, each once; the next one first.
    turns: VecDeque<Key>,
    /// Searches that began so far.
    begun: u64,
    /// Lists that changed lately: an app's, or a room's own.
    late: BTreeMap<(AppId, Option<RoomId>), Late>,
    scanner: Scanner,
}

#[derive(Debug)]
struct Said {
    /// Counted over all rooms.
    no: u64,
    id: ItemId,
    /// Empty: it was recalled.
    text: Box<str>,
}

/// A search in one room.
#[derive(Debug)]
struct Search {
    /// Counted over all: another one, with other lists, may follow in the same room.
    no: u64,
    /// The next comment, and the first one that is not looked at.
    from: u64,
    to: u64,
    /// Whether a part of it is done.
    is_begun: bool,
}

/// What comes late after a list changed.
#[derive(Clone, Copy, Debug)]
struct Late {
    /// The first comment that was not looked at yet.
    from: u64,
    due: Mono,
    until: Mono,
}

/// The search that has its turn.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Next {
    no: u64,
    /// App of the room.
    pub app: AppId,
    /// Where.
    pub room: RoomId,
}

/// What one step of a search found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    /// App of the room.
    pub app: AppId,
    /// Where.
    pub room: RoomId,
    /// Comments that were looked at.
    pub comments: usize,
    /// Those that nobody may say any more.
    pub ids: Vec<ItemId>,
    /// Whether the search of this room is over.
    pub is_over: bool,
}

impl Sweep {
    /// Keeps comments up to this size together; nothing, if that is 0.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            rooms: BTreeMap::new(),
            order: VecDeque::new(),
            count: 0,
            forgotten: 0,
            searches: BTreeMap::new(),
            turns: VecDeque::new(),
            begun: 0,
            late: BTreeMap::new(),
            scanner: Scanner::default(),
        }
    }

    /// Items were shown.
    pub fn show(&mut self, app: AppId, room: &RoomId, items: &[Placed], now: Mono) {
        if self.bytes_max == 0 {
            return;
        }
        for Placed { item, .. } in items {
            match &item.body {
                Body::Comment { text, .. } => {
                    let said = Said { no: self.count, id: item.id, text: text.as_str().into() };
                    self.count += 1;
                    self.bytes += OVERHEAD_BYTES + text.len();
                    self.rooms.entry((app, room.clone())).or_default().push_back(said);
                    self.order.push_back((now, (app, room.clone())));
                }
                Body::Tombstone { of } | Body::Erasure { of } => self.recall(app, room, *of),
                Body::Gift { .. }
                | Body::Like { .. }
                | Body::Entry
                | Body::Notice { .. }
                | Body::System { .. }
                | Body::Effect { .. }
                | Body::Custom { .. } => {}
            }
        }
        while self.bytes > self.bytes_max {
            self.forgotten += 1;
            self.pop_oldest();
        }
    }

    /// Forgets what is older than [`MEMORY`].
    pub fn expire(&mut self, now: Mono) {
        while self.order.front().is_some_and(|it| now.since(it.0) >= MEMORY) {
            self.pop_oldest();
        }
    }

    /// A list changed: the app's, in all its rooms, or a room's own.
    pub fn begin(&mut self, app: AppId, room: Option<&RoomId>, now: Mono) {
        self.search(app, room, 0);
        let late = Late { from: self.count, due: now + LATE_LOOK, until: now + LATE };
        self.late.insert((app, room.cloned()), late);
    }

    /// Looks for what came late after a list changed, where it is time to.
    pub fn tick(&mut self, now: Mono) {
        let mut due = Vec::new();
        let count = self.count;
        self.late.retain(|scope, late| {
            if late.due > now {
                return true;
            }
            due.push((scope.clone(), late.from));
            (late.from, late.due) = (count, now + LATE_LOOK);
            now < late.until
        });
        for ((app, room), from) in due {
            self.search(app, room.as_ref(), from);
        }
    }

    /// When [`Sweep::tick`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Mono> {
        self.late.values().map(|it| it.due).min()
    }

    /// The search that has its turn.
    #[must_use]
    pub fn next(&self) -> Option<Next> {
        let key = self.turns.front()?;
        let no = self.searches.get(key)?.no;
        let (app, room) = key.clone();
        Some(Next { no, app, room })
    }

    /// Whether a search of the room is not over.
    #[must_use]
    pub fn is_searched(&self, key: &(AppId, RoomId)) -> bool {
        self.searches.contains_key(key)
    }

    /// Looks at up to `comments_max` comments of a room whose lists are `lists`; at none, if
    /// [`Sweep::next`] is another search by now.
    pub fn step(&mut self, next: &Next, lists: &[&Words], comments_max: usize) -> Option<Found> {
        let key = (next.app, next.room.clone());
        let search = self.searches.get_mut(&key).filter(|it| it.no == next.no)?;
        search.is_begun = true;
        let mut ids = Vec::new();
        let mut comments = 0;
        let mut is_over = true;
        if let Some(room) = self.rooms.get(&key) {
            let first = room.partition_point(|it| it.no < search.from);
            for said in room.range(first..).take_while(|it| it.no < search.to) {
                if comments == comments_max {
                    is_over = false;
                    break;
                }
                comments += 1;
                search.from = said.no + 1;
                let hits = self.scanner.scan(&said.text, lists);
                if hits.iter().any(|it| it.action == Action::Refuse) {
                    ids.push(said.id);
                }
            }
        }
        if is_over {
            self.searches.remove(&key);
            self.turns.pop_front();
        }
        let (app, room) = key;
        Some(Found { app, room, comments, ids, is_over })
    }

    /// Bytes kept.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Comments forgotten before their time since this was last asked.
    pub const fn forgotten(&mut self) -> u64 {
        std::mem::replace(&mut self.forgotten, 0)
    }

    /// Has the rooms looked at, from the comment `from` on.
    fn search(&mut self, app: AppId, room: Option<&RoomId>, from: u64) {
        let is_meant = |key: &Key| key.0 == app && room.is_none_or(|it| *it == key.1);
        for (key, said) in self.rooms.iter().filter(|it| is_meant(it.0)) {
            if said.back().is_none_or(|it| it.no < from) {
                continue;
            }
            self.begun += 1;
            let (no, to) = (self.begun, self.count);
            let before = self.searches.get_mut(key);
            match before {
                // With the same lists, if that is not the beginning.
                Some(before) if from > 0 => before.to = to,
                Some(before) if !before.is_begun => {
                    (before.no, before.from, before.to) = (no, from, to);
                }
                Some(_) | None => {
                    let search = Search { no, from, to, is_begun: false };
                    if self.searches.insert(key.clone(), search).is_some() {
                        self.turns.retain(|it| it != key);
                    }
                    self.turns.push_back(key.clone());
                }
            }
        }
    }

    fn recall(&mut self, app: AppId, room: &RoomId, of: ItemId) {
        let room = self.rooms.get_mut(&(app, room.clone()));
        // Most are recalled soon after they were said.
        let said = room.and_then(|it| it.iter_mut().rev().find(|it| it.id == of));
        if let Some(said) = said {
            self.bytes -= said.text.len();
            said.text = "".into();
        }
    }

    fn pop_oldest(&mut self) {
        let Some((_, key)) = self.order.pop_front() else { return };
        let Some(room) = self.rooms.get_mut(&key) else { return };
        if let Some(said) = room.pop_front() {
            self.bytes -= OVERHEAD_BYTES + said.text.len();
        }
        if room.is_empty() {
            self.rooms.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
