//! `barrage keys` and `barrage token` with a running `up`.

use std::path::Path;
use std::process::Output;

use auth::MastersFile;
use auth_core::secret::Secret;
use proto::address::Transport;
use proto::close::CloseCode;
use proto::frame::{Credential, Downlink};
use sdk::raw;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::get::get;
use crate::process::{Up, barrage, complained, run, said, until};
use crate::site::STEP_MAX;

/// A running system without viewers.
struct Site {
    dir: TempDir,
    up: Up,
}

impl Site {
    async fn start() -> Self {
        Self::start_with(&mut barrage(["up", "--crowd", "0"])).await
    }

    async fn start_with(up: &mut Command) -> Self {
        let dir = TempDir::new().unwrap();
        let up = Up::start_with(up, dir.path()).await;
        let site = Self { dir, up };
        until("the epochs", async || site.keys(&["show"]).await.status.success().then_some(()))
            .await;
        site
    }

    async fn keys(&self, args: &[&str]) -> Output {
        self.call("keys", args).await
    }

    async fn token(&self, args: &[&str]) -> Output {
        self.call("token", args).await
    }

    async fn call(&self, command: &str, args: &[&str]) -> Output {
        run(barrage([command]).args(args).arg("--data").arg(self.dir.path())).await
    }

    async fn mint(&self, args: &[&str]) -> String {
        let minted = self.token(&[&["mint"], args].concat()).await;
        assert!(minted.status.success(), "{minted:?}");
        said(&minted).to_owned()
    }

    /// A file of the data folder, as JSON.
    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.dir.path().join(name)).unwrap()).unwrap()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        kit::private::write(&path, text.as_bytes()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn has(output: &Output, line: &str) -> bool {
    said(output).lines().any(|it| it.starts_with(line))
}

fn check_fails(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(complained(output).contains(why), "{output:?}");
}

/// The answer to a stolen master, from the first look to the last.
#[tokio::test]
async fn a_master_is_rotated_and_the_old_one_revoked_while_logins_go_on() {
    let site = Site::start().await;
    let before = site.mint(&[]).await;
    let shown = site.keys(&["show"]).await;
    assert!(has(&shown, "masters  0") && has(&shown, "draws    this service"), "{shown:?}");

    let rotated = site.keys(&["rotate"]).await;
    assert!(has(&rotated, "master 1 was drawn"), "{rotated:?}");
    let masters = site.keys(&["masters"]).await;
    assert!(has(&masters, "masters  1 0 (newest first)"), "{masters:?}");
    until("the reserve", async || {
        said(&site.keys(&["show"]).await).contains("masters 0 1").then_some(())
    })
    .await;
    let revoked = site.keys(&["revoke", "--kid", "0"]).await;
    assert!(has(&revoked, "void     master 0 in epochs 0 to the last"), "{revoked:?}");

    let refused = site.token(&["explain", &before]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(has(&refused, "FAILED   its master is not void in its epoch"), "{refused:?}");
    let after = site.mint(&[]).await;
    let valid = site.token(&["explain", &after]).await;
    assert!(valid.status.success() && said(&valid).contains("and master 1: runs"), "{valid:?}");
    let shown = site.keys(&["show"]).await;
    assert!(shown.status.success() && has(&shown, "void     master 0"), "{shown:?}");
}

#[tokio::test]
async fn policies_are_set_in_parts_and_unset() {
    let site = Site::start().await;
    let room = ["--app", "1", "--room", "demo"];
    let policy = async |command: &str, args: &[&str]| {
        site.keys(&[&["policy", command], &room[..], args].concat()).await
    };

    let set = policy("set", &["--entry", "guest", "--ttl", "30"]).await;
    assert!(has(&set, "room demo: its own, version 1"), "{set:?}");
    let set = policy("set", &["--single-device", "yes", "--minors", "read"]).await;
    for line in ["entry          guest", "token ttl      30 s", "single device  yes"] {
        assert!(has(&set, line), "{line}: {set:?}");
    }
    assert!(has(&policy("get", &[]).await, "minors         read"));
    let unset = policy("unset", &[]).await;
    assert!(has(&unset, "room demo: its app's") && has(&unset, "entry          token"));

    check_fails(&policy("set", &["--ttl", "121"]).await, "(bad_policy)");
    check_fails(&policy("set", &["--entry", "closed"]).await, "one of: open, guest, token");
    check_fails(&site.keys(&["policy", "get", "--app", "9"]).await, "(unknown_app)");
}

#[tokio::test]
async fn sdk_rules_come_from_a_file() {
    let site = Site::start().await;
    let rules = site.write("rules.json", r#"[{"below": "1.2.0", "act": "warn"}]"#);
    let wrong = site.write("wrong.json", r#"[{"below": "1.x", "act": "warn"}]"#);

    let set = site.keys(&["sdk", "set", &rules]).await;
    let got = site.keys(&["sdk", "get"]).await;

    assert!(has(&set, "1 rules, version 1"), "{set:?}");
    assert_eq!(said(&got), said(&set));
    check_fails(&site.keys(&["sdk", "set", &wrong]).await, "(bad_rules)");
}

#[tokio::test]
async fn a_key_that_is_given_goes_only_to_the_service_that_is_named() {
    let site = Site::start().await;
    let ca = site.write("ca.pem", site.json("run.json")["ca_pem"].as_str().unwrap());
    let key = site.json("run.json")["operator_key"].as_str().unwrap().to_owned();
    let key_file = site.write("operator.key", &format!("{key}\n"));
    let elsewhere = ["keys", "show", "--url", site.up.url("auth"), "--ca", &ca];

    check_fails(&run(&mut barrage(elsewhere)).await, "set BARRAGE_OPERATOR_KEY");
    let named = run(barrage(elsewhere).env("BARRAGE_OPERATOR_KEY", &key)).await;
    assert!(named.status.success(), "{named:?}");
    let filed = run(barrage(elsewhere).args(["--key-file", &key_file])).await;
    assert!(filed.status.success(), "{filed:?}");
    let wrong = run(barrage(elsewhere).env("BARRAGE_OPERATOR_KEY", "wrong")).await;
    check_fails(&wrong, "(unauthorized)");
    set_mode(Path::new(&key_file), 0o644);
    let open = run(barrage(elsewhere).args(["--key-file", &key_file])).await;
    check_fails(&open, "its mode is 644, not 600");
    // What a folder names gets the folder's own key.
    let mut show = barrage(["keys", "show", "--data"]);
    let ours = run(show.arg(site.dir.path()).env("BARRAGE_OPERATOR_KEY", "wrong")).await;
    assert!(ours.status.success(), "{ours:?}");
    check_fails(&site.keys(&["show", "--key-file", &key_file]).await, "--url <URL>");
}

#[tokio::test]
async fn nothing_secret_is_printed() {
    let site = Site::start().await;
    let identity = site.json("identity.json");
    let secrets = ["seal", "operator_key", "link_secret"].map(|it| identity[it].as_str().unwrap());
    let token = site.mint(&[]).await;

    for (command, args) in [
        ("keys", vec!["show"]),
        ("keys", vec!["show", "--json"]),
        ("keys", vec!["rotate"]),
        ("keys", vec!["masters"]),
        ("token", vec!["verify", &token]),
        ("token", vec!["explain", &token]),
    ] {
        let output = site.call(command, &args).await;
        let printed = format!("{}{}", said(&output), complained(&output));
        assert!(output.status.success(), "{output:?}");
        assert!(secrets.iter().all(|it| !printed.contains(it)), "{command} {args:?}");
    }
}

/// A viewer who speaks, a token that is refused, a rotation: all with the finest log that operators
/// are told to use. Nothing that `up` prints is meant to hold a key; `run.json` is, and does.
#[tokio::test]
async fn no_key_is_logged_or_measured() {
    let mut up = barrage(["up", "--crowd", "2"]);
    let site = Site::start_with(up.env("BARRAGE_LOG__FILTER", "debug")).await;
    let said_so = site.call("say", &["hello"]).await;
    assert!(said_so.status.success(), "{said_so:?}");
    let token = splice(&site.mint(&[]).await, &site.mint(&["--account", "somebodz"]).await);
    assert_eq!(refusal(&site, &token).await, CloseCode::TokenInvalid);
    let rotated = site.keys(&["rotate"]).await;
    assert!(rotated.status.success(), "{rotated:?}");

    let metrics = get(site.up.url("metrics"), "/metrics").await;
    let identity = site.json("identity.json");
    let run_file = site.json("run.json").to_string();
    let mut secrets: Vec<(String, String)> = fields(&identity);
    let seal = Secret::new(identity["seal"].as_str().unwrap().to_owned());
    let masters = MastersFile::new(&site.dir.path().join("auth"), &seal).unwrap().read().unwrap();
    secrets.extend(masters.into_iter().map(|it| (format!("master {}", it.kid), it.key)));
    secrets.push(("token".to_owned(), token));
    let written = site.up.transcript().await + std::str::from_utf8(&metrics.body).unwrap();

    assert_eq!(secrets.len(), 10, "seven of the identity, two masters, the token");
    assert!(written.contains(" DEBUG ") && written.contains("# TYPE link_logins_total"));
    assert!(run_file.contains(identity["ticket_key"].as_str().unwrap()));
    for (name, secret) in secrets {
        let line = written.lines().find(|it| it.contains(&secret));
        assert!(secret.len() >= 64 && line.is_none(), "{name}: {line:?}");
    }
}

/// The fields of an object, all of them text.
fn fields(object: &Value) -> Vec<(String, String)> {
    let fields = object.as_object().unwrap().iter();
    fields.map(|(name, it)| (name.clone(), it.as_str().unwrap().to_owned())).collect()
}

/// Why the link refuses a token.
async fn refusal(site: &Site, token: &str) -> CloseCode {
    let mut raw = raw::connect(&site.up.link(Transport::Tcp), None, STEP_MAX).await.unwrap();
    raw.login(Credential::Token(token.to_owned()), None, Vec::new()).await.unwrap();
    loop {
        match raw.recv().await.unwrap() {
            Downlink::Welcome(_) => {}
            Downlink::Refused(refused) => return refused.code,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_refusal_is_explained_with_its_check_and_what_to_do() {
    let site = Site::start().await;
    let token = site.mint(&["--ttl", "60"]).await;
    let iat: u64 = {
        let verified = site.token(&["verify", &token]).await;
        let minted = said(&verified).lines().find_map(|it| it.strip_prefix("minted   ")).unwrap();
        minted.strip_suffix(" s").unwrap().parse().unwrap()
    };
    let (late, early) = ((iat + 200).to_string(), (iat - 100).to_string());
    let forged = site.mint(&["--account", "somebodz"]).await;
    let forged = splice(&token, &forged);
    let cases: [(&[&str], &str, &str, &str); 5] = [
        (&[&forged], "its MAC: nobody", "somebodz", "forged"),
        (&[&token, "--at", &late], "it has not expired", "ends     2 min", "raise token_ttl_s"),
        (&[&token, "--at", &early], "it was not minted in the future", "in 1 min", "by NTP"),
        (&[&token, "--address", "other:1"], "it is for this link", "none of other:1", "connect to"),
        (&[&token[..40]], "its text is whole", "nothing of it can be read", "hand on the text"),
    ];

    for (args, failed, said_so, advice) in cases {
        let output = site.token(&[&["explain"], args].concat()).await;
        let text = said(&output);
        let mut failures = text.lines().filter(|it| it.starts_with("FAILED"));
        let failure = failures.next().unwrap_or_default();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(failure.contains(failed) && failures.next().is_none(), "{text}");
        assert!(text.contains(said_so), "{said_so}: {text}");
        let todo = text.lines().last().unwrap();
        assert!(todo.starts_with("do: ") && todo.contains(advice), "{text}");
    }
}

/// The fields of one token with the MAC of another.
fn splice(mac_of: &str, fields_of: &str) -> String {
    const MAC_CHARACTERS: usize = 44;
    let fields = &fields_of[..fields_of.len() - MAC_CHARACTERS];
    format!("{fields}{}", &mac_of[mac_of.len() - MAC_CHARACTERS..])
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
