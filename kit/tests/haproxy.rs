//! The server behind HAProxy, which says in PROXY headers whose connections it passes on.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use kit::http::{Limits, Plain, Server};
use kit::meter::Meter;
use kit::task::Tasks;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Any wait for something that will happen.
const DEADLINE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn behind_haproxy_a_client_has_its_own_address() {
    let world = World::start("send-proxy-v2").await;
    let ipv4 = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 77), 0));
    let ipv6 = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));

    for from in [ipv4, ipv6] {
        let (client, answer) = world.ask(from).await;

        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.ends_with(&client.to_string()), "{client}: {answer}");
    }
}

#[tokio::test]
async fn a_header_of_version_1_is_refused() {
    let world = World::start("send-proxy").await;

    let (_, answer) = world.ask(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await;

    assert_eq!(answer, "");
    world.until("http_connections_ended_total{service=\"test\",why=\"proxy_header\"} 1").await;
}

/// A server that says who asks, and HAProxy in front of it.
struct World {
    meter: Meter,
    ipv4: SocketAddr,
    ipv6: SocketAddr,
    _haproxy: Child,
    _folder: TempDir,
    _tasks: Tasks,
}

impl World {
    async fn start(how: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server_addr = listener.local_addr().unwrap();
        let meter = Meter::new();
        let mut tasks = Tasks::default();
        let server = serve(listener, meter.clone());
        tasks.spawn("server", server);

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("haproxy.cfg");
        let (ipv4, ipv6) = (free_addr(own_ip()), free_addr(Ipv6Addr::LOCALHOST));
        let (ipv4, ipv6) = (ipv4.await, ipv6.await);
        // A refused header counts as a failed connection where the refusal is seen at once.
        let config = format!(
            "defaults\n mode tcp\n retries 0\n timeout connect 20s\n timeout client 20s\n timeout server 20s\n\
             listen test\n bind {ipv4}\n bind {ipv6}\n server server {server_addr} {how}\n"
        );
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&file).stdout(Stdio::null()).kill_on_drop(true);
        let haproxy = command.spawn().expect("haproxy is missing: run ops/tools/install");
        Self { meter, ipv4, ipv6, _haproxy: haproxy, _folder: folder, _tasks: tasks }
    }

    /// The client's address, and what the server says to it.
    async fn ask(&self, from: SocketAddr) -> (SocketAddr, String) {
        let to = if from.is_ipv4() { self.ipv4 } else { self.ipv6 };
        let mut stream = connect(from, to).await;
        let request = b"GET /peer HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        // A reset counts as an end.
        let read = stream.read_to_end(&mut answer);
        tokio::time::timeout(DEADLINE, read).await.unwrap().ok();
        (stream.local_addr().unwrap(), String::from_utf8(answer).unwrap())
    }

    /// Until this line is among the metrics.
    async fn until(&self, line: &str) {
        look_until(async || self.meter.render().contains(line).then_some(())).await;
    }
}

/// Looks every few milliseconds.
async fn look_until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        let mut timer = tokio::time::interval(Duration::from_millis(20));
        loop {
            timer.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.unwrap()
}

async fn serve(listener: TcpListener, meter: Meter) -> anyhow::Result<()> {
    let peer = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
    let router = Router::new().route("/peer", get(peer));
    let proxies = ["127.0.0.0/8".parse()?].into_iter().collect();
    let server = Server::new(Limits::default(), &meter, "test").behind(proxies);
    server.serve(listener, Plain, router, CancellationToken::new()).await
}

/// Connects once somebody listens.
async fn connect(from: SocketAddr, to: SocketAddr) -> TcpStream {
    look_until(async || {
        let socket = if from.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.unwrap();
        socket.bind(from).unwrap();
        socket.connect(to).await.ok()
    })
    .await
}

/// An address of loopback that no other process takes ports of meanwhile.
fn own_ip() -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

/// Another program cannot be asked which port it took.
async fn free_addr(ip: impl Into<IpAddr>) -> SocketAddr {
    TcpListener::bind((ip.into(), 0)).await.unwrap().local_addr().unwrap()
}
