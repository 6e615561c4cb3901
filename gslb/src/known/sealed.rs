//! Rooms whose segments are sealed, and what opens them for who may enter.

use std::collections::BTreeMap;

use auth_core::keyring::Keyring;
use proto::control::Fact;
use proto::id::{AppId, Gen, RoomId};
use proto::keys::RoomKeys;
use proto::time::Wall;

/// Rooms of one app, about 100 bytes each; beyond, viewers get their keys from links alone.
const ROOMS_MAX: usize = 100_000;

/// The sealed rooms, by app.
#[derive(Clone, Debug, Default)]
pub(crate) struct SealedRooms(BTreeMap<AppId, BTreeMap<RoomId, SealedRoom>>);

#[derive(Clone, Copy, Debug)]
struct SealedRoom {
    /// The running gen.
    gen_no: Gen,
    /// Whether guests may be in it.
    guests: bool,
}

/// Who asks for keys.
pub(crate) struct Keyholder<'a> {
    pub(crate) app: AppId,
    pub(crate) rooms: &'a [RoomId],
    pub(crate) is_guest: bool,
    /// Whether its device or its address may not be in a room.
    pub(crate) is_excluded: &'a dyn Fn(&RoomId) -> bool,
}

impl SealedRooms {
    /// Takes note of a fact about a sealed room.
    pub(super) fn handle(&mut self, fact: &Fact) {
        let Fact::Sealed { app, room, gen_no, ended, guests } = fact else {
            return;
        };
        let rooms = self.0.entry(*app).or_default();
        if *ended {
            rooms.remove(room);
        } else if rooms.len() < ROOMS_MAX || rooms.contains_key(room) {
            rooms.insert(room.clone(), SealedRoom { gen_no: *gen_no, guests: *guests });
        }
    }

    /// What opens those of the rooms of `of` that are sealed, and may be open to it: the keys of the
    /// running gen and of the next one. As a rule none is, and the list costs nothing.
    pub(crate) fn keys(&self, keyring: &Keyring, of: &Keyholder<'_>, now: Wall) -> Vec<RoomKeys> {
        let Some(sealed) = self.0.get(&of.app) else {
            return Vec::new();
        };
        let keys = |room: &RoomId| {
            let SealedRoom { gen_no, guests } = *sealed.get(room)?;
            if (of.is_guest && !guests) || (of.is_excluded)(room) {
                return None;
            }
            let gens = [gen_no, Gen(gen_no.0.saturating_add(1))];
            let keys = gens.into_iter().flat_map(|it| keyring.room_keys(of.app, room, it, now));
            let keys = keys.map(|it| it.tell()).collect();
            Some(RoomKeys { room: room.clone(), keys })
        };
        of.rooms.iter().filter_map(keys).collect()
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
        Fact::Sealed { app: APP, room: room("paid"), gen_no: Gen(gen_no), ended, guests: false }
    }

    fn viewer(app: AppId, rooms: &[RoomId]) -> Keyholder<'_> {
        Keyholder { app, rooms, is_guest: false, is_excluded: &|_| false }
    }

    #[test]
    fn who_may_enter_a_sealed_room_gets_the_running_key_and_the_next() {
        let mut rooms = SealedRooms::default();
        rooms.handle(&sealed(4, false));
        rooms.handle(&sealed(5, false));

        let asked = [room("free"), room("paid")];
        let keys = rooms.keys(&keyring(), &viewer(APP, &asked), Wall(0));
        let of_other_app = rooms.keys(&keyring(), &viewer(AppId(2), &asked), Wall(0));

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

        assert!(rooms.keys(&keyring(), &viewer(APP, &[room("paid")]), Wall(0)).is_empty());
    }

    #[test]
    fn a_guest_has_keys_only_where_the_room_takes_guests() {
        let mut rooms = SealedRooms::default();
        let (party, paid) = (room("party"), room("paid"));
        let fact = |room: &RoomId, guests| {
            let (room, gen_no) = (room.clone(), Gen(1));
            Fact::Sealed { app: APP, room, gen_no, ended: false, guests }
        };
        rooms.handle(&fact(&party, true));
        rooms.handle(&fact(&paid, true));
        rooms.handle(&fact(&paid, false));

        let both = [party.clone(), paid];
        let of = |is_guest| {
            let keys =
                rooms.keys(&keyring(), &Keyholder { is_guest, ..viewer(APP, &both) }, Wall(0));
            keys.into_iter().map(|it| it.room).collect::<Vec<_>>()
        };

        assert_eq!(of(true), [party]);
        assert_eq!(of(false), both);
    }

    #[test]
    fn who_is_excluded_from_a_room_has_keys_of_the_others() {
        let mut rooms = SealedRooms::default();
        rooms.handle(&sealed(1, false));
        let (free, paid) = ([room("free")], [room("paid")]);

        let keys = |rooms_of: &[RoomId], from: &RoomId| {
            let is_excluded = |it: &RoomId| it == from;
            let of = Keyholder { is_excluded: &is_excluded, ..viewer(APP, rooms_of) };
            rooms.keys(&keyring(), &of, Wall(0)).len()
        };

        assert_eq!((keys(&paid, &paid[0]), keys(&paid, &free[0])), (0, 1));
    }
}
