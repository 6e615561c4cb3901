//! A second program over plain HTTP finds in the segments exactly what the log says was sealed.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::api::Api;
use crate::audit::{VIEWERS, check_clean};
use crate::get::get;
use crate::process::{Up, run, said, sample, until};

#[tokio::test]
async fn another_program_finds_what_was_sealed_once_each_and_in_order() {
    let data = tempfile::tempdir().unwrap();
    let file = |name: &str| data.path().join(name).to_str().unwrap().to_owned();
    let (items, log, recording) = (file("items"), file("log"), sample("concert.json"));
    let viewers = VIEWERS.to_string();
    let args = ["--crowd", &viewers, "--replay", &recording, "--speed", "8", "--for", "18"];
    let up = Up::start(data.path(), &[&args[..], &["--input-log", &log]].concat()).await;

    let origin = up.url("origin").to_owned();
    let mut script = python("follow");
    let following = run(script.args([&origin, "demo", &items]));
    let playing = async {
        let api = Api::of(&up, data.path()).await;
        // Everybody is there before the first comment: nobody misses the gift.
        until("a comment", async || has_comments(&origin).await.then_some(())).await;
        let (gift, notice) = (api.gift("k1").await, api.notice("k2", "welcome").await);
        assert_eq!((gift.0, notice.0), (202, 202));
        (up.end().await, [gift.1, notice.1])
    };
    let (followed, (ended, [gift, notice])) = tokio::join!(following, playing);
    assert!(followed.status.success(), "{followed:?}");
    let output = compare(&items, &log, &["--also", &gift, "--also", &notice]).await;

    assert_eq!((output.status.code(), said(&output)), (Some(0), ""));
    check_clean(&ended, 2);
    let repeats = lines(&items).into_iter().filter(|it| it["again"] == true);
    let repeated: Vec<_> = repeats.map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    assert!(repeated.contains(&gift) && repeated.contains(&notice), "{repeated:?}");
    check_the_comparison(data.path(), &items, &log, &["--also", &gift, "--also", &notice]).await;
}

/// Whether the newest slot shows anything.
async fn has_comments(origin: &str) -> bool {
    let head = get(origin, "/dm/1/demo/head.json").await;
    if head.status != 200 {
        return false;
    }
    let path = format!("/dm/1/demo/1/full/{}.json", head.json()["slot"]);
    get(origin, &path).await.json()["items"].as_array().is_some_and(|it| !it.is_empty())
}

/// Spoils what is compared, in each way that must be noticed.
async fn check_the_comparison(folder: &Path, items: &str, log: &str, also: &[&str]) {
    let (shown, told) = (lines(items), lines(log));
    let spoiled = |name: &str, lines: &[Value]| {
        let path = folder.join(name);
        let text: Vec<String> = lines.iter().map(|it| format!("{it}\n")).collect();
        fs::write(&path, text.concat()).unwrap();
        path.to_str().unwrap().to_owned()
    };

    let fewer = spoiled("fewer", &told[1..]);
    assert_noticed(&compare(items, &fewer, also).await, "is there and was not sealed");

    let stranger = json!({ "id": "1", "account": "crowd-0", "text": "", "fate": "sealed" });
    let more = spoiled("more", &[&told[..], &[stranger]].concat());
    assert_noticed(&compare(items, &more, also).await, "1 was sealed and is missing");

    let twice = spoiled("twice", &[&shown[..], &shown[..1]].concat());
    assert_noticed(&compare(&twice, log, also).await, "is there 2 times");

    let mut swapped = shown.clone();
    let (first, last) = (2, shown.len() - 1);
    swapped.swap(first, last);
    let swapped = spoiled("swapped", &swapped);
    assert_noticed(&compare(&swapped, log, also).await, "comes after");

    let mut borrowed = told.clone();
    borrowed[0]["account"] = json!("crowd-1");
    let borrowed = spoiled("borrowed", &borrowed);
    assert_noticed(&compare(items, &borrowed, also).await, "crowd-1 has two senders");
}

fn assert_noticed(output: &Output, complaint: &str) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said(output).contains(complaint), "{}", said(output));
}

async fn compare(items: &str, log: &str, also: &[&str]) -> Output {
    let (recording, viewers) = (sample("concert.json"), VIEWERS.to_string());
    let mut script = python("compare");
    script.args([items, log, "--recording", &recording, "--viewers", &viewers]).args(also);
    run(&mut script).await
}

fn python(command: &str) -> Command {
    let mut python = Command::new("python3");
    python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fetch_segments.py")).arg(command);
    python
}

fn lines(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}
