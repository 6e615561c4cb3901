//! Keys of sealed rooms go to who is in them, ahead of the gen that they are for.

use auth_core::token::flag;
use proto::close::CloseCode;
use proto::control::{Fact, RoomFact, RoomSettings};
use proto::frame::{Control, Downlink};
use proto::id::{Gen, ViewerId};

use crate::client::Client;
use crate::world::{APP, World, room};

#[tokio::test]
async fn keys_are_told_to_who_is_in_and_to_who_comes_and_the_next_one_ahead() {
    let world = World::new().await;
    world.open_room("q").await;
    let mut early = world.enter("tcp", "alice", "r").await;
    let mut elsewhere = world.enter("tcp", "carol", "q").await;

    world.tell(sealed(3, false)).await;
    assert_eq!(gens(&mut early).await, [3, 4]);
    let mut late = world.enter("ws", "bob", "r").await;
    assert_eq!(gens(&mut late).await, [3, 4]);
    world.tell(sealed(4, false)).await;

    assert_eq!(gens(&mut early).await, [4, 5]);
    assert_eq!(gens(&mut late).await, [4, 5]);
    // Nothing was said to those elsewhere before what is said to them now.
    world.tell(sealed_in("q", 1, false)).await;
    assert_eq!(gens(&mut elsewhere).await, [1, 2]);
}

#[tokio::test]
async fn who_was_kicked_gets_no_further_key() {
    let world = World::new().await;
    let mut alice = world.enter("tcp", "alice", "r").await;
    let mut bob = world.enter("tcp", "bob", "r").await;
    world.tell(sealed(3, false)).await;
    assert_eq!(gens(&mut bob).await, [3, 4]);
    gens(&mut alice).await;

    let (viewer, not_before) = (ViewerId::parse("bob").unwrap(), world.clock.wall());
    world.tell(Fact::Kick { app: APP, room: room("r"), viewer, not_before }).await;
    world.tell(sealed(4, false)).await;

    assert_eq!(gens(&mut alice).await, [4, 5]);
    let Downlink::Close(close) = bob.receive().await else { panic!("a kick ends the session") };
    assert_eq!(close.code, CloseCode::Kicked);
}

#[tokio::test]
async fn a_guest_is_out_and_gets_no_further_key_when_the_room_takes_none() {
    let world = World::new().await;
    let token = world.token_with("tcp", "guest", "r", |it| it.flags = flag::GUEST);
    let mut guest = world.connect("tcp").await;
    assert!(guest.login(&token, "r").await.is_in());
    let mut alice = world.enter("tcp", "alice", "r").await;
    world.tell(sealed(3, false)).await;
    assert_eq!((gens(&mut guest).await, gens(&mut alice).await), (vec![3, 4], vec![3, 4]));

    let settings = RoomSettings { guests: false, ..RoomSettings::default() };
    let (app, room) = (APP, room("r"));
    world.tell(Fact::Room(RoomFact { app, room, version: 2, open: true, settings })).await;

    assert_eq!(guest.closed().await, CloseCode::NoRoom);
    world.tell(sealed(4, false)).await;
    assert_eq!(gens(&mut alice).await, [4, 5]);
}

fn sealed(gen_no: u32, ended: bool) -> Fact {
    sealed_in("r", gen_no, ended)
}

fn sealed_in(name: &str, gen_no: u32, ended: bool) -> Fact {
    Fact::Sealed { app: APP, room: room(name), gen_no: Gen(gen_no), ended, guests: true }
}

async fn gens(client: &mut Client) -> Vec<u32> {
    let Downlink::Control(Control::Keys(told)) = client.receive().await else {
        panic!("keys were to come")
    };
    told.keys.iter().map(|it| it.gen_no.0).collect()
}
