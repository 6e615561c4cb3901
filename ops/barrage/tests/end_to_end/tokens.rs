//! `barrage token`: what is minted verifies, and what does not is explained.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::Value;
use tokio::process::Command;

use crate::process::{barrage, complained, run, said, workspace};

/// The vector of the protocol page.
struct Vector(Value);

impl Vector {
    fn read() -> Self {
        let text = std::fs::read(workspace("proto/vectors/token.json")).unwrap();
        let vector: Value = serde_json::from_slice(&text).unwrap();
        Self(vector["value"].clone())
    }

    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap()
    }

    /// `barrage token` with the keys of the vector, `late_s` seconds after it was minted.
    fn token(&self, command: &str, address: &str, late_s: u64) -> Command {
        let at = self.0["iat"].as_u64().unwrap() + late_s;
        let mut token = barrage(["token", command, "--random", self.text("random")]);
        token.args(["--address", address, "--at", &at.to_string()]);
        token.env("BARRAGE_TOKEN_MASTER", self.text("master"));
        token
    }

    async fn verify(&self, late_s: u64, args: &[&str]) -> Output {
        run(self.token("verify", self.text("address"), late_s).args(args)).await
    }
}

#[tokio::test]
async fn the_printed_vector_is_valid_and_laid_open() {
    let vector = Vector::read();

    let output = vector.verify(60, &[vector.text("text")]).await;

    assert!(output.status.success(), "{output:?}");
    for line in [
        "alg      1 (hmac_sha256)",
        "epoch    2975000",
        "link     ec306b5a6cdbde599c15d5f45e41440b",
        "minted   1785000030 s",
        "lives    60 s",
        "caps     0x0003",
        "jti      101112131415161718191a1b1c1d1e1f",
        "account  user-42",
        "device   ios-1",
        "rooms    room-1",
        "valid",
    ] {
        assert!(said(&output).lines().any(|it| it == line), "{line}:\n{}", said(&output));
    }
}

#[tokio::test]
async fn what_is_minted_verifies_with_every_algorithm() {
    let vector = Vector::read();

    for alg in ["1", "2", "3"] {
        let mut mint = vector.token("mint", vector.text("address"), 0);
        let minted = run(mint.args(["--account", "alice", "--room", "r", "--alg", alg])).await;
        let token = said(&minted);
        assert!(token.starts_with("dm1."), "{minted:?}");

        let verified = vector.verify(30, &["--alg", alg, token]).await;
        assert!(verified.status.success(), "{verified:?}");
        assert!(said(&verified).contains("account  alice"), "{}", said(&verified));

        let other = if alg == "1" { "2" } else { "1" };
        let refused = vector.verify(30, &["--alg", other, token]).await;
        check_refused(&refused, 3013);
    }
}

#[tokio::test]
async fn every_refusal_is_explained_with_its_code() {
    let vector = Vector::read();
    let text = vector.text("text");
    let forged = text.replacen("c2VyLTQy", "c2VyLTQz", 1);
    assert_ne!(forged, text);

    check_refused(&vector.verify(91, &[text]).await, 3008);
    check_refused(&vector.verify(600, &[text]).await, 3013);
    check_refused(&vector.verify(0, &[&forged]).await, 3013);
    check_refused(&vector.verify(0, &[&text[..text.len() - 1]]).await, 3013);
    check_refused(&vector.verify(0, &["dm1."]).await, 3013);
    check_refused(&vector.verify(0, &["not a token"]).await, 3013);
    let output = run(vector.token("verify", "link-08.example:443", 0).arg(text)).await;
    // Masters have keys for every address; a link has none for another's, and says 3013.
    check_refused(&output, 3010);
}

#[tokio::test]
async fn keys_that_are_none_are_refused() {
    let vector = Vector::read();
    let mut mint = vector.token("mint", "a:1", 0);

    check_fails(&run(mint.env("BARRAGE_TOKEN_MASTER", "00")).await, "not 32 bytes in hexadecimal");
    check_fails(&run(mint.env_remove("BARRAGE_TOKEN_MASTER")).await, "set BARRAGE_TOKEN_MASTER");
}

#[tokio::test]
async fn the_master_key_can_be_in_a_file_for_its_owner_alone() {
    let vector = Vector::read();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("master");
    kit::private::write(&file, format!("{}\n", vector.text("master")).as_bytes()).unwrap();
    let mut verify = vector.token("verify", vector.text("address"), 0);
    verify.env_remove("BARRAGE_TOKEN_MASTER").arg(vector.text("text"));
    verify.arg("--master-file").arg(&file);

    let valid = run(&mut verify).await;
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let refused = run(&mut verify).await;

    assert!(valid.status.success(), "{valid:?}");
    check_fails(&refused, "its mode is 644, not 600");
}

fn check_fails(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(complained(output).contains(why), "{output:?}");
}

fn check_refused(output: &Output, code: u16) {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let last = said(output).lines().last().unwrap();
    assert!(last.starts_with("refused: "), "{last}");
    assert!(last.contains(&format!("(code {code} ")), "{last}");
}
