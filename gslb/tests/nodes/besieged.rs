//! A node that is attacked: new viewers go elsewhere, and those it has move on without a loss.

use std::net::SocketAddr;
use std::time::Duration;

use link::{ListenerConfig, Siege};
use proto::address::{Address, Transport};
use tokio::net::TcpStream;

use crate::crowd::Crowd;
use crate::site::{Site, link_config, listener, names, within};

/// Connections of the flood, in case nobody notices.
const FLOOD_MAX: usize = 200_000;
/// Viewers.
const VIEWERS: usize = 12;
/// The machine room of the node that takes them in.
const ROOM: &str = "refuge";

#[tokio::test]
async fn viewers_of_a_besieged_node_go_on_at_a_reserve_and_lose_nothing() {
    let mut site = Site::start(|config| {
        config.link.siege = Siege {
            enabled: true,
            failures_per_s_min: 100,
            failures_per_login_min: 5,
            sites_min: 1,
            onset_ms: 1_100,
            calm_ms: 600_000,
        };
    })
    .await;
    let crowd = Crowd::start(&site, VIEWERS).await;
    let mut config = link_config(ROOM);
    config.listeners.push(ListenerConfig { reserve: true, ..listener(ROOM) });
    let reserve = site.add_link(config).await.reserve;
    within(site.until(|it| names(it, ROOM))).await;
    crowd.until(|it| it.shown.len() >= 10).await;

    flood(&site).await;
    within(site.until(|it| it.iter().all(|it| it.machine_room == ROOM))).await;
    crowd.until(|it| it.addresses.last() == Some(&reserve[0].authority())).await;
    let so_far = crowd.sent();
    crowd.until(|it| it.shown.len() >= so_far + 10).await;

    for _ in 0..50 {
        let answer = site.ask().await;
        assert!(!answer.is_empty() && answer.iter().all(|it| it.machine_room == ROOM));
        assert!(!answer.contains(&reserve[0]), "the reserve is told to nobody");
    }
    for addresses in crowd.check().await {
        assert_eq!(addresses.len(), 2, "it moved once: {addresses:?}");
    }
    site.end().await;
}

/// Connects and hangs up until the node counts as attacked.
async fn flood(site: &Site) {
    let target = |it: &&Address| it.transport == Transport::Tcp;
    let address = site.addrs.link.iter().find(target).unwrap();
    let target: SocketAddr = address.authority().parse().unwrap();
    let besieged = || site.shared.meter.render().contains("link_besieged 1");
    let mut timer = tokio::time::interval(Duration::from_millis(10));
    for connection in 0..FLOOD_MAX {
        drop(TcpStream::connect(target).await.unwrap());
        if connection % 50 == 0 {
            if besieged() {
                return;
            }
            timer.tick().await;
        }
    }
    panic!("the flood was not noticed");
}
