//! The commands for a terminal, against a running `up`.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use crate::api::Api;
use crate::process::{Up, WAIT_MAX, barrage, complained, run, said, sample};

/// An `up` with an open room and nobody in it.
async fn open(data: &TempDir) -> Up {
    let up = Up::start(data.path(), &["--crowd", "0"]).await;
    Api::of(&up, data.path()).await;
    up
}

#[tokio::test]
async fn what_is_said_is_seen_by_those_who_watch() {
    let data = tempfile::tempdir().unwrap();
    let up = open(&data).await;
    let mut watch = Watch::start(data.path(), "8");
    watch.event("connected").await;

    let output = say(data.path(), &["hello, 世界"]).await;

    assert!(output.status.success(), "{output:?}");
    let id = said(&output).strip_prefix("admitted as ").unwrap();
    let shown = watch.event("show").await;
    assert_eq!((&shown["id"], &shown["text"]), (&id.into(), &"hello, 世界".into()));
    assert_eq!(watch.end().await, Some(0));
    up.kill().await;
}

#[tokio::test]
async fn what_cannot_be_said_is_explained() {
    let data = tempfile::tempdir().unwrap();
    let up = open(&data).await;

    for (args, complaint) in [
        (&[&*"x".repeat(101)][..], "refused: too_long"),
        (&[&*"a".repeat(3000)], "too long"),
        (&[" "], "refused: shape"),
        (&["hello", "--room", "elsewhere"], "elsewhere cannot be entered: no_room"),
        (&["hello", "--room", "a/b"], "a name may not hold the character '/'"),
    ] {
        let output = say(data.path(), args).await;
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(complained(&output).contains(complaint), "{}", complained(&output));
        assert_eq!(said(&output), "");
    }
    up.kill().await;

    let nowhere = tempfile::tempdir().unwrap();
    let output = say(nowhere.path(), &["hello"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(complained(&output).contains("is `barrage up` running"), "{}", complained(&output));
}

#[tokio::test]
async fn a_recording_is_played_into_a_running_room() {
    let data = tempfile::tempdir().unwrap();
    let up = open(&data).await;

    let file = sample("damaged.xml");
    let output = run(
        barrage(["replay", &file, "--speed", "4", "--viewers", "3", "--data"]).arg(data.path())
    )
    .await;

    assert!(output.status.success(), "{output:?}");
    let summary: Value = serde_json::from_str(said(&output)).unwrap();
    assert_eq!((&summary["sent"], &summary["damaged"]), (&3.into(), &5.into()));
    assert_eq!((&summary["admitted"], &summary["refused"]), (&3.into(), &serde_json::json!({})));
    up.kill().await;
}

#[tokio::test]
async fn a_recording_is_not_played_where_nobody_may_speak() {
    let data = tempfile::tempdir().unwrap();
    let up = open(&data).await;
    let file = sample("damaged.xml");
    let replay = async |more: &[&str]| {
        let args = ["replay", &file, "--speed", "40", "--viewers", "2", "--data"];
        run(barrage(args).arg(data.path()).args(more)).await
    };

    let elsewhere = replay(&["--room", "elsewhere"]).await;
    let muted = json!({ "mute_all": true });
    assert_eq!(Api::of(&up, data.path()).await.patch(&muted).await.status, 200);
    let silent = replay(&[]).await;

    assert_eq!(elsewhere.status.code(), Some(2), "{elsewhere:?}");
    assert!(complained(&elsewhere).contains("elsewhere cannot be entered: no_room"));
    assert_eq!(silent.status.code(), Some(2), "{silent:?}");
    assert!(complained(&silent).contains("demo admitted no comment"), "{silent:?}");
    up.kill().await;
}

#[tokio::test]
async fn a_command_whose_lines_nobody_reads_ends_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);

    let mut version = barrage(["version"]);
    let child = version.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = timeout(WAIT_MAX, child.wait_with_output()).await.unwrap().unwrap();

    assert_eq!((output.status.code(), complained(&output)), (Some(0), ""));
}

async fn say(data: &Path, args: &[&str]) -> std::process::Output {
    run(barrage(["say", "--data"]).arg(data).args(args)).await
}

/// `barrage watch --json`.
struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    fn start(data: &Path, seconds: &str) -> Self {
        let mut command = barrage(["watch", "--json", "--for", seconds, "--data"]);
        let mut child = command.arg(data).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next event of this name.
    async fn event(&mut self, name: &str) -> Value {
        let found = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                let event: Value = serde_json::from_str(&line).unwrap();
                if event["event"] == name {
                    return event;
                }
            }
            panic!("it ended without {name}")
        };
        timeout(WAIT_MAX, found).await.expect("an event in time")
    }

    /// Its exit code, once it ended by itself.
    async fn end(mut self) -> Option<i32> {
        timeout(WAIT_MAX, self.child.wait()).await.unwrap().unwrap().code()
    }
}
