//! Both modes, pinned keys, and answers that do not keep to the offer.

use channel::{ClientTls, DevCerts, Pin, Pins};
use kit::clock::Clock;
use proto::address::{Address, Transport};
use proto::frame::{Path, Resumed, Welcome};
use proto::suite::Suite;
use sdk::Options;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::link::{Link, STEP, address_of};
use crate::site::Site;
use crate::viewer::{Viewer, certificates, national_certificates, options};

#[tokio::test]
async fn a_viewer_who_must_use_the_national_suites_offers_nothing_else() {
    let site = Site::start(&Clock::system()).await;
    let certificates = national_certificates();
    let server = certificates.server(&[]).unwrap();
    let plain = Link::bind(Transport::Tcp, None).await;
    let link = Link::bind(Transport::National, Some(server)).await;
    site.offer(&[plain.address(), link.address()], &[]);
    let mut options = options(&site, Path::Push);
    options.national = Some(certificates.client().unwrap());
    options.transports = vec![Transport::National];

    let mut viewer = Viewer::start(options);
    let (conn, login) = link.welcome(Path::Push).await;

    assert_eq!(viewer.connected().await, link.address().port);
    assert_eq!(conn.suite, Suite::National);
    assert!(login.binder.is_some(), "the login is bound to the national channel");
    assert_eq!(site.entered()[0].client.transports, [Transport::National]);
}

#[tokio::test]
async fn one_port_serves_viewers_of_either_mode() {
    let (tls, national) = (certificates(), national_certificates());
    let server = tls.server(&[]).unwrap().beside(&national.server(&[]).unwrap());
    for (certificates, suite) in [(&tls, Suite::Tls), (&national, Suite::National)] {
        let site = Site::start(&Clock::system()).await;
        let link = Link::bind(Transport::Tls, Some(server.clone())).await;
        site.offer(&[link.address()], &[]);

        let mut viewer = Viewer::start(trusting(&site, certificates.client().unwrap()));
        let (conn, _) = link.welcome(Path::Push).await;

        assert_eq!(viewer.connected().await, link.address().port);
        assert_eq!(conn.suite, suite);
    }
}

#[tokio::test]
async fn a_pinned_viewer_passes_by_a_link_with_another_key_of_the_same_authority() {
    let certificates = certificates();
    let pin = Pin::of_pem(&certificates.chain_pem).unwrap();
    let another = Pin([7; 32]);
    for (pins, is_known) in [
        (Pins { current: another, next: Some(pin) }, true),
        (Pins { current: another, next: None }, false),
    ] {
        let site = Site::start(&Clock::system()).await;
        let link = Link::bind(Transport::Tls, Some(certificates.server(&[]).unwrap())).await;
        let fallback = Link::bind(Transport::Tcp, None).await;
        site.offer(&[link.address(), fallback.address()], &[]);
        let mut options = trusting(&site, certificates.client().unwrap().pinned(pins));
        options.transports = vec![Transport::Tls, Transport::Tcp];

        let mut viewer = Viewer::start(options);
        let taken = if is_known { &link } else { &fallback };
        let (_conn, _) = taken.welcome(Path::Push).await;

        assert_eq!(viewer.connected().await, taken.address().port);
    }
}

#[tokio::test]
async fn a_welcome_that_was_not_offered_is_no_link() {
    let spoils: [fn(&mut Welcome); 5] = [
        |it| it.proto += 1,
        |it| it.proto = 0,
        |it| it.suite = "T".to_owned(),
        |it| it.codec = "zstd".to_owned(),
        |it| it.nonce ^= 1,
    ];
    for (no, spoil) in spoils.into_iter().enumerate() {
        let site = Site::start(&Clock::system()).await;
        let liar = Link::bind(Transport::Tcp, None).await;
        let link = Link::bind(Transport::Tcp, None).await;
        site.offer(&[liar.address(), link.address()], &[]);

        let mut viewer = Viewer::start(options(&site, Path::Push));
        let mut conn = liar.accept().await;
        conn.spoil = spoil;
        let login = conn.login().await;
        conn.let_in(&login, Path::Push, Resumed::Fresh).await;
        let (_conn, _) = link.welcome(Path::Push).await;

        assert_eq!(viewer.connected().await, link.address().port, "spoil {no}");
    }
}

#[tokio::test]
async fn somebody_in_between_whom_the_viewer_believes_is_found_by_the_confirmation() {
    let site = Site::start(&Clock::system()).await;
    let (honest, between) = (certificates(), certificates());
    let link = Link::bind(Transport::Tls, Some(honest.server(&[]).unwrap())).await;
    let proxy = Proxy::bind(&between, honest.client().unwrap(), link.address()).await;
    let direct = Link::bind(Transport::Tls, Some(honest.server(&[]).unwrap())).await;
    site.offer(&[proxy.address(), direct.address()], &[]);
    let both = format!("{}{}", honest.ca_pem, between.ca_pem);

    let mut viewer = Viewer::start(trusting(&site, ClientTls::trusting(&both).unwrap()));
    let passing = proxy.pass_one();
    let lying = async {
        // This link does not look at the binder and lets everybody in.
        let mut conn = link.accept().await;
        let login = conn.login().await;
        let confirm = Some(conn.confirm());
        conn.let_in_with(&login, Path::Push, Resumed::Fresh, confirm).await;
        login
    };
    let (login, ()) = tokio::join!(lying, passing);
    let (conn, _) = direct.welcome(Path::Push).await;

    assert!(login.binder.is_some());
    assert_eq!(viewer.connected().await, direct.address().port);
    drop(conn);
}

fn trusting(site: &Site, tls: ClientTls) -> Options {
    let mut options = options(site, Path::Push);
    options.tls = Some(tls);
    options.transports = vec![Transport::Tls];
    options
}

/// Ends TLS on both sides and passes on what is said.
struct Proxy {
    listener: TcpListener,
    server: channel::ServerTls,
    client: ClientTls,
    link: Address,
}

impl Proxy {
    async fn bind(certificates: &DevCerts, client: ClientTls, link: Address) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let server = certificates.server(&[]).expect("a certificate");
        Self { listener, server, client, link }
    }

    fn address(&self) -> Address {
        address_of(self.listener.local_addr().expect("it is bound"), Transport::Tls)
    }

    /// Serves one connection until one side leaves.
    async fn pass_one(&self) {
        let passing = async {
            let (near, _) = self.listener.accept().await.expect("it accepts");
            let mut near = self.server.accept(near).await.expect("a handshake");
            let far = TcpStream::connect(self.link.authority()).await.expect("the link is there");
            let name = "127.0.0.1".try_into().expect("a name");
            let mut far = self.client.connector().connect(name, far).await.expect("a handshake");
            copy_bidirectional(&mut near, &mut far).await.ok();
        };
        tokio::time::timeout(STEP, passing).await.expect("one side leaves");
    }
}
