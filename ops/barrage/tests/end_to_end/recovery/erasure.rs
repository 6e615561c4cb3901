//! An item is erased from the terminal: viewers of both paths take it off, and no file holds it.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use proto::id::ItemId;
use proto::segment::Segment;

use super::gift_life::Scene;
use crate::process::{barrage, run, said, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_gift_leaves_both_paths_and_every_file() {
    let scene = Scene::new();
    let up = scene.start(None).await;
    let viewers = scene.viewers().await;
    let (gift, other) = (scene.gift("gift").await.unwrap(), scene.gift("other").await.unwrap());
    until("both gifts", async || (viewers.have(gift) && viewers.have(other)).then_some(())).await;
    until("a file with it", async || (files(scene.data(), gift) > 0).then_some(())).await;

    let erased = erase(&scene, gift).await;
    let again = erase(&scene, gift).await;

    assert_eq!(erased, again, "one tombstone, however often it is asked for");
    until("every viewer to take it off", async || viewers.took_off(gift).then_some(())).await;
    until("no file with it", async || (files(scene.data(), gift) == 0).then_some(())).await;
    assert!(files(scene.data(), other) > 0);
    up.kill().await;
}

/// What `barrage room erase` says.
async fn erase(scene: &Scene, id: ItemId) -> String {
    let mut command = barrage(["room", "erase", "demo", &id.to_string(), "--data"]);
    let output = run(command.arg(scene.data())).await;
    assert!(output.status.success(), "{output:?}");
    said(&output).to_owned()
}

/// Segments in the store in which an item stands, or is repeated.
fn files(data: &Path, id: ItemId) -> usize {
    let mut count = 0;
    let mut folders = vec![data.join("segments/dm/1/demo")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.map(|it| it.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "bin") {
                count += usize::from(holds(&path, id));
            }
        }
    }
    count
}

fn holds(path: &Path, id: ItemId) -> bool {
    // It may be removed meanwhile.
    let Ok(packed) = std::fs::read(path) else { return false };
    let mut bytes = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    let segment = Segment::decode(&bytes).unwrap();
    let repeats = segment.repeats.iter().map(|it| &it.placed);
    segment.items.iter().chain(repeats).any(|it| it.item.id == id)
}
