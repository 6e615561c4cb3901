//! What was shown is written in other formats, and those who read them find it again.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use stack::replay::Script;

use crate::api::Api;
use crate::get::get;
use crate::process::{Up, barrage, sample, until};

fn export(data: &Path, format: &str, file: &Path) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_barrage"))
        .args(["export", "demo", "--format", format, "--data"])
        .args([data, Path::new("--out"), file])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// A tool of others takes a file without a word.
fn accepts(tool: &str, args: &[&str]) {
    let output = Command::new(tool).args(args).output();
    let output = output.unwrap_or_else(|it| panic!("{tool}: {it}: run ops/tools/install"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{tool}: {said}");
}

#[tokio::test]
async fn a_recording_is_the_same_after_it_was_shown_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let recording = sample("evening.xml");
    let args = ["--crowd", "4", "--replay", &recording, "--speed", "8", "--for", "60"];
    let ended = Up::start(&data, &args).await.end().await;
    assert_eq!(ended.summary["sealed"], 8, "{}", ended.summary);

    let file = |name: &str| folder.path().join(name);
    let xml = file("out.xml");
    export(&data, "bilibili-xml", &xml);
    export(&data, "ass", &file("out.ass"));
    export(&data, "dplayer", &file("out.json"));
    export(&data, "jsonl", &file("out.jsonl"));

    let (before, after) =
        (Script::open(Path::new(&recording)).unwrap(), Script::open(&xml).unwrap());
    assert_eq!(after, before);
    accepts("xmllint", &["--noout", xml.to_str().unwrap()]);
    let filter = format!("ass={}", file("out.ass").display());
    let picture = ["-f", "lavfi", "-i", "color=size=320x180:duration=1", "-vf", &filter];
    let args: Vec<&str> =
        ["-v", "error"].into_iter().chain(picture).chain(["-f", "null", "-"]).collect();
    accepts("ffmpeg", &args);
    let dplayer: Value = serde_json::from_slice(&std::fs::read(file("out.json")).unwrap()).unwrap();
    assert_eq!(dplayer["data"].as_array().unwrap().len(), before.comments.len());
    let lines = std::fs::read_to_string(file("out.jsonl")).unwrap();
    let texts: Vec<String> = lines
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap())
        .filter(|it| it["kind"] == "comment")
        .map(|it| it["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts.len(), before.comments.len());
}

/// Recorded, closed, and fetched by the minute.
#[tokio::test]
async fn the_minutes_of_a_closed_room_carry_what_was_recorded_and_so_does_its_export() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let recording = sample("evening.xml");
    let mut command = barrage(["up"]);
    command.env("BARRAGE_BROADCASTER__ARCHIVE", "true");
    command.args(["--crowd", "4", "--replay", &recording, "--speed", "8", "--for", "90"]);
    // No slot is served any more when the room is exported.
    let up = Up::start_with(command.args(["--retention", "3"]), &data).await;
    let api = Api::of(&up, &data).await;
    let origin = up.url("origin").to_owned();
    let before = Script::open(Path::new(&recording)).unwrap();
    until("all comments", async || {
        let shown = comments_of(&data).len();
        (shown == before.comments.len()).then_some(())
    })
    .await;

    assert_eq!(api.close().await.status, 200);

    let index = until("the index", async || {
        let got = get(&origin, "/dm/1/demo/vod/index.json").await;
        (got.status == 200).then(|| got.json())
    })
    .await;
    let mut shown = Vec::new();
    for run in index["minutes"].as_array().unwrap() {
        let (first, count) = (run[0].as_u64().unwrap(), run[1].as_u64().unwrap());
        for minute in first..first + count {
            let path = format!("/dm/1/demo/vod/{}/{minute}.json", index["version"]);
            let page = get(&origin, &path).await.json();
            for item in page["items"].as_array().unwrap() {
                let media_ms = item["media_ms"].as_u64().unwrap();
                assert_eq!(media_ms / 60_000, minute, "{item}");
                shown.push((media_ms, item["text"].clone(), item["style"].clone()));
            }
        }
    }
    let recorded = before
        .comments
        .iter()
        .map(|it| (it.media_ms, it.text.clone().into(), serde_json::to_value(it.style).unwrap()));
    assert_eq!(shown, recorded.collect::<Vec<(u64, Value, Value)>>());
    let xml = folder.path().join("out.xml");
    export(&data, "bilibili-xml", &xml);
    assert_eq!(Script::open(&xml).unwrap(), before);
    up.kill().await;
}

/// The texts of the comments that can be exported now.
fn comments_of(data: &Path) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_barrage"))
        .args(["export", "demo", "--data"])
        .arg(data)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let items = lines.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    items
        .filter(|it| it["kind"] == "comment")
        .map(|it| it["text"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_room_without_slots_and_a_file_that_is_there_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_barrage"))
        .args(["export", "nobody", "--data"])
        .arg(folder.path())
        .output()
        .unwrap();

    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no slots of this room"), "{said}");
}
