//! A proxy in front of a link, which runs as the sample of its configuration says.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;

use crate::client::{Client, Pipe, secure};
use crate::world::{PATIENCE, World};

const HAPROXY: &str = include_str!("../../../../ops/deploy/haproxy.links.cfg");
const NGINX: &str = include_str!("../../../../ops/deploy/nginx.links.conf");

/// From where the proxies connect to the link, so that they differ from everybody else here.
pub(crate) const PROXY: Ipv4Addr = Ipv4Addr::new(127, 9, 9, 9);

/// A running proxy.
pub(crate) struct Site {
    pub(crate) ways: Vec<Way>,
    _process: Child,
    _folder: TempDir,
}

/// A way through a proxy.
pub(crate) struct Way {
    addr: SocketAddr,
    /// The link's listener at its end.
    pub(crate) transport: &'static str,
}

impl Site {
    pub(crate) fn haproxy(world: &World) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let live = folder.path().join("live.pem");
        std::fs::write(&live, format!("{}{}", world.certs.chain_pem, world.certs.key_pem)).unwrap();
        let mut config = Sample::of(HAPROXY);
        config.put("defaults\n", &format!("defaults\n    source {PROXY}\n"));
        config.put("/etc/haproxy/live.pem", live.to_str().unwrap());
        let ways = [("tls", 7443, 7403), ("tcp", 7444, 7401), ("ws", 7445, 7402)];
        let ways = ways.map(|(transport, from, to)| config.lead(world, transport, from, to));
        let file = config.write(folder.path(), "haproxy.cfg");
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(file);
        Self::start(command, folder, ways.into())
    }

    pub(crate) fn nginx(world: &World) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(own("chain.pem"), &world.certs.chain_pem).unwrap();
        std::fs::write(own("key.pem"), &world.certs.key_pem).unwrap();
        let mut config = Sample::of(NGINX);
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let folders = folders.map(|it| format!("    {it}_temp_path {it};\n")).concat();
        config.put("http {\n", &format!("http {{\n{folders}    proxy_bind {PROXY};\n"));
        let process = "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr crit;\n";
        config.put("events {", &format!("{process}events {{"));
        config.put("/etc/nginx/live.chain.pem", &own("chain.pem"));
        config.put("/etc/nginx/live.key.pem", &own("key.pem"));
        let way = config.lead(world, "ws", 7446, 7402);
        let file = config.write(folder.path(), "nginx.conf");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).arg("-c").arg(file).args(["-e", "stderr"]);
        Self::start(command, folder, vec![way])
    }

    fn start(mut command: Command, folder: TempDir, ways: Vec<Way>) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let process = command.spawn().expect("nginx or haproxy is missing: run ops/tools/install");
        Self { ways, _process: process, _folder: folder }
    }
}

impl Way {
    /// A client of that page, from an address of loopback. It also says that it is somebody else.
    pub(crate) async fn connect(
        &self,
        world: &World,
        from: Ipv4Addr,
        origin: &'static str,
    ) -> io::Result<Client> {
        let tcp = self.dial(from).await;
        let (stream, exporter) = secure(&world.certs.client().unwrap(), tcp).await?;
        match self.transport {
            "ws" => {
                let mut request = "ws://127.0.0.1/".into_client_request().unwrap();
                let headers = request.headers_mut();
                headers.insert("origin", HeaderValue::from_static(origin));
                headers.insert("x-forwarded-for", HeaderValue::from_static("192.0.2.99"));
                let opened = tokio_tungstenite::client_async(request, stream).await;
                let (socket, _) = opened.map_err(io::Error::other)?;
                Ok(Client::over(Pipe::WebSocket(Box::new(socket)), None))
            }
            "tls" => Ok(Client::over(Pipe::Stream(stream), exporter)),
            // TLS ends before the link.
            _ => Ok(Client::over(Pipe::Stream(stream), None)),
        }
    }

    /// Connects once the proxy listens.
    async fn dial(&self, from: Ipv4Addr) -> TcpStream {
        let dialled = tokio::time::timeout(PATIENCE, async {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            loop {
                ticks.tick().await;
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind((from, 0).into()).unwrap();
                if let Ok(stream) = socket.connect(self.addr).await {
                    return stream;
                }
            }
        });
        dialled.await.expect("the proxy does not listen")
    }
}

/// A sample of a configuration while it is fitted to a test.
struct Sample(String);

impl Sample {
    fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    fn put(&mut self, old: &str, new: &str) {
        assert!(self.0.contains(old), "the sample has no {old:?}");
        self.0 = self.0.replace(old, new);
    }

    /// Leads viewers of the proxy's port to this listener of the link.
    fn lead(&mut self, world: &World, transport: &'static str, from: u16, to: u16) -> Way {
        let addr = free_addr();
        let listens = [("bind :", format!("bind {addr}")), ("listen ", format!("listen {addr}"))];
        let known = |it: &&(&str, String)| self.0.contains(&format!("{}{from}", it.0));
        let (word, new) = listens.iter().find(known).expect("the sample listens there");
        self.put(&format!("{word}{from}"), new);
        self.put(&format!("127.0.0.1:{to}"), &world.address(transport).authority());
        Way { addr, transport }
    }

    fn write(self, folder: &Path, name: &str) -> PathBuf {
        let file = folder.join(name);
        std::fs::write(&file, self.0).unwrap();
        file
    }
}

/// One that no other process takes meanwhile. Another program cannot be asked which port it took.
fn free_addr() -> SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    let ip = Ipv4Addr::new(127, 1, high, low);
    TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap()
}
