//! Keys of sealed rooms: who gets them, and which.

use auth_core::keyring::Keyring;
use auth_core::room_key::RoomKey;
use proto::id::{AppId, Gen, NodeId, RoomId};
use proto::keys::{Masters, ROOM_GENS_MAX, ROOMS_MAX, RoomGens, RoomKeysAnswer, RoomKeysRequest};
use reqwest::Response;

use crate::world::{BROADCASTER, GSLB, LINK, World, check, secret};

#[tokio::test]
async fn broadcasters_and_links_get_the_keys_that_gslb_derives() {
    let world = World::start().await;
    world.ready().await;

    let broadcaster = answer(ask(&world, BROADCASTER, vec![paid(&[3, 4])]).await).await;
    let link = answer(ask(&world, LINK, vec![paid(&[3, 4])]).await).await;

    let masters: Masters = world.masters(GSLB).await.json().await.unwrap();
    let gslb = Keyring::new(&masters).unwrap();
    let derive = |it| gslb.room_keys(AppId(1), &room(), Gen(it), world.clock.wall());
    let expected: Vec<RoomKey> = [3, 4].into_iter().flat_map(derive).collect();
    assert_eq!((broadcaster.len(), &broadcaster), (2, &expected));
    assert_eq!(link, expected);
    let counted = "auth_key_answers_total{keys=\"rooms\",outcome=\"ok\"} 2";
    assert!(world.meter.render().contains(counted));
}

#[tokio::test]
async fn a_room_of_an_unknown_app_has_no_keys_and_the_others_have() {
    let world = World::start().await;
    world.ready().await;
    let other_app = RoomGens { app: AppId(2), ..paid(&[1]) };

    let answer = ask(&world, LINK, vec![other_app, paid(&[1])]).await;

    let answer: RoomKeysAnswer = answer.json().await.unwrap();
    let counts: Vec<usize> = answer.rooms.iter().map(|it| it.keys.len()).collect();
    assert_eq!(counts, [0, 1]);
}

#[tokio::test]
async fn nobody_else_gets_them_and_nobody_too_many() {
    let world = World::start().await;
    world.ready().await;
    let gens: Vec<u32> = (0..=u32::try_from(ROOM_GENS_MAX).unwrap()).collect();

    check(ask(&world, GSLB, vec![paid(&[1])]).await, 403, "wrong_role").await;
    check(ask(&world, NodeId(99), vec![paid(&[1])]).await, 401, "unknown_node").await;
    check(ask(&world, LINK, vec![paid(&gens)]).await, 400, "bad_request").await;
    let rooms = vec![paid(&[1]); ROOMS_MAX + 1];
    check(ask(&world, LINK, rooms).await, 400, "bad_request").await;
}

fn room() -> RoomId {
    RoomId::parse("paid").unwrap()
}

fn paid(gens: &[u32]) -> RoomGens {
    RoomGens { app: AppId(1), room: room(), gens: gens.iter().copied().map(Gen).collect() }
}

async fn ask(world: &World, node: NodeId, rooms: Vec<RoomGens>) -> Response {
    let request = world.client.post(world.url("/v1/keys/rooms")).json(&RoomKeysRequest { rooms });
    let request = request.header("x-barrage-node", node.0).bearer_auth(secret(node));
    request.send().await.unwrap()
}

async fn answer(response: Response) -> Vec<RoomKey> {
    let answer: RoomKeysAnswer = response.json().await.unwrap();
    let keys = answer.rooms.iter().flat_map(|it| &it.keys);
    keys.map(|it| RoomKey::read(it).unwrap()).collect()
}
