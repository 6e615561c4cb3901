//! Who is let in, who is counted, and which comments are kept.

use proto::control::RoomSettings;

use super::*;

/// Of the node.
const SECRET: u128 = 7;

#[test]
fn one_viewer_with_two_sessions_is_one_of_the_people() {
    let mut hub = hub();
    hub.join(&member(1, "a"), &room("r")).unwrap();
    hub.join(&member(2, "a"), &room("r")).unwrap();
    hub.join(&member(3, "b"), &room("r")).unwrap();

    assert_eq!((hub.people(&room("r")), hub.sessions(&room("r"))), (2, 3));

    assert!(hub.leave(&member(1, "a"), &room("r")));
    assert!(!hub.leave(&member(1, "a"), &room("r")));
    assert_eq!((hub.people(&room("r")), hub.sessions(&room("r"))), (2, 2));
}

#[test]
fn an_unknown_closed_or_foreign_room_is_refused() {
    let mut hub = hub();
    let closed = RoomFact { version: 2, open: false, ..fact("r") };

    assert_eq!(hub.join(&member(1, "a"), &room("x")), Err(Refusal::NoRoom));
    let foreigner = Arc::new(Member { app: AppId(2), ..Member::clone(&member(1, "a")) });
    assert_eq!(hub.join(&foreigner, &room("r")), Err(Refusal::NoRoom));

    hub.learn(&closed);
    assert_eq!(hub.join(&member(1, "a"), &room("r")), Err(Refusal::Closed));

    hub.learn(&fact("r"));
    assert_eq!(hub.join(&member(1, "a"), &room("r")), Err(Refusal::Closed), "older fact");
}

#[test]
fn a_later_room_of_another_app_takes_the_place_of_a_closed_one_that_nobody_is_in() {
    let mut hub = hub();
    let later = RoomFact { app: AppId(2), version: 4, ..fact("r") };
    hub.join(&member(1, "a"), &room("r")).unwrap();
    assert!(hub.learn(&later), "still the first one");
    hub.learn(&RoomFact { version: 3, open: false, ..fact("r") });
    assert!(hub.is_closed(AppId(1), &room("r")) && !hub.learn(&later));

    hub.depart(&member(1, "a"));

    assert!(!hub.learn(&RoomFact { version: 2, ..later.clone() }));
    assert!(hub.learn(&later) && !hub.is_closed(AppId(2), &room("r")));
    let other = Arc::new(Member { app: AppId(2), ..Member::clone(&member(2, "b")) });
    assert_eq!(hub.join(&other, &room("r")), Ok(Joined::Entered));
}

#[test]
fn guests_stay_out_where_they_are_not_wanted() {
    let mut hub = hub();
    let guest = Arc::new(Member { role: Role::Guest, ..Member::clone(&member(1, "g")) });
    let mut private = fact("r");
    private.version = 2;
    private.settings.guests = false;

    assert_eq!(hub.join(&guest, &room("r")), Ok(Joined::Entered));
    hub.depart(&guest);
    hub.learn(&private);

    assert_eq!(hub.join(&guest, &room("r")), Err(Refusal::NoGuests));
    assert_eq!(hub.join(&member(2, "a"), &room("r")), Ok(Joined::Entered));
}

#[test]
fn offers_are_counted_and_held_to_the_rooms_share_and_to_what_it_shows() {
    let mut hub = hub();
    hub.join(&member(1, "a"), &room("r")).unwrap();
    let offer = |hub: &mut Hub, cid| {
        let viewer = ViewerId::parse("a").unwrap();
        hub.offer(&room("r"), &viewer, Cid(cid), Mono(0))
    };

    assert_eq!(offer(&mut hub, 1), Offered::Kept);
    let capped = (0..1_000).filter(|it| offer(&mut hub, *it) == Offered::Capped).count();
    assert!((870..900).contains(&capped), "{capped} beyond a burst");
    hub.keep(&room("r"), 0);
    assert_eq!(offer(&mut hub, 1), Offered::Sampled);
    assert_eq!(hub.gauges()[0].offered, 1_002);
    assert_eq!(hub.gauges()[0].offered, 0);
}

#[test]
fn known_rooms_are_bounded_and_closed_ones_give_way() {
    let mut hub = Hub::new(1, SECRET);
    assert!(hub.learn(&fact("a")));
    assert!(!hub.learn(&fact("b")));
    assert!(!hub.learn(&RoomFact { open: false, ..fact("c") }));
    assert_eq!(hub.refused(), 1, "who is closed is not missed");

    hub.learn(&RoomFact { version: 2, open: false, ..fact("a") });

    assert!(hub.learn(&fact("b")));
    assert_eq!(hub.refused(), 1);
}

fn hub() -> Hub {
    let mut hub = Hub::new(10, SECRET);
    hub.learn(&fact("r"));
    hub
}

fn fact(name: &str) -> RoomFact {
    RoomFact {
        app: AppId(1),
        room: room(name),
        version: 1,
        open: true,
        settings: RoomSettings::default(),
    }
}

fn member(session: u64, viewer: &str) -> Arc<Member> {
    Arc::new(Member {
        session: SessionId(session),
        app: AppId(1),
        viewer: ViewerId::parse(viewer).unwrap(),
        role: Role::Viewer,
        may_send: true,
    })
}

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
