//! What opens sealed rooms is told to who may enter them, and to nobody else.

use proto::control::{Excluded, Fact};
use proto::enter::EnterRequest;
use proto::id::{Gen, RoomId};
use proto::policy::{Entry, Policy, PolicyFact};
use proto::time::Wall;

use crate::world::{APP, OTHER_APP, World, check, ticket};

#[tokio::test]
async fn a_ticket_brings_the_keys_of_its_sealed_room() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let open = world.enter(&ticket("viewer")).await;
    let claimed = world.claims(&open).await.rooms[0].clone();

    world.publish(sealed(&claimed, 7)).await;
    world.until(async || !world.enter(&ticket("viewer")).await.keys.is_empty()).await;

    let keys = world.enter(&ticket("viewer")).await.keys;
    let gens: Vec<u32> = keys[0].keys.iter().map(|it| it.gen_no.0).collect();
    assert!(open.keys.is_empty());
    assert_eq!((keys.len(), &keys[0].room, gens), (1, &claimed, vec![7, 8]));
    assert!(keys[0].keys.iter().all(|it| it.key.len() == 32));
    assert_ne!(keys[0].keys[0].key, keys[0].keys[1].key);
    let text = world.client.get(world.url("/v1/enter.txt")).bearer_auth(ticket("viewer"));
    let text = text.send().await.unwrap().text().await.unwrap();
    assert!(text.contains(&format!("key {claimed} 7 0 {}\n", keys[0].keys[0].key)), "{text}");
}

#[tokio::test]
async fn without_a_ticket_there_is_a_key_only_where_guests_may_read() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let (paid, party) = (room("paid"), room("party"));
    world.publish(sealed(&paid, 1)).await;
    world.publish(sealed(&party, 1)).await;

    let policy = Some(Policy { entry: Entry::Guest, ..Policy::default() });
    let fact = PolicyFact { app: APP, room: Some(party.clone()), version: 1, policy };
    world.publish(Fact::Policy(fact)).await;
    world.until(async || world.ask(&without(&party)).await.status() == 200).await;

    let guest: proto::enter::EnterResponse =
        world.ask(&without(&party)).await.json().await.unwrap();
    assert_eq!(guest.keys.iter().map(|it| &it.room).collect::<Vec<_>>(), [&party]);
    check(world.ask(&without(&paid)).await, 401, "ticket_required").await;
    let other = EnterRequest { app: Some(OTHER_APP), ..without(&party) };
    check(world.ask(&other).await, 401, "ticket_required").await;
}

#[tokio::test]
async fn a_guest_gets_no_key_of_a_room_without_guests() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let (paid, party) = (room("paid"), room("party"));
    let policy = Some(Policy { entry: Entry::Guest, ..Policy::default() });
    world.publish(Fact::Policy(PolicyFact { app: APP, room: None, version: 1, policy })).await;
    let fact = |room: &RoomId, guests| {
        let (room, gen_no) = (room.clone(), Gen(1));
        Fact::Sealed { app: APP, room, gen_no, ended: false, guests }
    };
    world.publish(fact(&paid, false)).await;
    world.publish(fact(&party, true)).await;

    let keys = async |room: &RoomId| {
        let answer = world.ask(&without(room)).await;
        if answer.status() != 200 {
            return 0;
        }
        answer.json::<proto::enter::EnterResponse>().await.unwrap().keys.len()
    };
    world.until(async || keys(&party).await == 1).await;

    assert_eq!(keys(&paid).await, 0);
}

#[tokio::test]
async fn from_an_excluded_range_there_are_no_keys() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let claimed = {
        let open = world.enter(&ticket("viewer")).await;
        world.claims(&open).await.rooms[0].clone()
    };
    world.publish(sealed(&claimed, 7)).await;
    world.until(async || !world.enter(&ticket("viewer")).await.keys.is_empty()).await;

    let range = "127.0.0.0/8".parse().unwrap();
    let (what, until) = (Excluded::Range(range), Wall(u64::MAX / 2));
    world.publish(Fact::Exclude { app: APP, room: claimed, what, until }).await;

    world.until(async || world.enter(&ticket("viewer")).await.keys.is_empty()).await;
}

fn sealed(room: &RoomId, gen_no: u32) -> Fact {
    Fact::Sealed { app: APP, room: room.clone(), gen_no: Gen(gen_no), ended: false, guests: true }
}

fn without(room: &RoomId) -> EnterRequest {
    EnterRequest { app: Some(APP), room: Some(room.clone()), ..EnterRequest::default() }
}

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
