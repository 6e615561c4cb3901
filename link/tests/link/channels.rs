//! What protects a connection is agreed on, and nobody in between changes that unnoticed.

use bus::memory::Limits;
use channel::{ClientTls, DevCerts};
use proto::close::CloseCode;
use proto::frame::Hello;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{Client, Pipe};
use crate::world::{PATIENCE, World};

#[tokio::test]
async fn each_listener_says_what_its_channel_is() {
    let world = World::new().await;

    for (transport, suite) in
        [("tcp", "P"), ("tls", "T"), ("ws", "P"), ("wss", "T"), ("national", "G"), ("quic", "T")]
    {
        let client = world.enter(transport, "alice", "r").await;
        assert_eq!(client.suite, suite, "{transport}");
    }
}

#[tokio::test]
async fn a_client_of_national_suites_alone_gets_them_on_the_other_tls_listeners_too() {
    let world = World::new().await;
    let tls = world.national.client().unwrap();

    for transport in ["tls", "wss"] {
        let mut client = Client::connect_with(&world, transport, &tls).await.unwrap();
        client.login(&world.token(transport, "alice", "r"), "r").await.ok();
        assert_eq!(client.suite, "G", "{transport}");
    }
}

#[tokio::test]
async fn a_national_listener_serves_nothing_else_and_binds_logins() {
    let world = World::new().await;

    let other = Client::connect_with(&world, "national", &world.certs.client().unwrap()).await;
    assert!(other.is_err());
    for forged in [None, Some([7; 32])] {
        let mut client = world.connect("national").await;
        client.forged_binder = Some(forged);
        let answer = client.login(&world.token("national", "alice", "r"), "r").await;
        assert_eq!(answer.code(), CloseCode::BadBinder, "{forged:?}");
    }
}

#[tokio::test]
async fn an_offer_without_the_channel_or_a_common_version_is_refused() {
    let world = World::new().await;
    let suites = |words: &[&str]| words.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();

    for (transport, offered) in
        [("tls", suites(&["P", "G"])), ("national", suites(&["T"])), ("tcp", suites(&[]))]
    {
        let mut client = world.connect(transport).await;
        client.offer.suites = offered;
        assert_eq!(refused(&world, &mut client, transport).await, CloseCode::NoCommonVersion);
    }
    for (proto_min, proto_max) in [(2, 9), (0, 0), (9, 1)] {
        let mut client = world.connect("tls").await;
        client.offer = Hello { proto_min, proto_max, ..client.offer };
        assert_eq!(refused(&world, &mut client, "tls").await, CloseCode::NoCommonVersion);
    }
}

#[tokio::test]
async fn the_highest_common_version_is_chosen() {
    let world = World::new().await;
    let mut client = world.connect("tls").await;
    client.offer = Hello { proto_min: 0, proto_max: 9, ..client.offer };

    client.login(&world.token("tls", "alice", "r"), "r").await.ok();
}

#[tokio::test]
async fn an_offer_that_was_made_smaller_on_the_way_is_noticed() {
    let world = World::new().await;
    let shrink: [fn(&mut Hello); 4] = [
        |it| it.proto_max = 1,
        |it| it.suites = vec!["T".to_owned(), "G".to_owned()],
        |it| it.codecs.clear(),
        |it| it.sdk_version = "9.9".to_owned(),
    ];

    for (no, shrink) in shrink.into_iter().enumerate() {
        for transport in ["tls", "national"] {
            let mut client = world.connect(transport).await;
            client.offer.proto_max = 9;
            client.offer.codecs = vec!["zstd".to_owned()];
            let mut forged = client.offer.clone();
            shrink(&mut forged);
            client.forged_hello = Some(forged);
            assert_eq!(refused(&world, &mut client, transport).await, CloseCode::BadBinder, "{no}");
        }
    }
}

#[tokio::test]
async fn somebody_in_between_whom_the_client_believes_gets_no_session() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    for (transport, between) in [
        ("tls", DevCerts::load_or_create(folder.path(), &[]).unwrap()),
        ("national", DevCerts::load_or_create_national(folder.path(), &[]).unwrap()),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let passing = pass(&world, transport, &listener, &between);
        let token = world.token(transport, "alice", "r");
        let logging_in = async {
            let name = "127.0.0.1".try_into().unwrap();
            let connector = between.client().unwrap().connector();
            let stream = connector.connect(name, near).await.unwrap();
            let exporter = channel::exporter(stream.get_ref().1).unwrap();
            let mut client = Client::over(Pipe::Stream(Box::new(stream)), Some(exporter));
            client.login(&token, "r").await.code()
        };

        let both = async { tokio::join!(logging_in, passing) };
        let (code, ()) = tokio::time::timeout(PATIENCE, both).await.unwrap();

        assert_eq!(code, CloseCode::BadBinder, "{transport}");
        // The token was not used up: the viewer gets in by the straight way.
        world.connect(transport).await.login(&token, "r").await.ok();
    }
}

#[tokio::test]
async fn a_new_certificate_is_shown_while_old_sessions_go_on() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let renewed = DevCerts::load_or_create(folder.path(), &[]).unwrap();
    let mut old: Vec<Client> = Vec::new();
    for transport in ["tls", "wss", "quic"] {
        old.push(world.enter(transport, "alice", "r").await);
    }

    world.tls.replace(&renewed.chain_pem, &renewed.key_pem, world.clock.wall()).unwrap();

    for transport in ["tls", "wss", "quic"] {
        let stale = Client::connect_with(&world, transport, &world.certs.client().unwrap()).await;
        assert!(stale.is_err(), "{transport}: the old authority did not sign this one");
        let fresh = renewed.client().unwrap();
        let mut client = Client::connect_with(&world, transport, &fresh).await.unwrap();
        client.login(&world.token(transport, "bob", "r"), "r").await.ok();
    }
    for client in &mut old {
        client.lives().await;
    }
}

#[tokio::test]
async fn web_sockets_over_tls_speak_http_1_1_alone() {
    let world = World::new().await;
    let with = |alpn: &'static [u8]| world.certs.client().unwrap().with_alpn(&[alpn]);
    let connect = async |tls: ClientTls| Client::connect_with(&world, "wss", &tls).await;

    assert!(connect(with(b"http/1.1")).await.is_ok());
    assert!(connect(with(b"h2")).await.is_err());
}

async fn refused(world: &World, client: &mut Client, transport: &str) -> CloseCode {
    client.login(&world.token(transport, "alice", "r"), "r").await.code()
}

/// Ends TLS on both sides and passes on what is said, until one side leaves.
async fn pass(world: &World, transport: &str, listener: &TcpListener, between: &DevCerts) {
    let (near, _) = listener.accept().await.unwrap();
    let mut near = between.server(&[]).unwrap().accept(near).await.unwrap();
    let certs = if transport == "national" { &world.national } else { &world.certs };
    let far = TcpStream::connect(world.address(transport).authority()).await.unwrap();
    let name = "127.0.0.1".try_into().unwrap();
    let mut far = certs.client().unwrap().connector().connect(name, far).await.unwrap();
    copy_bidirectional(&mut near, &mut far).await.ok();
}

#[tokio::test]
async fn tls_stays_with_rustls_where_that_is_wanted() {
    let world = World::with(Limits::default(), |it| it.lean_tls = false).await;

    for transport in ["tls", "wss"] {
        let mut client = world.enter(transport, "alice", "r").await;
        client.lives().await;
        assert_eq!(client.suite, "T", "{transport}");
    }
}

#[tokio::test]
async fn a_tls_session_that_is_cut_is_counted_and_one_that_says_goodbye_is_not() {
    let world = World::new().await;
    let cuts = || world.metric("link_tls_faults_total{fault=\"cut\"}");

    let Pipe::Stream(mut stream) = world.enter("tls", "alice", "r").await.pipe else {
        panic!("TLS is a stream")
    };
    stream.shutdown().await.unwrap();
    world.until("an end", || world.metric("link_sessions") == 0).await;
    assert_eq!(cuts(), 0);

    drop(world.enter("tls", "alice", "r").await);
    world.until("a cut", || cuts() == 1).await;
}
