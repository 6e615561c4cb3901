//! `barrage room`, `mute`, `ban`, `words` and `backup`: an operator's hand on rooms.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Up, barrage, complained, run, said, until};

#[tokio::test]
async fn rooms_are_made_changed_watched_over_and_closed_from_the_terminal() {
    let dir = TempDir::new().unwrap();
    let up = Up::start(dir.path(), &["--crowd", "0"]).await;
    until("the demo room", async || call(dir.path(), &["room", "show", "demo"]).await.ok()).await;

    let made =
        ["room", "create", "studio", "--set", "slow_mode_ms=500", "--set", "speakers=listed"];
    let made = json_of(&call(dir.path(), &made).await.unwrap());
    assert_eq!((&made["settings"]["speakers"], &made["version"]), (&json!("listed"), &json!(1)));
    let update = ["room", "update", "studio", "--set", "slow_mode_ms=0", "--version", "1"];
    call(dir.path(), &update).await.unwrap();
    assert!(call(dir.path(), &update).await.unwrap_err().contains("has version 2 now"));
    call(dir.path(), &["room", "notice", "studio", "welcome"]).await.unwrap();
    call(dir.path(), &["room", "appoint", "studio", "mo", "--role", "moderator"]).await.unwrap();
    let mute = ["mute", "add", "studio", "loud", "--for", "60", "--by", "mo", "--why", "spam"];
    call(dir.path(), &mute).await.unwrap();
    for what in [["--viewer", "v"], ["--device", "d"], ["--range", "203.0.113.0/24"]] {
        call(dir.path(), &[&["ban", "add", "studio"], &what[..]].concat()).await.unwrap();
    }
    let end = ["ban", "end", "studio", "--range", "203.0.113.0/24"];
    call(dir.path(), &end).await.unwrap();

    let shown = json_of(&call(dir.path(), &["room", "show", "studio"]).await.unwrap());
    assert_eq!(shown["attributes"][0]["value"], "welcome");
    assert_eq!(lines(dir.path(), &["mute", "list", "studio"]).await[0]["viewer"], "loud");
    assert_eq!(lines(dir.path(), &["ban", "list", "studio"]).await.len(), 2);
    let audit = lines(dir.path(), &["room", "audit", "studio"]).await;
    let muted = audit.iter().find(|it| it["act"] == "mute").unwrap();
    assert_eq!((&muted["by"], &muted["why"]), (&json!("mo"), &json!("spam")));
    let refused = call(dir.path(), &["room", "close", "studio", "--by", "mo"]).await.unwrap_err();
    assert!(refused.contains("not_allowed"), "{refused}");
    call(dir.path(), &["room", "close", "studio"]).await.unwrap();
    let rooms = lines(dir.path(), &["room", "list"]).await;
    let open: Vec<_> = rooms.iter().map(|it| (&it["room"], &it["open"])).collect();
    assert_eq!(open, [(&json!("demo"), &json!(true)), (&json!("studio"), &json!(false))]);
    up.kill().await;
}

#[tokio::test]
async fn words_go_in_and_out_and_a_backup_holds_them() {
    let dir = TempDir::new().unwrap();
    let up = Up::start(dir.path(), &["--crowd", "0"]).await;
    until("the demo room", async || call(dir.path(), &["room", "show", "demo"]).await.ok()).await;
    let list = dir.path().join("words.txt");
    std::fs::write(&list, "bad\nmeh\tmask\n").unwrap();
    let (list, copy) = (list.to_str().unwrap(), dir.path().join("copy.redb"));

    call(dir.path(), &["words", "put", list, "--version", "0"]).await.unwrap();
    assert_eq!(call(dir.path(), &["words", "get"]).await.unwrap(), "bad\trefuse\nmeh\tmask");
    let backup = ["backup", copy.to_str().unwrap()];
    assert!(call(dir.path(), &backup).await.unwrap_err().contains("in use"));
    up.transcript().await;
    assert!(call(dir.path(), &backup).await.unwrap().contains("rows"));

    std::fs::rename(&copy, dir.path().join("rooms.redb")).unwrap();
    let up = Up::start(dir.path(), &["--crowd", "0"]).await;
    until("the words", async || {
        call(dir.path(), &["words", "get"]).await.ok().filter(|it| it.starts_with("bad\trefuse"))
    })
    .await;
    up.kill().await;
}

/// What a command says, or complains about.
async fn call(data: &Path, args: &[&str]) -> Result<String, String> {
    let output = run(barrage(args).arg("--data").arg(data)).await;
    if output.status.success() {
        Ok(said(&output).to_owned())
    } else {
        Err(complained(&output).to_owned())
    }
}

async fn lines(data: &Path, args: &[&str]) -> Vec<Value> {
    call(data, args).await.unwrap().lines().map(json_of).collect()
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
