//! Both modes through the whole system, and certificates that change while it runs.

use std::path::Path as FsPath;
use std::time::Duration;

use channel::{DevCerts, Pin, Pins};
use proto::address::Transport;
use proto::frame::{Ack, Outcome, Path};
use proto::item::Style;
use proto::verdict::Verdict;
use sdk::{Client, Event, Events, Options};
use stack::Tls;
use tokio::time::timeout;

use crate::process::WAIT_MAX;
use crate::site::Site;

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_of_the_national_suites_comments_on_either_port() {
    let site = Site::start(10_000).await;

    for transport in [Transport::National, Transport::Tls] {
        let mut options = site.options("alice", Path::Push);
        options.transports = vec![transport];
        options.tls = Some(site.trust.national.clone());
        options.national = Some(site.trust.national.clone());
        let (client, mut events) = Client::start(options);

        assert_eq!(connected(&mut events).await, transport);
        comments(&site, &client, &mut events).await;
    }
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_shown_to_newcomers_and_nobody_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (old, new) = (pair(&path("old")), pair(&path("new")));
    for (certs, name) in old.iter().zip(["t", "g"]) {
        write(folder.path(), name, certs);
    }
    let cas = |no: usize| format!("{}{}", old[no].ca_pem, new[no].ca_pem);
    std::fs::write(path("t-ca.pem"), cas(0)).unwrap();
    std::fs::write(path("g-ca.pem"), cas(1)).unwrap();
    let tls = Tls {
        chain: path("t-chain.pem"),
        key: path("t-key.pem"),
        ca: path("t-ca.pem"),
        national_chain: path("g-chain.pem"),
        national_key: path("g-key.pem"),
        national_ca: path("g-ca.pem"),
        reload_s: 1,
    };
    let site = Site::with(|config| config.tls = tls).await;
    let (client, mut events) = Client::start(pinned(&site, Transport::Tls, &old));
    connected(&mut events).await;

    for (certs, name) in new.iter().zip(["t", "g"]) {
        write(folder.path(), name, certs);
    }
    for suite in ["T", "G"] {
        let taken = format!("reloads_total{{outcome=\"taken\",suite=\"{suite}\"}} 1");
        let waiting = async {
            while !site.meter.render().contains(&taken) {
                site.clock.sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(WAIT_MAX, waiting).await.expect("the files are looked at");
    }

    comments(&site, &client, &mut events).await;
    for transport in [Transport::Tls, Transport::Wss, Transport::Quic, Transport::National] {
        let (_newcomer, mut events) = Client::start(pinned(&site, transport, &new));
        assert_eq!(connected(&mut events).await, transport);
    }
    site.stop().await;
}

/// A viewer who believes these keys alone.
fn pinned(site: &Site, transport: Transport, [tls, national]: &[DevCerts; 2]) -> Options {
    let pins = |certs: &DevCerts| {
        let current = Pin::of_pem(&certs.chain_pem).unwrap();
        Pins { current, next: None }
    };
    let mut options = site.options("alice", Path::Push);
    options.transports = vec![transport];
    options.tls = Some(site.trust.tls.pinned(pins(tls)));
    options.national = Some(site.trust.national.pinned(pins(national)));
    options
}

async fn connected(events: &mut Events) -> Transport {
    loop {
        match timeout(WAIT_MAX, events.next()).await.expect("it connects").unwrap() {
            Event::Connected { address, .. } => return address.transport,
            // The link's first report to gslb may be under way.
            Event::Disconnected { code: None, .. } | Event::ReadOnly { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Says something and is heard, without having lost the connection before.
async fn comments(site: &Site, client: &Client, events: &mut Events) {
    let cid = client.send(&site.room, "hello", Style::default(), None).unwrap();
    loop {
        match timeout(WAIT_MAX, events.next()).await.expect("a verdict").unwrap() {
            Event::Ack(Ack { cid: told, outcome }) if told == cid => {
                assert!(matches!(outcome, Outcome::Verdict(Verdict::Admit(_))), "{outcome:?}");
                return;
            }
            Event::Disconnected { code, .. } => panic!("cut off: {code:?}"),
            _ => {}
        }
    }
}

/// Certificates of both modes.
fn pair(folder: &FsPath) -> [DevCerts; 2] {
    let national = folder.join("national");
    [
        DevCerts::load_or_create(folder, &[]).unwrap(),
        DevCerts::load_or_create_national(&national, &[]).unwrap(),
    ]
}

fn write(folder: &FsPath, name: &str, certs: &DevCerts) {
    std::fs::write(folder.join(format!("{name}-chain.pem")), &certs.chain_pem).unwrap();
    std::fs::write(folder.join(format!("{name}-key.pem")), &certs.key_pem).unwrap();
}
