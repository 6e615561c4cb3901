//! Scenarios over the planner: what is promised holds, and the committed outcomes are still true.
//!
//! An outcome that changed on purpose is written anew by `barrage gslb simulate FLEET ARRIVALS`.
#![expect(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::fs;
use std::path::PathBuf;

use gslb_core::simulate::{ArrivalsFile, FleetFile, Invalid, Outcome, run};

#[test]
fn a_million_viewers_in_a_second_with_fresh_loads() {
    let outcome = play("thousand", "flash_crowd");

    assert_eq!(refused(&outcome), 0);
    assert!(outcome.overshoot_permille <= 50, "{outcome}");
    assert!(outcome.spread_permille <= 20, "{outcome}");
}

#[test]
fn a_million_viewers_in_a_second_with_late_loads() {
    let outcome = play("thousand", "flash_crowd_late");

    assert_eq!(refused(&outcome), 0);
    assert!(outcome.overshoot_permille <= 200, "{outcome}");
}

#[test]
fn replicas_that_do_not_talk_do_not_herd() {
    let outcome = play("thousand", "flash_crowd_replicas");

    assert!(outcome.overshoot_permille <= 200, "{outcome}");
    assert!(outcome.spread_permille <= 20, "{outcome}");
}

#[test]
fn twice_too_many_viewers_are_refused_and_overrun_nobody() {
    let outcome = play("thousand", "too_many");

    assert!(refused(&outcome) > 400_000, "{outcome}");
    assert!(outcome.overshoot_permille <= 50, "{outcome}");
}

#[test]
fn viewers_of_lost_nodes_reach_their_second_address() {
    let outcome = play("hundred", "node_loss");

    assert!(outcome.tried_again > 100, "{outcome}");
    assert_eq!((outcome.lost, refused(&outcome)), (0, 0), "{outcome}");
}

#[test]
fn a_cut_off_carrier_is_served_by_bgp() {
    let outcome = play("hundred", "carrier_cut");

    assert_eq!((outcome.lost, refused(&outcome)), (0, 0), "{outcome}");
    assert!(outcome.carriers.iter().any(|it| it.elsewhere > 1_000), "{outcome}");
}

#[test]
fn draining_nodes_get_nobody_more() {
    let outcome = play("hundred", "drain");

    let nodes: Vec<u64> = outcome.rows.iter().map(|it| it.nodes).collect();
    assert_eq!(nodes, [100, 100, 100, 100, 90, 90, 90, 90], "{outcome}");
}

#[test]
fn besieged_nodes_are_left_out_and_return_slowly() {
    let outcome = play("hundred", "siege");

    let nodes: Vec<u64> = outcome.rows[..3].iter().map(|it| it.nodes).collect();
    assert_eq!(nodes, [40, 30, 40], "{outcome}");
    // What the others are spared is what those that return are given.
    let busiest = |row: usize| outcome.rows[row].busiest_permille;
    assert!(busiest(0) < busiest(1) && busiest(5) > busiest(9) && busiest(9) > busiest(13));
}

#[test]
fn without_a_table_nobody_is_overrun() {
    let outcome = play("hundred", "stale_table");

    assert!(outcome.overshoot_permille <= 200, "{outcome}");
    assert_eq!(outcome.lost, 0, "{outcome}");
}

#[test]
fn a_full_line_hands_over_to_the_other_machine_room() {
    let outcome = play("rooms", "room_full");

    assert_eq!((outcome.lost, refused(&outcome)), (0, 0), "{outcome}");
}

#[test]
fn files_that_contradict_themselves_are_refused() {
    let fleet: FleetFile = toml::from_str(&text("hundred.fleet.toml")).unwrap();
    let arrivals = "run_ms = 10\narrivals = []\n";
    let refusal = |more: &str| {
        let arrivals: ArrivalsFile = toml::from_str(&format!("{arrivals}{more}")).unwrap();
        run(&fleet, &arrivals).unwrap_err()
    };

    assert_eq!(refusal("replicas = 0"), Invalid::Length);
    assert_eq!(refusal("snapshot_ms = 0"), Invalid::Length);
    let event = "[[events]]\nat_ms = 1\nact = \"stop\"\nnodes = \"nobody\"";
    assert_eq!(refusal(event), Invalid::Unknown("nobody".to_owned()));
    let empty = FleetFile { nodes: Vec::new(), ..fleet.clone() };
    let arrivals: ArrivalsFile = toml::from_str(arrivals).unwrap();
    assert_eq!(run(&empty, &arrivals).unwrap_err(), Invalid::Nodes);
}

/// The outcome of a scenario, which must be the committed one.
fn play(fleet: &str, scenario: &str) -> Outcome {
    let fleet: FleetFile = toml::from_str(&text(&format!("{fleet}.fleet.toml"))).unwrap();
    let arrivals: ArrivalsFile = toml::from_str(&text(&format!("{scenario}.toml"))).unwrap();

    let outcome = run(&fleet, &arrivals).unwrap();

    let committed = text(&format!("{scenario}.txt"));
    assert!(outcome.to_string() == committed, "{scenario} was\n{committed}and is\n{outcome}");
    outcome
}

fn text(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name);
    fs::read_to_string(path).unwrap_or_default()
}

fn refused(outcome: &Outcome) -> u64 {
    outcome.carriers.iter().map(|it| it.refused).sum()
}
