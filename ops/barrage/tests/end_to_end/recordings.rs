//! Recordings of others, where they lie beside the workspace: any length, any damage.

use std::path::PathBuf;

use serde_json::Value;

use crate::audit::{check_clean, play};
use crate::process::workspace;

/// A recording, if this machine has it.
fn find(name: &str) -> Option<String> {
    let file: PathBuf = workspace("../shared/data").join(name);
    file.exists().then(|| file.to_str().unwrap().to_owned())
}

/// Plays a recording fast and checks everything; the summary, if this machine has the file.
async fn play_fast(name: &str) -> Option<Value> {
    let file = find(name)?;
    let ended = play(&file, &["--speed", "64", "--for", "20"]).await;
    check_clean(&ended, 0);
    Some(ended.summary)
}

#[tokio::test]
async fn long_recordings_add_up_when_they_are_too_much() {
    for name in ["bilibili-comment.xml", "bilibili-utsukushiki_mono.xml", "artplayer.json"] {
        if let Some(summary) = play_fast(name).await {
            assert!(summary["sealed"].as_u64().unwrap() > 100, "{name}: {summary}");
            assert_eq!(summary["damaged"], 0, "{name}");
        }
    }
}

#[tokio::test]
async fn broken_recordings_lose_what_is_broken_alone() {
    let (closing, syntax, foreign) = tokio::join!(
        play_fast("broken-no_closing.xml"),
        play_fast("broken-syntax_error.xml"),
        play_fast("broken-xss.xml"),
    );

    for (summary, [sent, damaged]) in [(closing, [6, 1]), (syntax, [6, 1]), (foreign, [0, 3])] {
        if let Some(summary) = summary {
            assert_eq!((&summary["sent"], &summary["damaged"]), (&sent.into(), &damaged.into()));
        }
    }
}
