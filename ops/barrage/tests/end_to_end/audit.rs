//! A run of the crowd ends by itself, adds up, and says what is wrong when something is.

use serde_json::Value;

use crate::process::{Ended, Up, sample};

/// Viewers of each run; half of them read each path.
pub(crate) const VIEWERS: u64 = 40;

/// Plays a recording to the end.
pub(crate) async fn play(recording: &str, args: &[&str]) -> Ended {
    let data = tempfile::tempdir().unwrap();
    let mut all = vec!["--crowd", "40", "--replay", recording];
    all.extend(args);
    Up::start(data.path(), &all).await.end().await
}

/// What must be true of every run, and of every viewer in it; `also` items came from elsewhere.
pub(crate) fn check_clean(ended: &Ended, also: u64) {
    let Ended { code, summary, complaints } = ended;
    assert_eq!((*code, &complaints[..]), (Some(0), &[][..]), "{summary}");
    check_sums(summary);
    for name in ["repeats", "out_of_order", "missing", "unexpected"] {
        assert_eq!(summary[name], 0, "{name}: {summary}");
    }
    let expected = (number(summary, "sealed") + also) * VIEWERS / 2;
    for path in ["push", "segments"] {
        assert_eq!(summary["received"][path], expected, "{path}: {summary}");
        assert_eq!(summary["latency_ms"][path]["p99"].is_u64(), expected > 0, "{path}: {summary}");
    }
    assert!(number(summary, "rss_bytes") > 0);
}

/// Every comment has its fate.
pub(crate) fn check_sums(summary: &Value) {
    let [sent, admitted, sealed, merged] =
        ["sent", "admitted", "sealed", "merged"].map(|it| number(summary, it));
    assert_eq!(sent, admitted + sum(&summary["refused"]), "{summary}");
    assert_eq!(admitted, sealed + merged + sum(&summary["shed"]), "{summary}");
}

fn number(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap_or_else(|| panic!("no {name} in {summary}"))
}

fn sum(by_reason: &Value) -> u64 {
    by_reason.as_object().unwrap().values().map(|it| it.as_u64().unwrap()).sum()
}

#[tokio::test]
async fn a_recording_reaches_every_viewer_once_and_in_order() {
    let ended = play(&sample("evening.xml"), &["--speed", "8", "--for", "60"]).await;

    check_clean(&ended, 0);
    assert_eq!((number(&ended.summary, "sent"), number(&ended.summary, "damaged")), (8, 0));
}

#[tokio::test]
async fn damaged_comments_are_skipped_and_counted() {
    let ended = play(&sample("damaged.xml"), &["--speed", "8", "--for", "60"]).await;

    check_clean(&ended, 0);
    assert_eq!((number(&ended.summary, "sent"), number(&ended.summary, "damaged")), (3, 5));
}

#[tokio::test]
async fn lost_and_repeated_items_are_found() {
    let recording = sample("evening.xml");
    let (lost, repeated) = tokio::join!(
        play(&recording, &["--speed", "8", "--for", "60", "--fault", "lose=1/100"]),
        play(&recording, &["--speed", "8", "--for", "60", "--fault", "repeat=1/100"]),
    );

    // 8 comments for 40 viewers: every hundredth of 320 items is spoiled.
    for (ended, found) in [(lost, [3, 0, 0]), (repeated, [0, 3, 0])] {
        check_found(&ended, found);
    }
}

#[tokio::test]
async fn swapped_items_are_found() {
    let recording = sample("evening.xml");
    let ended = play(&recording, &["--speed", "8", "--for", "60", "--fault", "swap=1/10"]).await;

    // An item with none behind it has nothing to change places with.
    let swapped = number(&ended.summary, "out_of_order");
    assert!((1..=32).contains(&swapped), "{}", ended.summary);
    check_found(&ended, [0, 0, swapped]);
}

#[tokio::test]
async fn a_run_that_is_too_short_to_play_anything_fails() {
    let ended = play(&sample("evening.xml"), &["--for", "1"]).await;

    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.complaints, ["the viewers did not come in within --for"]);
    assert_eq!(ended.summary, Value::Null);
}

/// The run says what is wrong, and that alone: missing, repeated, out of order.
fn check_found(ended: &Ended, found: [u64; 3]) {
    let Ended { code, summary, complaints } = ended;
    assert_eq!(*code, Some(1), "{summary}");
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert_eq!(["missing", "repeats", "out_of_order"].map(|it| number(summary, it)), found);
    assert_eq!(number(summary, "unexpected"), 0);
    check_sums(summary);
}
