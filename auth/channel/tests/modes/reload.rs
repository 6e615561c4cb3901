//! A certificate is renewed under the feet of a running server.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use channel::reload::{Files, Looked, Reload, ReloadError};
use channel::{DevCerts, TlsError};
use kit::clock::Clock;
use kit::meter::Meter;
use proto::suite::Suite;
use rustls::HandshakeKind;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::site::{Site, certificate_of, in_time, shake, shown};

#[tokio::test]
async fn a_new_pair_is_shown_to_new_connections_and_old_ones_live() {
    let (old, new) = (Site::new(), Site::new());
    for (suite, old, new) in
        [(Suite::Tls, &old.tls, &new.tls), (Suite::National, &old.national, &new.national)]
    {
        let mut files = Written::new(suite, old).await;
        // Whatever was made from it before the change follows.
        let server = files.reload.tls().with_alpn(&[b"dm/1"]);
        let (client, accepted) = shake(&old.client().unwrap(), &server).await;
        let (mut client, mut accepted) = (client.unwrap(), accepted.unwrap());

        files.write(new);
        assert_eq!(files.reload.look().await, Looked::Taken);
        let (next, _) = shake(&new.client().unwrap(), &server).await;

        assert_eq!(shown(&next.unwrap()), certificate_of(new));
        assert_eq!(shown(&client), certificate_of(old));
        accepted.write_all(b"still here").await.unwrap();
        let mut said = [0; 10];
        in_time(client.read_exact(&mut said)).await.unwrap();
        assert_eq!(&said, b"still here");
        assert_eq!(files.reload.look().await, Looked::Same);
    }
}

#[tokio::test]
async fn a_pair_that_is_not_good_is_refused_once_and_the_old_one_stays() {
    let (site, other) = (Site::new(), Site::new());
    let mut files = Written::new(Suite::Tls, &site.tls).await;

    let half = |it: &Written| it.write_chain(&other.tls.chain_pem);
    let garbage = |it: &Written| it.write_chain("no certificate");
    let long = |it: &Written| it.write_chain(&"x".repeat(300 * 1024));
    let gone = |it: &Written| fs::remove_file(&it.files.chain).unwrap();
    let foreign = |it: &Written| it.write(&site.national);
    for (what, spoil) in [
        ("half", &half as &dyn Fn(&Written)),
        ("long", &long),
        ("garbage", &garbage),
        ("gone", &gone),
        ("foreign", &foreign),
    ] {
        spoil(&files);
        assert_eq!(files.reload.look().await, Looked::Refused, "{what}");
        assert_eq!(files.reload.look().await, Looked::Same, "{what}: it is told once");
        let (client, _) = shake(&site.tls.client().unwrap(), files.reload.tls()).await;
        assert_eq!(shown(&client.unwrap()), certificate_of(&site.tls), "{what}");
    }

    files.write(&other.tls);
    assert_eq!(files.reload.look().await, Looked::Taken);
    let counts = files.meter.render();
    for line in ["{outcome=\"refused\",suite=\"T\"} 5", "{outcome=\"taken\",suite=\"T\"} 1"] {
        assert!(counts.contains(&format!("channel_certificate_reloads_total{line}")), "{counts}");
    }
}

#[test]
fn a_key_of_another_certificate_or_another_mode_is_refused() {
    let (site, other) = (Site::new(), Site::new());
    let now = Clock::system().wall();
    for (own, others, foreign) in
        [(&site.tls, &other.tls, &site.national), (&site.national, &other.national, &site.tls)]
    {
        let server = own.server(&[]).unwrap();

        for (chain, key) in [(own, others), (others, own), (own, foreign), (foreign, foreign)] {
            assert!(server.replace(&chain.chain_pem, &key.key_pem, now).is_err());
        }
        server.replace(&others.chain_pem, &others.key_pem, now).unwrap();
    }
}

#[tokio::test]
async fn a_certificate_that_has_ended_is_refused_at_start_and_later() {
    let (site, new) = (Site::new(), Site::new());
    let mut files = Written::new(Suite::Tls, &site.tls).await;
    let end = files.reload.tls().validity().until;
    assert!(
        files
            .meter
            .render()
            .contains(&format!("channel_certificate_end_seconds{{suite=\"T\"}} {}", end.unix_s()))
    );

    files.clock.step(91 * 24 * 60 * 60 * 1000);
    files.write(&new.tls);
    let looked = files.reload.look().await;
    let opened =
        Reload::open(Suite::Tls, files.files, files.clock, Meter::new()).await.unwrap_err();

    assert_eq!(looked, Looked::Refused);
    let ReloadError::Pair { source: TlsError::NotNow { .. }, .. } = opened else {
        panic!("{opened:?}")
    };
}

#[tokio::test]
async fn a_ticket_from_before_the_change_is_taken_after_it() {
    let (site, new) = (Site::new(), Site::new());
    let mut files = Written::new(Suite::Tls, &site.tls).await;
    let client = site.tls.client().unwrap();
    let server = files.reload.tls().clone();
    let (first, accepted) = shake(&client, &server).await;
    accepted.unwrap().write_all(b"x").await.unwrap();
    first.unwrap().read_u8().await.unwrap();

    files.write(&new.tls);
    assert_eq!(files.reload.look().await, Looked::Taken);
    let (again, _) = shake(&client, &server).await;

    assert_eq!(again.unwrap().get_ref().1.handshake_kind(), Some(HandshakeKind::Resumed));
}

#[tokio::test]
async fn files_are_looked_at_until_the_end() {
    let (site, new) = (Site::new(), Site::new());
    let files = Written::new(Suite::Tls, &site.tls).await;
    files.write(&new.tls);
    let Written { reload, meter, .. } = files;
    let stop = CancellationToken::new();

    let running = reload.run(Duration::from_millis(1), stop.clone());
    let waiting = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        while !meter.render().contains("reloads_total{outcome=\"taken\",suite=\"T\"} 1") {
            ticks.tick().await;
        }
        stop.cancel();
    };
    let (ended, ()) = in_time(async { tokio::join!(running, waiting) }).await;

    ended.unwrap();
}

/// A pair in files.
struct Written {
    files: Files,
    reload: Reload,
    clock: Clock,
    meter: Meter,
    _dir: TempDir,
}

impl Written {
    async fn new(suite: Suite, certs: &DevCerts) -> Self {
        let dir = TempDir::new().unwrap();
        let path = |name: &str| -> PathBuf { dir.path().join(name) };
        let files = Files { chain: path("chain.pem"), key: path("key.pem") };
        fs::write(&files.chain, &certs.chain_pem).unwrap();
        fs::write(&files.key, &certs.key_pem).unwrap();
        let (clock, meter) = (Clock::system(), Meter::new());
        let opened = Reload::open(suite, files.clone(), clock.clone(), meter.clone()).await;
        Self { files, reload: opened.unwrap(), clock, meter, _dir: dir }
    }

    fn write(&self, certs: &DevCerts) {
        self.write_chain(&certs.chain_pem);
        fs::write(&self.files.key, &certs.key_pem).unwrap();
    }

    fn write_chain(&self, text: &str) {
        fs::write(&self.files.chain, text).unwrap();
    }
}
