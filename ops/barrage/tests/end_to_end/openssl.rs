//! Viewers whose TLS is OpenSSL's: they log in with a binder made from what it exports.

use std::path::{Path as FsPath, PathBuf};
use std::process::Stdio;

use channel::{EXPORTER_LABEL, binder, confirm};
use proto::address::Transport;
use proto::frame::{Credential, Downlink, Join, JoinOutcome, Login, Path, Uplink, prefixed};
use proto::suite::Suite;
use sdk::hello::hello;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::site::{STEP_MAX, Site};

#[tokio::test(flavor = "multi_thread")]
async fn openssl_4_logs_in_over_the_national_suites_on_either_port() {
    let site = Site::start(20_000).await;
    let national =
        ["-ciphersuites", "TLS_SM4_GCM_SM3", "-groups", "curveSM2", "-sigalgs", "sm2sig_sm3"];

    for transport in [Transport::National, Transport::Tls] {
        let ca_pem = &site.trust.national_ca_pem;
        let viewer = Viewer::connect(&openssl4(), &national, &site, transport, ca_pem).await;
        viewer.logs_in(&site, transport, Suite::National).await;
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openssl_3_logs_in_over_tls() {
    let site = Site::start(20_000).await;

    let (openssl3, ca_pem) = (FsPath::new("openssl"), &site.trust.ca_pem);
    let viewer = Viewer::connect(openssl3, &[], &site, Transport::Tls, ca_pem).await;
    viewer.logs_in(&site, Transport::Tls, Suite::Tls).await;

    site.stop().await;
}

/// A running `openssl s_client`.
struct Viewer {
    _process: Child,
    input: ChildStdin,
    output: ChildStdout,
    heard: Vec<u8>,
    exported: [u8; 32],
}

impl Viewer {
    async fn connect(
        openssl: &FsPath,
        arguments: &[&str],
        site: &Site,
        transport: Transport,
        ca_pem: &str,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("ca.pem");
        std::fs::write(&ca_file, ca_pem).unwrap();
        let mut process = Command::new(openssl)
            .args(["s_client", "-tls1_3", "-verify_return_error", "-connect"])
            .arg(site.address(transport).authority())
            .args(["-verify_ip", "127.0.0.1", "-keymatexportlen", "32", "-keymatexport"])
            .arg(std::str::from_utf8(EXPORTER_LABEL).unwrap())
            .arg("-CAfile")
            .arg(&ca_file)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("openssl starts: run ops/tools/install");
        let mut viewer = Self {
            input: process.stdin.take().unwrap(),
            output: process.stdout.take().unwrap(),
            _process: process,
            heard: Vec::new(),
            exported: [0; 32],
        };
        let line = viewer.hear(exported).await;
        viewer.exported = hex::decode(line).unwrap().try_into().unwrap();
        viewer
    }

    /// Hello and Login in one flight; both answers are what they should be.
    async fn logs_in(mut self, site: &Site, transport: Transport, suite: Suite) {
        let token = site.token(&site.address(transport).authority(), "olga", 0);
        let hello = Uplink::Hello(hello(&[suite], 1)).encode();
        let login = Uplink::Login(Login {
            binder: Some(binder(&self.exported, &hello, token.as_bytes())),
            credential: Credential::Token(token),
            device: None,
            joins: vec![Join { room: site.room.clone(), path: Path::Push, resume: None }],
        });
        let flight = [prefixed(&hello), prefixed(&login.encode())].concat();
        self.input.write_all(&flight).await.unwrap();

        let welcome = self.hear(frame).await;
        let answer = self.hear(frame).await;

        let Downlink::Welcome(said) = Downlink::decode(&welcome).unwrap() else {
            panic!("{:?}", Downlink::decode(&welcome));
        };
        assert_eq!(said.suite, suite.name());
        let Downlink::LoginOk(login_ok) = Downlink::decode(&answer).unwrap() else {
            panic!("{:?}", Downlink::decode(&answer));
        };
        assert_eq!(login_ok.confirm, Some(confirm(&self.exported, &hello, &welcome)));
        assert!(matches!(login_ok.rooms[0].outcome, JoinOutcome::In { .. }));
    }

    /// Listens until `find` finds something, and takes all up to there.
    async fn hear<T>(&mut self, find: impl Fn(&[u8]) -> Option<(T, usize)>) -> T {
        loop {
            if let Some((found, end)) = find(&self.heard) {
                self.heard.drain(..end);
                return found;
            }
            let heard = timeout(STEP_MAX, self.output.read_buf(&mut self.heard)).await;
            let printed = String::from_utf8_lossy(&self.heard);
            assert!(heard.unwrap().unwrap() > 0, "openssl ended: {printed}");
        }
    }
}

/// What it exported, in hex.
fn exported(heard: &[u8]) -> Option<(String, usize)> {
    const BEFORE: &str = "Keying material: ";
    let text = std::str::from_utf8(heard).ok()?;
    let start = text.find(BEFORE)? + BEFORE.len();
    let length = text[start..].find('\n')?;
    Some((text[start..start + length].to_owned(), start + length))
}

/// A frame. Its length begins with a zero byte, which nothing that openssl itself says has in it.
fn frame(heard: &[u8]) -> Option<(Vec<u8>, usize)> {
    let start = heard.iter().position(|it| *it == 0)?;
    let (length, rest) = heard[start..].split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    Some((rest.get(..length)?.to_vec(), start + 4 + length))
}

/// Where `ops/tools/install` puts it.
fn openssl4() -> PathBuf {
    let tools = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || FsPath::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools"),
        PathBuf::from,
    );
    let file = tools.join("openssl4/bin/openssl");
    assert!(file.exists(), "{} is missing: run ops/tools/install", file.display());
    file
}
