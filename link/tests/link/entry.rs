//! How many come into a room: over several nodes, at one node, and as people.

use std::time::Duration;

use auth_core::token::flag;
use proto::close::CloseCode;
use proto::frame::{Credential, Downlink, Join, JoinOutcome, Login, Path, Refused, Uplink};
use proto::time::Mono;

use crate::client::{Answer, Client};
use crate::world::{PATIENCE, World, room};

const LIMIT: u32 = 200;
/// So long the rush lasts.
const RUSH: Duration = Duration::from_secs(6);
/// Sessions at each node that want to come in again and again.
const RUSHERS: usize = 5;

/// What one session of the rush saw.
#[derive(Default)]
struct Saw {
    passed: u32,
    refused: u32,
    waits_ms: Vec<u32>,
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_together_keep_the_limit_of_a_room() {
    let mut world = World::with(bus::memory::Limits::default(), |config| {
        config.entry.room_joins_per_s = LIMIT;
        config.frames_per_s = 100_000;
        config.frames_burst = 100_000;
    })
    .await;
    world.open_room("s").await;
    let mut established = world.enter("tcp", "established", "s").await;
    let mut rushers = Vec::new();
    for index in 0..2 * RUSHERS {
        if index == RUSHERS {
            world.move_to_another_link().await;
            world.open_room("s").await;
        }
        let token = world.token_with("tcp", &format!("viewer-{index}"), "s", |claims| {
            claims.rooms = vec![room("r"), room("s")].try_into().unwrap();
        });
        let mut client = world.connect("tcp").await;
        client.login(&token, "s").await.ok();
        rushers.push(client);
    }
    world.until("the nodes know each other", || world.metric("link_entry_nodes") == 2).await;

    let start = world.clock.mono();
    let until = start + RUSH;
    let rush: Vec<_> = rushers.into_iter().map(|it| rush(it, world.clock.clone(), until)).collect();
    let calm = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let mut longest = Duration::ZERO;
        while world.clock.mono() < until {
            ticks.tick().await;
            let asked = world.clock.mono();
            established.lives().await;
            longest = longest.max(world.clock.mono().since(asked));
        }
        longest
    };
    let (saw, longest) = tokio::join!(futures_util::future::join_all(rush), calm);

    let passed: u32 = saw.iter().map(|it| it.passed).sum();
    let refused: u32 = saw.iter().map(|it| it.refused).sum();
    let limit = LIMIT * u32::try_from(RUSH.as_secs()).unwrap();
    assert!(refused >= 4 * limit, "{refused} refused: not five times the limit");
    assert!(passed <= limit / 100 * 105, "{passed} of {limit}");
    assert!(passed >= limit / 100 * 95, "{passed} of {limit}");
    assert!(saw.iter().all(|it| it.waits_ms.iter().all(|&wait| wait > 0)), "nobody is told 0");
    assert!(longest < Duration::from_secs(1), "the established session waited {longest:?}");
}

/// Joins and leaves until then, six times as often as may pass.
async fn rush(mut client: Client, clock: kit::clock::Clock, until: Mono) -> Saw {
    let mut saw = Saw::default();
    let each = Duration::from_secs(1) * u32::try_from(2 * RUSHERS).unwrap() / (6 * LIMIT);
    let mut next = clock.mono();
    let mut ticks = tokio::time::interval(each);
    while next < until {
        ticks.tick().await;
        client.send(Uplink::Join(Join { room: room("r"), path: Path::Auto, resume: None })).await;
        let joined = loop {
            if let Downlink::Joined(joined) = client.receive().await {
                break joined;
            }
        };
        next = clock.mono();
        match joined.outcome {
            JoinOutcome::In { .. } => {
                saw.passed += 1;
                client.send(Uplink::Leave { room: room("r") }).await;
            }
            JoinOutcome::Refused { code, retry_after_ms } => {
                assert_eq!(code, CloseCode::RateLimited);
                saw.refused += 1;
                saw.waits_ms.push(retry_after_ms);
            }
        }
    }
    saw
}

#[tokio::test]
async fn a_login_into_a_full_rush_costs_no_token() {
    let world = World::with(bus::memory::Limits::default(), |config| {
        config.entry.room_joins_per_s = 2;
    })
    .await;
    let token = world.token("tcp", "alice", "r");
    let refused = loop {
        let mut rusher = world.connect("tcp").await;
        if let Answer::Out(code) = rusher.login(&world.token("tcp", "rusher", "r"), "r").await {
            break code;
        }
    };
    assert_eq!(refused, CloseCode::RateLimited);

    let (mut tries, mut waited_ms) = (0, 0);
    let entered = tokio::time::timeout(PATIENCE, async {
        while let Err(refused) = login(&world, &token).await {
            assert_eq!(refused.code, CloseCode::RateLimited);
            assert!(refused.retry_after_ms > 0);
            (tries, waited_ms) = (tries + 1, refused.retry_after_ms);
            let back = world.clock.mono() + Duration::from_millis(refused.retry_after_ms.into());
            world.clock.sleep_until(back).await;
        }
    });

    entered.await.expect("the single-use token was good all the time");
    assert!(tries <= 4, "{tries} tries, the last after {waited_ms} ms");
    assert!(world.metric("link_logins_total{outcome=\"room_limited\"}") > 0);
}

#[tokio::test]
async fn moderators_come_in_however_many_others_want_to() {
    let world = World::with(bus::memory::Limits::default(), |config| {
        config.entry.room_joins_per_s = 1;
    })
    .await;
    let mut moderators = Vec::new();

    for index in 0..5 {
        let name = format!("moderator-{index}");
        let token = world.token_with("tcp", &name, "r", |it| it.flags |= flag::MODERATOR);
        let mut moderator = world.connect("tcp").await;
        assert!(moderator.login(&token, "r").await.is_in(), "{name}");
        moderators.push(moderator);
    }
}

#[tokio::test]
async fn a_room_holds_so_many_people_and_their_further_sessions() {
    let world = World::with(bus::memory::Limits::default(), |config| {
        config.entry.room_people_max = 2;
    })
    .await;
    world.until("the probe is gone", || world.metric("link_sessions") == 0).await;
    let _alice = world.enter("tcp", "alice", "r").await;
    let _bob = world.enter("ws", "bob", "r").await;

    let mut carol = world.connect("tcp").await;
    let ok = carol.login(&world.token("tcp", "carol", "r"), "r").await.ok();
    let _another = world.enter("ws", "alice", "r").await;

    let JoinOutcome::Refused { code, retry_after_ms } = ok.rooms[0].outcome else { panic!() };
    assert_eq!(code, CloseCode::Full);
    assert!(retry_after_ms >= 5_000, "{retry_after_ms}");
    assert_eq!(world.metric("link_joins_total{outcome=\"crowded\"}"), 1);
}

#[tokio::test]
async fn a_session_is_in_eight_rooms_and_no_more() {
    let world = World::new().await;
    let names: Vec<_> = (0..8).map(|it| format!("room-{it}")).collect();
    for name in &names {
        world.open_room(name).await;
    }
    let token = || {
        world.token_with("tcp", "alice", "r", |claims| {
            let rooms: Vec<_> = names.iter().map(|it| room(it)).collect();
            claims.rooms = rooms.try_into().unwrap();
        })
    };
    let mut client = world.connect("tcp").await;

    let answer = login_into(&mut client, &token(), &names).await;
    let Downlink::LoginOk(ok) = answer else { panic!("{answer:?}") };
    let nine: Vec<_> = names.iter().cloned().chain(["r".to_owned()]).collect();
    let mut greedy = world.connect("tcp").await;
    let answer = login_into(&mut greedy, &token(), &nine).await;

    assert_eq!(ok.rooms.len(), 8);
    assert!(ok.rooms.iter().all(|it| matches!(it.outcome, JoinOutcome::In { .. })));
    assert!(matches!(answer, Downlink::Close(it) if it.code == CloseCode::BadFrame));
}

#[tokio::test]
async fn a_node_knows_so_many_rooms_and_counts_who_wants_into_others() {
    let world = World::with(bus::memory::Limits::default(), |config| config.rooms_max = 1).await;

    let mut client = world.connect("tcp").await;
    let ok = client.login(&world.token("tcp", "alice", "s"), "s").await.ok();

    let JoinOutcome::Refused { code, .. } = ok.rooms[0].outcome else { panic!() };
    assert_eq!(code, CloseCode::NoRoom);
    assert!(world.metric("link_joins_total{outcome=\"no_room\"}") >= 1);
}

/// Logs in with a token; a refusal with all it says.
async fn login(world: &World, token: &str) -> Result<Client, Refused> {
    let mut client = world.connect("tcp").await;
    match login_into(&mut client, token, &["r".to_owned()]).await {
        Downlink::LoginOk(ok) => {
            assert!(matches!(ok.rooms[0].outcome, JoinOutcome::In { .. }), "{ok:?}");
            Ok(client)
        }
        Downlink::Refused(refused) => Err(refused),
        other => panic!("{other:?}"),
    }
}

/// The answer to a login into these rooms.
async fn login_into(client: &mut Client, token: &str, names: &[String]) -> Downlink {
    let joins = names.iter().map(|it| Join { room: room(it), path: Path::Auto, resume: None });
    let credential = Credential::Token(token.to_owned());
    let login = Login { credential, binder: None, device: None, joins: joins.collect() };
    let hello = Uplink::Hello(client.offer.clone());
    client.send_bytes(&[hello.encode(), Uplink::Login(login).encode()]).await;
    loop {
        match client.receive().await {
            Downlink::Welcome(_) => {}
            answer => return answer,
        }
    }
}
