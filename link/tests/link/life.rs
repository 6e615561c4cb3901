//! A session's life: it switches rooms, is renewed, and ends when its time is over.

use bus::memory::Limits;
use proto::close::CloseCode;
use proto::envelope::Act;
use proto::frame::{Ack, Downlink, Join, JoinOutcome, Outcome, Path, Uplink};
use proto::id::{Cid, ViewerId};
use proto::verdict::{Reason, Verdict};

use crate::client::{Client, comment};
use crate::world::{World, room};

#[tokio::test]
async fn a_session_that_switches_rooms_in_one_flight_is_in_the_new_one_alone() {
    let (mut world, mut client) = in_two_rooms().await;

    let switch = [leave("r"), join("s"), comment(1, "too late"), comment_in("s", 2)];
    client.send_bytes(&switch.map(|it| it.encode())).await;

    assert!(is_in(&client.receive().await, "s"));
    let outcome = Verdict::Drop { reason: Reason::NotJoined, retry_after_ms: 0 };
    let refused = Ack { cid: Cid(1), outcome: Outcome::Verdict(outcome) };
    assert_eq!(client.receive().await, Downlink::Ack(refused));
    let alice = ViewerId::parse("alice").unwrap();
    let said = |act: &Act| matches!(act, Act::Comment { cid: Cid(2), .. });
    let entry = world.act(|it| it.viewer == alice && said(&it.act)).await;
    assert_eq!(entry.room, room("s"));
}

#[tokio::test]
async fn a_session_that_comes_back_to_a_room_at_once_is_in_it() {
    let (mut world, mut client) = in_two_rooms().await;

    let back = [leave("r"), join("s"), leave("s"), join("r"), comment(1, "I am back")];
    client.send_bytes(&back.map(|it| it.encode())).await;

    assert!(is_in(&client.receive().await, "s"));
    assert!(is_in(&client.receive().await, "r"));
    let alice = ViewerId::parse("alice").unwrap();
    let said = |act: &Act| matches!(act, Act::Comment { cid: Cid(1), .. });
    let entry = world.act(|it| it.viewer == alice && said(&it.act)).await;
    assert_eq!(entry.room, room("r"));
    client.lives().await;
}

#[tokio::test]
async fn a_renewed_session_lives_on_and_ends_when_its_time_is_over() {
    let world = World::with(Limits::default(), |config| {
        config.life_ms_min = 1_500;
        config.life_ms_max = 1_500;
    })
    .await;
    let mut client = world.connect("tls").await;
    let first = client.login(&world.token("tls", "alice", "r"), "r").await.ok();

    let half = first.expires.since(world.clock.wall()) / 2;
    world.clock.sleep_until(world.clock.mono() + half).await;
    client.send(Uplink::Refresh { token: world.token("tls", "alice", "r") }).await;
    let Downlink::LoginOk(second) = client.receive().await else { panic!("not renewed") };
    let code = client.closed().await;

    assert_eq!(second.session, first.session);
    assert!(second.expires > first.expires && second.resume_ticket != first.resume_ticket);
    assert_eq!(code, CloseCode::Expired);
    assert!(code.comes_back(), "with a new token");
    assert!(world.clock.wall() >= second.expires);
}

/// A session in `r` that may also be in `s`.
async fn in_two_rooms() -> (World, Client) {
    let world = World::new().await;
    world.open_room("s").await;
    let token = world.token_with("tcp", "alice", "r", |claims| {
        claims.rooms = vec![room("r"), room("s")].try_into().unwrap();
    });
    let mut client = world.connect("tcp").await;
    client.login(&token, "r").await.ok();
    (world, client)
}

fn join(name: &str) -> Uplink {
    Uplink::Join(Join { room: room(name), path: Path::Auto, resume: None })
}

fn leave(name: &str) -> Uplink {
    Uplink::Leave { room: room(name) }
}

fn comment_in(name: &str, cid: u64) -> Uplink {
    match comment(cid, "hello") {
        Uplink::Comment(comment) => {
            Uplink::Comment(proto::frame::Comment { room: room(name), ..comment })
        }
        other => other,
    }
}

fn is_in(downlink: &Downlink, name: &str) -> bool {
    matches!(downlink, Downlink::Joined(it)
        if it.room == room(name) && matches!(it.outcome, JoinOutcome::In { .. }))
}
