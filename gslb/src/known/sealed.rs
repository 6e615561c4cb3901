//! Rooms whose segments are sealed, and what opens them for who may enter.

use std::collections::BTreeMap;

use auth_core::keyring::Keyring;
use proto::control::Fact;
use proto::id::{AppId, Gen, RoomId};
use proto::keys::RoomKeys;
use proto::time::Wall;

/// Rooms of one app, about 100 bytes each; beyond, viewers get their keys from links alone.
const ROOMS_MAX: usize = 100_000;

/// The running gen of each sealed room.
#[derive(Clone, Debug, Default)]
pub(crate) struct SealedRooms(BTreeMap<AppId, BTreeMap<RoomId, Gen>>);

impl SealedRooms {
    /// Takes note of a fact about a sealed room.
    pub(super) fn handle(&mut self, fact: &Fact) {
        let Fact::Sealed { app, room, gen_no, ended } = fact else {
            return;
        };
        let rooms = self.0.entry(*app).or_default();
        if *ended {
            rooms.remove(room);
        } else if rooms.len() < ROOMS_MAX || rooms.contains_key(room) {
            rooms.insert(room.clone(), *gen_no);
        }
    }

    /// What opens those of the rooms that are sealed: the keys of the running gen and of the next
    /// one. As a rule none is, and the list costs nothing.
    pub(crate) fn keys(
        &self,
        keyring: &Keyring,
        app: AppId,
        rooms: &[RoomId],
        now: Wall,
    ) -> Vec<RoomKeys> {
        let Some(sealed) = self.0.get(&app) else {
            return Vec::new();
        };
        let keys = |room: &RoomId| {
            let gen_no = *sealed.get(room)?;
            let gens = [gen_no, Gen(gen_no.0.saturating_add(1))];
            let keys = gens.into_iter().flat_map(|it| keyring.room_keys(app, room, it, now));
            let keys = keys.map(|it| it.tell()).collect();
            Some(RoomKeys { room: room.clone(), keys })
        };
        rooms.iter().filter_map(keys).collect()
    }
}

#[cfg(test)]
mod tests {
    use proto::keys::{Master, Masters};

    use super::*;

    const APP: AppId = AppId(1);

    fn room(name: &str) -> RoomId {
        RoomId::parse(name).unwrap()
    }

    fn keyring() -> Keyring {
        let masters = vec![Master { kid: 3, key: "0b".repeat(32) }];
        Keyring::new(&Masters { interval_s: 600, masters }).unwrap()
    }

    fn sealed(gen_no: u32, ended: bool) -> Fact {
        Fact::Sealed { app: APP, room: room("paid"), gen_no: Gen(gen_no), ended }
    }

    #[test]
    fn who_may_enter_a_sealed_room_gets_the_running_key_and_the_next() {
        let mut rooms = SealedRooms::default();
        rooms.handle(&sealed(4, false));
        rooms.handle(&sealed(5, false));

        let asked = [room("free"), room("paid")];
        let keys = rooms.keys(&keyring(), APP, &asked, Wall(0));
        let of_other_app = rooms.keys(&keyring(), AppId(2), &asked, Wall(0));

        assert_eq!((keys.len(), &keys[0].room), (1, &asked[1]));
        let gens: Vec<_> = keys[0].keys.iter().map(|it| (it.gen_no, it.kid)).collect();
        assert_eq!(gens, [(Gen(5), 3), (Gen(6), 3)]);
        assert!(of_other_app.is_empty());
    }

    #[test]
    fn a_room_that_is_open_again_has_no_keys() {
        let mut rooms = SealedRooms::default();
        rooms.handle(&sealed(4, false));

        rooms.handle(&sealed(5, true));

        assert!(rooms.keys(&keyring(), APP, &[room("paid")], Wall(0)).is_empty());
    }
}
