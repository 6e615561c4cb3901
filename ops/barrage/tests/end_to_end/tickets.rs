//! `barrage keys ticket`: both ends of a business server's key, from the command to `enter`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::secret::Secret;
use auth_core::ticket::{Claims, Signer};
use proto::address::Transport;
use proto::id::AppId;
use sdk::enter::EnterError;
use serde_json::{Value, json};
use stack::Identity;
use tempfile::TempDir;

use crate::process::{barrage, complained, run, said};
use crate::site::Site;

const ALGS: [(&str, TicketAlg); 3] =
    [("eddsa", TicketAlg::EdDsa), ("es256", TicketAlg::Es256), ("hs256", TicketAlg::Hs256)];

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_configured_and_sign_tickets_that_enter_takes() {
    let dir = TempDir::new().unwrap();
    let (mut ticket_keys, mut set, mut signers) = (Vec::new(), Vec::new(), Vec::new());
    for (name, alg) in ALGS {
        for place in ["config", "jwks"] {
            let kid = format!("{name}-{place}");
            let out = dir.path().join(&kid);
            let made = make(name, &kid, &out).await;
            assert!(made.status.success(), "{made:?}");
            signers.push((kid.clone(), alg, private(&out)));
            match place {
                "config" => ticket_keys.push(configured(&out)),
                _ => set.push(json(&out)["keys"][0].clone()),
            }
        }
    }
    let stranger = dir.path().join("stranger");
    make("eddsa", "eddsa-config", &stranger).await;
    let jwks = dir.path().join("jwks.json");
    fs::write(&jwks, json!({"keys": set}).to_string()).unwrap();

    let site = Site::with(|config| {
        let own = Identity::load_or_create(&config.data).unwrap().app();
        ticket_keys.extend(own.ticket_keys.iter().cloned());
        config.app = vec![App { ticket_keys, jwks, ..own }];
    })
    .await;
    site.offer("somebody", Transport::Tcp).await;

    for (kid, alg, private) in signers {
        let answer = enter(&site, &kid, alg, &private).await;
        assert!(answer.is_ok(), "{kid}: {answer:?}");
    }
    let refused = enter(&site, "eddsa-config", TicketAlg::EdDsa, &private(&stranger)).await;
    assert!(refused.is_err());
    site.stop().await;
}

#[tokio::test]
async fn a_new_key_is_for_its_owner_and_neither_printed_nor_overwritten() {
    let dir = TempDir::new().unwrap();
    for (name, private_name, mode) in [
        ("eddsa", "ticket-key.pem", 0o644),
        ("es256", "ticket-key.pem", 0o644),
        ("hs256", "ticket-key.txt", 0o600),
    ] {
        let out = dir.path().join(name);

        let made = make(name, "k", &out).await;
        let again = make(name, "k", &out).await;

        let modes = [private_name, "ticket-key.toml", "jwks.json"]
            .map(|it| fs::metadata(out.join(it)).unwrap().permissions().mode() & 0o777);
        assert_eq!(modes, [0o600, mode, mode], "{name}");
        let secret = private(&out);
        assert!(secret.lines().all(|it| !said(&made).contains(it)), "{made:?}");
        assert_eq!(again.status.code(), Some(2));
        assert!(complained(&again).contains("nothing was written"), "{again:?}");
        assert_eq!(private(&out), secret);
    }
    let unnamed = make("eddsa", "", dir.path()).await;
    assert!(complained(&unnamed).contains("--kid"), "{unnamed:?}");
}

async fn make(alg: &str, kid: &str, out: &Path) -> Output {
    run(barrage(["keys", "ticket", "--alg", alg, "--kid", kid, "--out"]).arg(out)).await
}

fn private(out: &Path) -> String {
    let [pem, text] = ["ticket-key.pem", "ticket-key.txt"].map(|it| out.join(it));
    let path: PathBuf = if pem.exists() { pem } else { text };
    fs::read_to_string(path).unwrap()
}

/// The key as it stands in the configuration, below an `[[app]]`.
fn configured(out: &Path) -> TicketKey {
    let entry = fs::read_to_string(out.join("ticket-key.toml")).unwrap();
    let config: stack::Config = toml::from_str(&format!("[[app]]\nid = 1\n{entry}")).unwrap();
    config.app[0].ticket_keys[0].clone()
}

fn json(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("jwks.json")).unwrap()).unwrap()
}

/// What `enter` says about a ticket that this key signed.
async fn enter(site: &Site, kid: &str, alg: TicketAlg, private: &str) -> Result<(), EnterError> {
    let now_s = site.clock.wall().unix_s();
    let claims = Claims::viewer(AppId(1), "user-42", site.room.as_str(), now_s, now_s + 600);
    let signer = Signer::new(kid, alg, &Secret::new(private.to_owned())).unwrap();
    site.ask(&signer.sign(&claims).unwrap(), Transport::Tcp).await.map(drop)
}
