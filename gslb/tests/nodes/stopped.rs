//! Nodes that fall silent, return and drain, as processes.
//!
//! How soon exactly is shown in virtual time, beside the reader of the load table; here it is that
//! real processes do so, in bounds that a busy machine keeps.

use std::time::Duration;

use crate::process::{Process, ROOM};
use crate::site::{LEASE, Site, names, within};

/// What a busy machine adds to a lease: snapshots, requests, and being out of turn.
const SLACK: Duration = Duration::from_secs(5);
/// Answers from which a share is told.
const ANSWERS: usize = 200;

#[tokio::test]
async fn a_stopped_node_leaves_within_its_lease_and_returns_gently() {
    let site = Site::start(|config| {
        // So long that the first answers show it on any machine.
        config.gslb.policy.ramp_ms = 120_000;
    })
    .await;
    let process = Process::start(&site);
    within(site.until(|it| names(it, ROOM))).await;
    for _ in 0..20 {
        assert!(names(&site.ask().await, ROOM), "with two nodes every answer names both");
    }

    process.stop().await;
    let stopped = site.clock.mono();
    within(site.until(|it| !names(it, ROOM))).await;
    let took = site.clock.mono().since(stopped);

    assert!(took <= LEASE + SLACK, "it was named for {took:?}");
    for _ in 0..20 {
        let answer = site.ask().await;
        assert!(!answer.is_empty() && !names(&answer, ROOM), "{answer:?}");
    }

    process.go_on().await;
    within(site.until(|it| names(it, ROOM))).await;
    let mut firsts = 0;
    for _ in 0..ANSWERS {
        let answer = site.ask().await;
        firsts += usize::from(answer[0].machine_room == ROOM);
    }

    // Both nodes can do as much: a half would be its full share, and it begins with a twentieth.
    assert!(firsts <= ANSWERS / 5, "it is first in {firsts} of {ANSWERS}");
    drop(process);
    site.end().await;
}

#[tokio::test]
async fn a_draining_node_leaves_long_before_its_lease_is_over_and_ends_well() {
    let site = Site::start(|_| {}).await;
    let mut process = Process::start(&site);
    within(site.until(|it| names(it, ROOM))).await;

    process.drain();
    let drained = site.clock.mono();
    within(site.until(|it| !names(it, ROOM))).await;
    let took = site.clock.mono().since(drained);

    assert!(took < LEASE, "{took:?}: silence would have done as much");
    for _ in 0..20 {
        assert!(!names(&site.ask().await, ROOM));
    }
    process.ended().await;
    site.end().await;
}
