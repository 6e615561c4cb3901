//! Nodes that drain, are besieged, fall silent or return, as several processes see them.

use super::*;

/// From the report to the last answer: the packer does not wait for its timer, so what is left is
/// the pause between two snapshots, 5 ms, whatever the phases are.
#[tokio::test]
async fn a_node_that_drains_or_is_besieged_gets_no_answer_ten_milliseconds_later() {
    let flags: [fn(&mut Load); 2] = [|it| it.draining = true, |it| it.besieged = true];
    for flag in flags {
        for phase_ms in 0..5 {
            let mut scene = Scene::new(&[1, 2]);
            scene.play(1_000).await;
            let told = scene.now + Duration::from_millis(phase_ms);
            let mut report = scene.report(1);
            flag(&mut report.load);
            hear(&mut scene.packer, &report, told).unwrap();
            scene.nodes.remove(&1);
            assert!(scene.packer.tell());
            scene.put(told).await;

            scene.play(5).await;

            assert!(scene.now.since(told) <= Duration::from_millis(10));
            assert_eq!(scene.answered(), BTreeSet::from([2]), "phase {phase_ms}");
        }
    }
}

#[tokio::test]
async fn a_silent_node_leaves_within_its_lease_and_returns_gently() {
    let mut scene = Scene::new(&[1, 2]);
    scene.play(1_000).await;

    scene.nodes.remove(&1);
    scene.play(LEASE_MS - REPORT_MS - 5).await;
    assert_eq!(scene.live(), 2);
    scene.play(REPORT_MS + 10).await;
    assert_eq!(scene.answered(), BTreeSet::from([2]));

    scene.nodes.insert(1);
    scene.play(REPORT_MS + 10).await;
    assert_eq!(scene.live(), 2);
    let returned = scene.shared(50).await;
    scene.play(10_000).await;
    let grown = scene.shared(50).await;
    assert!((1..=7).contains(&returned[0]), "{returned:?}");
    assert!(grown[0].abs_diff(25) <= 2, "{grown:?}");
}

#[tokio::test]
async fn a_node_that_was_besieged_returns_within_a_minute() {
    let mut scene = Scene::new(&[1, 2]);
    scene.load = |node, load| load.besieged = node == 1;
    scene.play(1_000).await;
    assert_eq!(scene.answered(), BTreeSet::from([2]));

    scene.load = |_, _| {};
    scene.play(REPORT_MS).await;
    let relieved = scene.shared(50).await;
    scene.play(28_000).await;
    let half_grown = scene.shared(50).await;
    scene.play(31_000).await;
    let grown = scene.shared(50).await;

    assert!((1..=4).contains(&relieved[0]), "{relieved:?}");
    assert!((12..=20).contains(&half_grown[0]), "{half_grown:?}");
    assert!(grown[0].abs_diff(25) <= 2, "{grown:?}");
}

/// Three processes that know nothing of each other read one table.
#[tokio::test]
async fn several_processes_together_keep_to_what_each_node_can_do() {
    let mut scene = Scene::of(&[1, 2, 3, 4], 3);
    scene.play(1_000).await;

    // 4 nodes at 100 logins a second, and ten times as many viewers.
    let given = scene.given_in(2_000).await;

    for node in &given {
        // Two seconds' worth, and a burst of 50 ms; in each process at least one login at once.
        assert!((180..=200 + 5 + 3).contains(node), "{given:?}");
    }

    // 10 places are left on each, and no report says that they are taken.
    let mut scene = Scene::of(&[1, 2], 3);
    scene.load = |_, load| load.sessions = 990;
    scene.play(1_000).await;
    let mut given = [0, 0];
    for sync in &scene.syncs {
        while let Some(node) = first(sync) {
            given[node as usize - 1] += 1;
        }
    }
    assert!(given.iter().all(|it| *it <= 12), "{given:?}: thirds of 10 are rounded up");
}
