//! Links are restarted one after the other: their viewers are told where to go on, and lose nothing.

use std::collections::BTreeSet;

use proto::address::Address;

use crate::crowd::Crowd;
use crate::site::{Added, OTHER_NODE, Site, link_config, names, within};

/// Viewers.
const VIEWERS: usize = 24;
/// Comments between two restarts.
const COMMENTS: usize = 10;

#[tokio::test]
async fn viewers_of_links_that_are_restarted_in_turn_go_on_where_they_are_told_and_lose_nothing() {
    let mut site = Site::start(|config| config.gslb.policy.ramp_ms = 1).await;
    let first = site.add_link(link_config("first")).await;
    let second = site.add_link(config_of_second()).await;
    within(site.until(|it| names(it, "first") && names(it, "second"))).await;
    let crowd = Crowd::start(&site, VIEWERS).await;
    crowd.until(|it| it.shown.len() >= COMMENTS).await;

    let left = drain(&crowd, &first).await;
    site.add_link(link_config("again")).await;
    within(site.until(|it| names(it, "again"))).await;
    let left_later = drain(&crowd, &second).await;

    assert!(left > 0 && left_later > 0, "{left} and {left_later} viewers were there");
    let moves: usize = crowd.check().await.iter().map(|it| it.len() - 1).sum();
    assert_eq!(moves, left + left_later, "nobody moves more often than it is told");
    site.end().await;
}

/// Drains a link; how many viewers it had, all of whom were told addresses and go on elsewhere.
async fn drain(crowd: &Crowd, link: &Added) -> usize {
    let gone: BTreeSet<String> = link.addresses.iter().map(Address::authority).collect();
    let there = crowd.places().iter().filter(|it| gone.contains(*it)).count();

    link.drain.cancel();
    crowd.until(|it| it.addresses.last().is_some_and(|it| !gone.contains(it))).await;
    let so_far = crowd.sent();
    crowd.until(|it| it.shown.len() >= so_far + COMMENTS).await;

    let drained = |to: &str| format!("link_drained_sessions_total{{to=\"{to}\"}} {there}");
    let metrics = link.meter.render();
    assert!(there == 0 || metrics.contains(&drained("addresses")), "{metrics}");
    there
}

fn config_of_second() -> link::Config {
    link::Config { node: OTHER_NODE, ..link_config("second") }
}
