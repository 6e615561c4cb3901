//! The answer as lines of text.

use proto::address::Address;
use proto::enter::Offer;

use crate::world::{World, ticket};

#[tokio::test]
async fn the_lines_say_what_the_json_says() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;
    let json = world.enter(&ticket("viewer")).await;

    let (status, text) = ask(&world, "", &ticket("viewer")).await;

    assert_eq!(status, 200, "{text}");
    let lines = Lines(&text);
    assert_eq!(lines.all("delivery"), ["push segments"]);
    assert_eq!(lines.all("segments"), ["https://cdn.example 1"]);
    assert_eq!(lines.all("retry"), ["500 30000 2 1"]);
    let [server_ms] = lines.all("server_ms")[..] else { panic!("{text}") };
    assert!(world.clock.wall().0.abs_diff(server_ms.parse().unwrap()) < 30_000);
    let addresses = lines.addresses();
    assert_eq!(addresses.len(), json.addresses.len());
    for (authority, transport, token) in addresses {
        let address = offered(&json.addresses, authority);
        assert_eq!(address.transport.name(), transport);
        let offer = Offer { address: address.clone(), token: token.to_owned() };
        let claims = world.verify_at(&offer, token).await.unwrap();
        assert_eq!(claims.account.as_str(), "viewer");
    }
}

#[tokio::test]
async fn the_query_says_what_the_client_is() {
    let world = World::start().await;
    let _link = world.link(2).await;
    world.ready().await;

    let (_, wss) = ask(&world, "?transports=wss&device=ios-1&class=weak", &ticket("viewer")).await;
    let (_, renewed) = ask(&world, "?renew=link-2.example:443", &ticket("viewer")).await;

    let lines = Lines(&wss);
    assert_eq!(lines.all("delivery"), ["lite_segments segments push"]);
    let [(authority, "wss", token)] = lines.addresses()[..] else { panic!("{wss}") };
    let json = world.enter(&ticket("viewer")).await;
    let address = offered(&json.addresses, authority).clone();
    let claims = world.verify_at(&Offer { address, token: token.to_owned() }, token).await;
    assert_eq!(claims.unwrap().device.unwrap().as_str(), "ios-1");
    let [("link-2.example:443", "tls", _)] = Lines(&renewed).addresses()[..] else {
        panic!("{renewed}")
    };
}

#[tokio::test]
async fn a_refusal_is_lines_too() {
    let world = World::start().await;
    let check = async |query: &str, ticket: &str, status: u16, code: &str| {
        let (found, text) = ask(&world, query, ticket).await;
        assert_eq!(found, status, "{text}");
        let lines = Lines(&text);
        assert_eq!(lines.all("problem"), [code]);
        assert_eq!(lines.all("title").len(), 1);
        assert_eq!(lines.all("server_ms").len(), 1);
        lines.all("retry_after_ms").first().map(|it| it.parse::<u32>().unwrap())
    };

    assert_eq!(check("", "", 401, "ticket_required").await, None);
    assert_eq!(check("", "a.b.c", 400, "ticket_malformed").await, None);
    assert_eq!(check("?colour=1", "", 400, "malformed").await, None);
    assert_eq!(check("?transports=smoke", "", 400, "malformed").await, None);
    assert_eq!(check("?app=99&room=lobby", "", 401, "ticket_unknown_app").await, None);
    let is_empty = |it: &(&str, String)| ["gslb.fleet", "gslb.table"].contains(&it.0);
    world.until(async || world.health.failures().iter().all(is_empty)).await;
    let nowhere = check("", &ticket("viewer"), 503, "nowhere").await;
    assert!(nowhere.is_some_and(|it| it >= 1_000));
    assert_eq!(world.count(r#"gslb_refusals_total{reason="nowhere"}"#), 1);
}

#[tokio::test]
async fn a_full_fleet_says_when_to_ask_again() {
    let world = World::start().await;
    let link = world.link(2).await;
    world.ready().await;
    link.load.lock().sessions = 1_000;
    world.until(async || world.enter(&ticket("viewer")).await.addresses.is_empty()).await;

    let (status, text) = ask(&world, "", &ticket("viewer")).await;

    assert_eq!(status, 200);
    let lines = Lines(&text);
    assert_eq!((lines.addresses().len(), lines.all("delivery")), (0, vec!["segments"]));
    assert!(lines.all("retry_after_ms")[0].parse::<u32>().unwrap() >= 1_000);
}

/// An answer, line by line.
struct Lines<'a>(&'a str);

impl<'a> Lines<'a> {
    /// What stands behind this word.
    fn all(&self, word: &str) -> Vec<&'a str> {
        let lines = self.0.lines();
        lines.filter_map(|it| it.strip_prefix(word)?.strip_prefix(' ')).collect()
    }

    /// Authority, transport and token.
    fn addresses(&self) -> Vec<(&'a str, &'a str, &'a str)> {
        let words = self.0.lines().map(|it| it.split(' ').collect::<Vec<_>>());
        let addresses = words.filter(|it| it[0].contains(':'));
        addresses.map(|it| (it[0], it[1], it[2])).collect()
    }
}

fn offered<'a>(offers: &'a [Offer], authority: &str) -> &'a Address {
    let mut addresses = offers.iter().map(|it| &it.address);
    addresses.find(|it| it.authority() == authority).unwrap()
}

async fn ask(world: &World, query: &str, ticket: &str) -> (u16, String) {
    let get = world.client.get(world.url(&format!("/v1/enter.txt{query}")));
    let get = if ticket.is_empty() { get } else { get.bearer_auth(ticket) };
    let response = get.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    (response.status().as_u16(), response.text().await.unwrap())
}
