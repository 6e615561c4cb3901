//! `kill -9` in the middle of a show: settings and acknowledged gifts are there again.

mod erasure;
mod gift_life;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::Api;
use crate::get::{get, unzip};
use crate::process::{Up, barrage, complained, run, sample, until};

/// Gifts acknowledged before the kill.
const GIFTS: usize = 10;

#[tokio::test]
async fn after_a_kill_settings_and_acknowledged_gifts_are_back_and_shown_once() {
    let data = tempfile::tempdir().unwrap();
    let gifts = first_life(&data).await;

    let up = Up::start(data.path(), &["--crowd", "0"]).await;
    let api = Api::of(&up, data.path()).await;
    let room = api.room().await.json();
    assert_eq!(room["settings"]["graphemes_max"], 77, "{room}");
    assert_eq!(room["settings"]["items_per_s"], 1, "{room}");

    // Before and after they are shown, the same key is the same gift.
    assert_repeats(&api, &gifts).await;
    assert_eq!(api.patch(&json!({ "items_per_s": 50 })).await.status, 200);
    until("every gift", async || {
        let shown = shown(data.path());
        gifts.iter().all(|(_, id)| shown.contains_key(id)).then_some(())
    })
    .await;
    assert_repeats(&api, &gifts).await;
    let (status, after) = api.gift("after").await;
    assert_eq!(status, 202);
    let shown = until("the gift after", async || {
        let shown = shown(data.path());
        shown.contains_key(&after).then_some(shown)
    })
    .await;

    for (key, id) in &gifts {
        assert_eq!(shown[id].len(), 1, "{key} {id} is shown in {:?}", shown[id]);
    }
    assert!(shown.values().all(|it| it.len() == 1), "{shown:?}");
    check_the_gens(&up, &shown[&after]).await;
    up.kill().await;
}

#[tokio::test]
async fn up_does_not_start_on_a_disk_that_is_too_full_and_says_what_to_do() {
    let data = tempfile::tempdir().unwrap();
    let mut up = barrage(["up", "--data"]);
    up.arg(data.path()).env("BARRAGE_BROADCASTER__FREE_BYTES_MIN", i64::MAX.to_string());

    let output = run(&mut up).await;

    assert!(!output.status.success(), "{output:?}");
    let complaint = complained(&output);
    for part in ["segments takes no segments: only", "make room", "free_bytes_min"] {
        assert!(complaint.contains(part), "{complaint}");
    }
}

/// A show with settings of its own and gifts; it is killed before it could show them all.
async fn first_life(data: &TempDir) -> Vec<(String, String)> {
    let recording = sample("concert.json");
    let args = ["--crowd", "10", "--replay", &recording, "--speed", "4", "--for", "100"];
    let up = Up::start(data.path(), &args).await;
    let api = Api::of(&up, data.path()).await;
    until("a comment in a segment", async || (!shown(data.path()).is_empty()).then_some(())).await;
    let changed = api.patch(&json!({ "graphemes_max": 77, "items_per_s": 1 })).await;
    assert_eq!(changed.status, 200, "{changed:?}");

    let mut gifts = Vec::new();
    for number in 0..GIFTS {
        let key = format!("gift-{number}");
        let (status, id) = api.gift(&key).await;
        assert_eq!(status, 202);
        gifts.push((key, id));
    }
    up.kill().await;
    let sealed = shown(data.path());
    assert!(gifts.iter().any(|(_, id)| !sealed.contains_key(id)), "the kill came too late");
    gifts
}

async fn assert_repeats(api: &Api, gifts: &[(String, String)]) {
    for (key, id) in gifts {
        assert_eq!(api.gift(key).await, (200, id.clone()), "{key}");
    }
}

/// The old gen is closed, the new one goes on.
async fn check_the_gens(up: &Up, after: &[(u64, u64)]) {
    let head = get(up.url("origin"), "/dm/1/demo/head.json").await.json();
    assert_eq!((&head["gen"], after[0].0), (&json!(2), 2));
    let beyond = get(up.url("origin"), "/dm/1/demo/1/full/100000.bin").await;
    assert_eq!((beyond.status, beyond.header("cache-control")), (410, "public, max-age=1"));
}

/// Where each item is shown, repeats aside: (gen, slot), over all gens in the store.
fn shown(data: &Path) -> BTreeMap<String, Vec<(u64, u64)>> {
    let mut shown: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for gen_no in 1..=2_u64 {
        let folder = data.join(format!("segments/dm/1/demo/{gen_no}/full"));
        let Ok(files) = std::fs::read_dir(folder) else { continue };
        for file in files.map(|it| it.unwrap().path()) {
            if file.extension().is_some_and(|it| it == "json") {
                let page: Value = unzip(&std::fs::read(file).unwrap());
                let place = (gen_no, page["slot"].as_u64().unwrap());
                for item in page["items"].as_array().unwrap() {
                    let id = item["id"].as_str().unwrap().to_owned();
                    shown.entry(id).or_default().push(place);
                }
            }
        }
    }
    shown
}
