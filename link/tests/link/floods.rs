//! A flood of wrong tokens for one account waits; the account's viewer, elsewhere, does not.

use std::net::Ipv4Addr;

use proto::close::CloseCode;

use crate::client::Client;
use crate::world::World;

const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const VIEWER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

#[tokio::test]
async fn a_flood_for_one_account_waits_and_its_viewer_comes_in_from_elsewhere() {
    let world = World::new().await;
    let mut failed = 0;
    loop {
        match login(&world, ATTACKER, &wrong(&world)).await {
            Some(CloseCode::TokenInvalid) => failed += 1,
            other => {
                assert_eq!(other, Some(CloseCode::RateLimited));
                break;
            }
        }
    }

    let (right, other) = (world.token("tls", "alice", "r"), world.token("tls", "bob", "r"));
    assert!(failed >= 10, "{failed} are not unusual");
    assert_eq!(login(&world, VIEWER, &wrong(&world)).await, Some(CloseCode::TokenInvalid));
    assert_eq!(login(&world, ATTACKER, &other).await, None, "another account");
    assert!(world.metric("link_logins_total{outcome=\"account_limited\"}") > 0);
    assert_eq!(login(&world, VIEWER, &right).await, None, "a failure of its own is no matter");
}

#[tokio::test]
async fn behind_a_terminator_nobody_waits_for_what_others_did() {
    let world = World::new().await;

    for _ in 0..30 {
        let wrong = forge(world.token("tcp", "alice", "r"));
        let refused = world.connect("tcp").await.login(&wrong, "r").await;
        assert_eq!(refused.code(), CloseCode::TokenInvalid);
    }

    world.enter("tcp", "alice", "r").await.lives().await;
}

/// Why a login is refused, if it is.
async fn login(world: &World, from: Ipv4Addr, token: &str) -> Option<CloseCode> {
    let mut client = Client::connect_from(world, "tls", from).await;
    let answer = client.login(token, "r").await;
    (!answer.is_in()).then(|| answer.code())
}

fn wrong(world: &World) -> String {
    forge(world.token("tls", "alice", "r"))
}

/// The token with another MAC.
fn forge(mut token: String) -> String {
    let last = if token.pop() == Some('A') { 'E' } else { 'A' };
    token.push(last);
    token
}
