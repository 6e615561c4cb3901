//! What policies make of a ticket, and of none; they change while everything runs.

use auth_core::token::flag;
use proto::control::Fact;
use proto::enter::{EnterRequest, EnterResponse};
use proto::id::{AppId, RoomId};
use proto::item::Role;
use proto::policy::{Access, Entry, Policy, PolicyFact};

use crate::world::{APP, OTHER_APP, World, api_key, check, ticket, ticket_with};

#[tokio::test]
async fn a_policy_that_changes_counts_from_the_next_question_on() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let verified = ticket_with("verified", |it| it.verified = true);
    let minor = ticket_with("minor", |it| (it.verified, it.minor) = (true, true));
    let ask = |it: &str| EnterRequest { ticket: it.to_owned(), ..EnterRequest::default() };

    publish(&world, 1, Policy { unverified: Access::Read, token_ttl_s: 20, ..Policy::default() })
        .await;
    world.until(async || claims(&world, &ticket("viewer")).await.ttl_s == 20).await;
    assert_eq!(claims(&world, &ticket("viewer")).await.flags, flag::SINGLE_USE);
    assert_eq!(claims(&world, &verified).await.flags, flag::SINGLE_USE | flag::MAY_SEND);

    let strict = Policy { unverified: Access::Refuse, minors: Access::Refuse, ..Policy::default() };
    publish(&world, 2, strict).await;
    world.until(async || world.ask(&ask(&ticket("viewer"))).await.status() != 200).await;
    check(world.ask(&ask(&ticket("viewer"))).await, 403, "not_verified").await;
    check(world.ask(&ask(&minor)).await, 403, "minors_refused").await;
    assert_eq!(claims(&world, &verified).await.ttl_s, 60);

    publish(&world, 3, Policy { single_use: false, ..Policy::default() }).await;
    world.until(async || world.ask(&ask(&minor)).await.status() == 200).await;
    assert_eq!(claims(&world, &minor).await.flags, flag::MAY_SEND);
}

#[tokio::test]
async fn without_a_ticket_a_viewer_enters_where_the_policy_lets() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let entrants = |by| world.answers(&format!("by=\"{by}\""));

    check(world.ask(&without("lobby")).await, 401, "ticket_required").await;
    publish(&world, 1, Policy { entry: Entry::Guest, ..Policy::default() }).await;
    world.until(async || world.ask(&without("lobby")).await.status() == 200).await;
    let guest = world.claims(&enter(&world, "lobby").await).await;
    publish(&world, 2, Policy { entry: Entry::Open, ..Policy::default() }).await;
    world
        .until(async || entrants("open") > 0 || enter(&world, "lobby").await.addresses.is_empty())
        .await;
    let (first, second) = (enter(&world, "lobby").await, enter(&world, "lobby").await);
    let (first, second) = (world.claims(&first).await, world.claims(&second).await);

    assert_eq!(
        (guest.flags, guest.role()),
        (flag::NO_TICKET | flag::GUEST | flag::SINGLE_USE, Role::Guest)
    );
    assert_eq!(
        (first.flags, first.role()),
        (flag::NO_TICKET | flag::MAY_SEND | flag::SINGLE_USE, Role::Viewer)
    );
    assert_eq!((first.app, &first.rooms[..]), (APP, &[room("lobby")][..]));
    for account in [&guest.account, &first.account] {
        assert_eq!((account.as_str().len(), &account.as_str()[..5]), (37, "anon-"));
    }
    assert_ne!(first.account, second.account);
    assert!(entrants("guest") > 0 && entrants("ticket") > 0);
}

#[tokio::test]
async fn a_room_s_own_policy_stands_in_for_its_app_s() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;

    let policy = Some(Policy { entry: Entry::Open, ..Policy::default() });
    let fact = PolicyFact { app: APP, room: Some(room("party")), version: 1, policy };
    world.publish(Fact::Policy(fact)).await;
    world.until(async || world.ask(&without("party")).await.status() == 200).await;

    check(world.ask(&without("lobby")).await, 401, "ticket_required").await;
    let other = EnterRequest { app: Some(OTHER_APP), ..without("party") };
    check(world.ask(&other).await, 401, "ticket_required").await;
}

#[tokio::test]
async fn a_question_without_a_ticket_names_an_app_and_a_room_and_nothing_to_renew() {
    let mut world = World::start_without_auth(([127, 0, 0, 1], 0).into());
    for app in &mut world.apps {
        app.policy.entry = Entry::Open;
    }
    world.start_auth(world.gslb).await;
    world.start_gslb(|_| {}).await;
    let _link = world.link(2).await;
    world.ready().await;
    assert_eq!(enter(&world, "lobby").await.addresses.len(), 2);

    let no_app = EnterRequest { app: None, ..without("lobby") };
    let no_room = EnterRequest { room: None, ..without("lobby") };
    let renew = EnterRequest { renew: Some("link-2.example:443".to_owned()), ..without("lobby") };
    let unknown = EnterRequest { app: Some(AppId(99)), ..without("lobby") };
    let both = EnterRequest { ticket: ticket("viewer"), ..without("lobby") };
    let path = world.post(br#"{"app":1,"room":"../lobby"}"#.to_vec()).send().await.unwrap();
    let body = serde_json::to_vec(&without("lobby")).unwrap();
    let other = world.post(body).bearer_auth(api_key(OTHER_APP)).send().await.unwrap();

    check(world.ask(&no_app).await, 401, "ticket_required").await;
    check(world.ask(&no_room).await, 401, "ticket_required").await;
    check(world.ask(&renew).await, 401, "ticket_required").await;
    check(world.ask(&unknown).await, 401, "ticket_unknown_app").await;
    check(world.ask(&both).await, 400, "malformed").await;
    check(path, 400, "malformed").await;
    check(other, 403, "other_app").await;
}

async fn publish(world: &World, version: u64, policy: Policy) {
    let fact = PolicyFact { app: APP, room: None, version, policy: Some(policy) };
    world.publish(Fact::Policy(fact)).await;
}

async fn claims(world: &World, ticket: &str) -> auth_core::token::Claims {
    world.claims(&world.enter(ticket).await).await
}

async fn enter(world: &World, room: &str) -> EnterResponse {
    let response = world.ask(&without(room)).await;
    assert_eq!(response.status(), 200);
    response.json().await.unwrap()
}

fn without(name: &str) -> EnterRequest {
    EnterRequest { app: Some(APP), room: Some(room(name)), ..EnterRequest::default() }
}

fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
