//! Viewers get addresses on their own carrier's network, in their own region.

use std::net::{IpAddr, SocketAddr};

use gslb::Config;
use gslb::place::Region;
use proto::address::Carrier;
use proto::enter::{BatchRequest, BatchResponse, Client, EnterRequest, EnterResponse};
use proto::id::NodeId;
use proto::load::LoadReport;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use crate::world::{APP, World, api_key, node_of, ticket};

const SYSTEMS: &str = "1.2.0.0,1.2.255.255,4134,x\n1.3.0.0,1.3.255.255,4837,x\n";
const COUNTRIES: &str = "1.0.0.0,1.255.255.255,CN\n2.0.0.0,2.255.255.255,JP\n";

#[tokio::test]
async fn the_first_address_is_on_the_viewers_network_and_in_the_viewers_region() {
    let files = Files::new();
    let world = World::start_with(|it| files.put_into(it)).await;
    let _links = [
        world.link_that(2, |it| set(it, "local", Carrier::Telecom)).await,
        world.link_that(3, |it| set(it, "local", Carrier::Unicom)).await,
        world.link_that(4, |it| set(it, "local", Carrier::Bgp)).await,
        world.link_that(5, |it| set(it, "east", Carrier::Bgp)).await,
    ];
    world.ready().await;
    world.until(async || world.count(r#"gslb_nodes{state="taking"}"#) == 4).await;

    let first = async |text: &str| {
        let ip: IpAddr = text.parse().unwrap();
        let client = Client { ip: Some(ip), ..Client::default() };
        let request = EnterRequest { ticket: ticket("v"), client, ..EnterRequest::default() };
        let post = world.post(serde_json::to_vec(&request).unwrap()).bearer_auth(api_key(APP));
        let answer: EnterResponse = post.send().await.unwrap().json().await.unwrap();
        node_of(&answer.addresses[0].address)
    };

    assert_eq!(first("1.2.3.4").await, NodeId(2));
    assert_eq!(first("::ffff:1.3.3.4").await, NodeId(3));
    assert_eq!(first("1.4.0.1").await, NodeId(4));
    assert_eq!(first("2.0.0.1").await, NodeId(5));
    assert_eq!(first("2400::1").await, NodeId(4));
    assert_eq!(world.answers(r#"carrier="telecom""#), 1);
    assert_eq!(world.answers(r#"carrier="unicom""#), 1);
}

#[tokio::test]
async fn a_batch_has_the_bases_of_the_region_that_all_its_viewers_are_in() {
    let files = Files::new();
    let world = World::start_with(|it| {
        files.put_into(it);
        it.segments.resize_with(2, Default::default);
        (it.segments[0].base, it.segments[0].weight) = ("https://any.example".to_owned(), 3);
        (it.segments[1].base, it.segments[1].weight) = ("https://east.example".to_owned(), 1);
        it.segments[1].region = "east".to_owned();
    });
    let world = world.await;
    let firsts = async |viewers: [&str; 2]| {
        let of = |ip: &str| Client { ip: Some(ip.parse().unwrap()), ..Client::default() };
        let of = |ip| EnterRequest { ticket: ticket("v"), client: of(ip), ..Default::default() };
        let body = serde_json::to_vec(&BatchRequest { requests: viewers.map(of).into() }).unwrap();
        let post = world.client.post(world.url("/v1/enter:batch")).bearer_auth(api_key(APP));
        let batch: BatchResponse = post.body(body).send().await.unwrap().json().await.unwrap();
        batch.segments.into_iter().map(|it| it.base).next()
    };
    world.until(async || firsts(["2.0.0.1", "2.0.0.2"]).await.is_some()).await;

    let together = firsts(["2.0.0.1", "2.0.0.2"]).await;
    let apart = firsts(["2.0.0.1", "1.2.3.4"]).await;

    assert_eq!(together.as_deref(), Some("https://east.example"));
    assert_eq!(apart.as_deref(), Some("https://any.example"));
}

#[tokio::test]
async fn behind_a_proxy_that_writes_headers_the_viewer_counts() {
    let files = Files::new();
    let world = World::start_with(|it| {
        files.put_into(it);
        it.trusted_hops = 1;
    });
    let world = world.await;
    let _link = world.link(2).await;
    world.ready().await;
    let request = EnterRequest { ticket: ticket("v"), ..EnterRequest::default() };

    let post = world.post(serde_json::to_vec(&request).unwrap());
    let response = post.header("x-forwarded-for", "6.6.6.6, 1.2.3.4").send().await.unwrap();

    assert_eq!(response.status(), 200);
    assert_eq!(world.answers(r#"carrier="telecom""#), 1);
}

#[tokio::test]
async fn behind_a_proxy_that_passes_tcp_on_the_viewer_counts() {
    /// From 1.2.3.4.
    const HEADER: &[u8] =
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x7f\0\0\x01\x04\xd2\x01\xbb";
    let files = Files::new();
    let world = World::start_with(|it| {
        files.put_into(it);
        it.trusted_proxies = ["127.0.0.77/32".parse().unwrap()].into_iter().collect();
    });
    let world = world.await;
    let _link = world.link(2).await;
    world.ready().await;
    let request = EnterRequest { ticket: ticket("v"), ..EnterRequest::default() };
    let body = serde_json::to_string(&request).unwrap();

    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 77], 0))).unwrap();
    let mut stream = socket.connect(world.gslb).await.unwrap();
    let head = format!(
        "POST /v1/enter HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[HEADER, head.as_bytes(), body.as_bytes()].concat()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();

    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(world.answers(r#"carrier="telecom""#), 1);
}

/// China is `local`, which is the default, and Japan is `east`.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("asn.csv"), SYSTEMS).unwrap();
        std::fs::write(folder.path().join("country.csv"), COUNTRIES).unwrap();
        Self(folder)
    }

    fn put_into(&self, config: &mut Config) {
        config.place.files = ["asn.csv", "country.csv"].map(|it| self.0.path().join(it)).into();
        config.place.regions =
            vec![Region { name: "east".to_owned(), places: vec!["JP".to_owned()] }];
    }
}

fn set(report: &mut LoadReport, region: &str, carrier: Carrier) {
    region.clone_into(&mut report.region);
    report.addresses.iter_mut().for_each(|it| it.carrier = carrier);
}
