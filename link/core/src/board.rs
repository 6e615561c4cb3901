//! What rooms have written up for everyone in them, and what their people are by their word.

use std::collections::BTreeMap;

use proto::attribute::{ATTRIBUTES_MAX, Attribute};
use proto::control::Standing;
use proto::id::{AppId, AttributeName, RoomId, ViewerId};

/// Viewers of whom one room says what they are; chatservers keep to this.
const STANDINGS_MAX: usize = 10_000;

/// The boards of all rooms that have something on one. It may be told of before its room is.
///
/// Another app's room of the same name, or a later one, has a board of its own.
#[derive(Debug)]
pub struct Boards {
    boards: BTreeMap<(AppId, RoomId), Board>,
    rooms_max: usize,
    ignored: u64,
}

#[derive(Debug, Default)]
struct Board {
    attributes: BTreeMap<AttributeName, Attribute>,
    standings: BTreeMap<ViewerId, Standing>,
}

impl Boards {
    /// None yet; at most `rooms_max` rooms will have one.
    #[must_use]
    pub const fn new(rooms_max: usize) -> Self {
        Self { boards: BTreeMap::new(), rooms_max, ignored: 0 }
    }

    /// Takes in what stands under a name now. Says whether that is news.
    pub fn write(&mut self, app: AppId, room: &RoomId, attribute: &Attribute) -> bool {
        let key = (app, room.clone());
        let Some(board) = self.board(&key) else {
            return false;
        };
        let known = board.attributes.get(&attribute.name);
        // The notice stands beside the attributes.
        let is_full = known.is_none() && board.attributes.len() > ATTRIBUTES_MAX;
        let is_news = known.is_none_or(|it| it.version < attribute.version) && !is_full;
        if is_news && attribute.value.is_some() {
            board.attributes.insert(attribute.name.clone(), attribute.clone());
        } else if is_news {
            board.attributes.remove(&attribute.name);
        }
        self.tidy(&key);
        is_news
    }

    /// Takes in what a viewer is.
    pub fn stand(&mut self, app: AppId, room: &RoomId, viewer: &ViewerId, standing: Standing) {
        let key = (app, room.clone());
        let Some(board) = self.board(&key) else {
            return;
        };
        if standing.is_none() {
            board.standings.remove(viewer);
        } else if board.standings.len() < STANDINGS_MAX || board.standings.contains_key(viewer) {
            board.standings.insert(viewer.clone(), standing);
        }
        self.tidy(&key);
    }

    /// Takes down the board of a room that is closed.
    pub fn close(&mut self, app: AppId, room: &RoomId) {
        self.boards.remove(&(app, room.clone()));
    }

    /// What was ignored because too many rooms have a board.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Everything that stands on a room's board.
    #[must_use]
    pub fn attributes(&self, app: AppId, room: &RoomId) -> Vec<Attribute> {
        let board = self.boards.get(&(app, room.clone()));
        board.map_or_else(Vec::new, |it| it.attributes.values().cloned().collect())
    }

    /// What a viewer is by the room's word.
    #[must_use]
    pub fn standing(&self, app: AppId, room: &RoomId, viewer: &ViewerId) -> Standing {
        let board = self.boards.get(&(app, room.clone()));
        board.and_then(|it| it.standings.get(viewer)).copied().unwrap_or_default()
    }

    /// The room's board, made if there is place for it.
    fn board(&mut self, key: &(AppId, RoomId)) -> Option<&mut Board> {
        if self.boards.len() >= self.rooms_max && !self.boards.contains_key(key) {
            self.ignored += 1;
            return None;
        }
        Some(self.boards.entry(key.clone()).or_default())
    }

    /// A board with nothing on it is none.
    fn tidy(&mut self, key: &(AppId, RoomId)) {
        let is_empty = |it: &Board| it.attributes.is_empty() && it.standings.is_empty();
        if self.boards.get(key).is_some_and(is_empty) {
            self.boards.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::attribute::Value;

    use super::*;

    const APP: AppId = AppId(1);

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }

    fn attribute(name: &str, version: u64, value: Option<i64>) -> Attribute {
        let name = AttributeName::parse(name).unwrap();
        Attribute { name, version, value: value.map(Value::Count) }
    }

    #[test]
    fn the_newest_version_of_each_name_stands() {
        let mut boards = Boards::new(10);

        assert!(boards.write(APP, &room("r"), &attribute("a", 2, Some(1))));
        assert!(!boards.write(APP, &room("r"), &attribute("a", 2, Some(2))));
        assert!(!boards.write(APP, &room("r"), &attribute("a", 1, None)));
        assert!(boards.write(APP, &room("r"), &attribute("b", 1, Some(3))));
        assert!(boards.write(APP, &room("r"), &attribute("a", 3, Some(4))));

        let all = [attribute("a", 3, Some(4)), attribute("b", 1, Some(3))];
        assert_eq!(boards.attributes(APP, &room("r")), all);
        assert_eq!(boards.attributes(APP, &room("q")), []);
    }

    #[test]
    fn boards_are_bounded_and_an_empty_one_takes_no_place() {
        let mut boards = Boards::new(1);
        let viewer = ViewerId::parse("v").unwrap();
        let listed = Standing { listed: true, ..Standing::default() };
        boards.stand(APP, &room("r"), &viewer, listed);

        assert!(!boards.write(APP, &room("q"), &attribute("a", 1, Some(1))));
        assert_eq!(boards.ignored(), 1);
        assert!(boards.standing(APP, &room("r"), &viewer).listed);

        boards.stand(APP, &room("r"), &viewer, Standing::default());
        for no in 0..=ATTRIBUTES_MAX {
            assert!(boards.write(APP, &room("q"), &attribute(&format!("a{no}"), 1, Some(1))));
        }
        assert!(!boards.write(APP, &room("q"), &attribute("more", 1, Some(1))));
    }

    #[test]
    fn a_closed_rooms_board_makes_place_and_is_nobody_elses() {
        let mut boards = Boards::new(1);
        boards.write(APP, &room("r"), &attribute("a", 5, Some(1)));

        assert_eq!(boards.attributes(AppId(2), &room("r")), []);
        assert!(!boards.write(AppId(2), &room("r"), &attribute("a", 1, Some(2))));
        boards.close(APP, &room("r"));
        assert!(boards.write(AppId(2), &room("r"), &attribute("a", 1, Some(2))));
        assert_eq!(boards.attributes(APP, &room("r")), []);
    }
}
