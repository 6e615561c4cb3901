//! `barrage keys sm2`: files for mode G, never overwritten, keys for their owner alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use tempfile::TempDir;
use tokio::process::Command;

use crate::process::{barrage, complained, run, said};

const IDENTITY: [&str; 2] = ["-vfyopt", "distid:1234567812345678"];

#[tokio::test]
async fn an_authority_and_a_server_below_it_are_made_and_verify() {
    let dir = TempDir::new().unwrap();

    let ca = sm2(dir.path(), &["ca", "--name", "Our authority", "--days", "100"]).await;
    let leaf =
        sm2(dir.path(), &["leaf", "--name", "a.example", "--name", "127.0.0.1", "--days", "9"])
            .await;

    assert!(said(&ca).contains("wrote ./ca-key.pem"), "{ca:?}");
    assert!(said(&leaf).contains("wrote ./chain.pem"), "{leaf:?}");
    let modes = ["ca.pem", "ca-key.pem", "chain.pem", "key.pem"].map(|it| mode(dir.path(), it));
    assert_eq!(modes, [0o644, 0o600, 0o644, 0o600]);
    verify(dir.path(), "a.example").await;
}

#[tokio::test]
async fn a_request_made_elsewhere_is_signed_and_its_key_stays_there() {
    let dir = TempDir::new().unwrap();
    sm2(dir.path(), &["ca"]).await;

    let csr = sm2(dir.path(), &["csr", "--name", "b.example", "--out", "elsewhere"]).await;
    let signed = sm2(dir.path(), &["sign", "elsewhere/request.pem"]).await;

    assert!(said(&csr).contains("wrote elsewhere/request.pem"), "{csr:?}");
    assert!(said(&signed).ends_with("signed for b.example"), "{signed:?}");
    assert_eq!(mode(&dir.path().join("elsewhere"), "key.pem"), 0o600);
    assert!(!dir.path().join("key.pem").exists());
    verify(dir.path(), "b.example").await;
}

#[tokio::test]
async fn nothing_is_overwritten_and_nothing_half_written() {
    let dir = TempDir::new().unwrap();
    sm2(dir.path(), &["ca"]).await;
    let before = fs::read(dir.path().join("ca.pem")).unwrap();
    fs::write(dir.path().join("chain.pem"), "precious").unwrap();

    let ca = sm2(dir.path(), &["ca"]).await;
    let leaf = sm2(dir.path(), &["leaf", "--name", "a.example"]).await;

    for refused in [ca, leaf] {
        assert_eq!(refused.status.code(), Some(2));
        assert!(complained(&refused).contains("is already there and nothing was written"));
    }
    assert_eq!(fs::read(dir.path().join("ca.pem")).unwrap(), before);
    assert_eq!(fs::read(dir.path().join("chain.pem")).unwrap(), b"precious");
    assert!(!dir.path().join("key.pem").exists());
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let dir = TempDir::new().unwrap();
    let leaf = ["leaf", "--name", "a.example"];

    check(&sm2(dir.path(), &leaf).await, "--ca names the folder");
    sm2(dir.path(), &["ca", "--days", "30"]).await;
    check(&sm2(dir.path(), &leaf).await, "the authority itself ends earlier, on 2");
    check(&sm2(dir.path(), &["leaf", "--name", "a b"]).await, "\"a b\" is neither a DNS name");
    check(&sm2(dir.path(), &["ca", "--days", "0"]).await, "holds 1 to 36500 days, not 0");
    check(&sm2(dir.path(), &["sign", "none.pem"]).await, "cannot read the request none.pem");
    check(&sm2(dir.path(), &["sign", "ca.pem"]).await, "the request could not be read as PEM");

    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(dir.path().join("ca-key.pem"), open).unwrap();
    check(&sm2(dir.path(), &leaf).await, "its mode is 644, not 600");
}

fn check(refused: &Output, part: &str) {
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(complained(refused).contains(part), "{part}: {}", complained(refused));
}

async fn sm2(dir: &Path, args: &[&str]) -> Output {
    run(barrage(["keys", "sm2"]).args(args).current_dir(dir)).await
}

/// OpenSSL 3 is part of every system this is built on; without it the test fails.
async fn verify(dir: &Path, host: &str) {
    let mut openssl = Command::new("openssl");
    openssl.arg("verify").args(IDENTITY).args(["-verify_hostname", host]);
    let verified = run(openssl.args(["-CAfile", "ca.pem", "chain.pem"]).current_dir(dir)).await;
    assert!(verified.status.success(), "{verified:?}");
}

fn mode(dir: &Path, name: &str) -> u32 {
    fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777
}
