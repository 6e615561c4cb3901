//! Somebody else's server with the same certificate, measured in the same run.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use kit::clock::Clock;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::certificate::{Certificate, Kind};

/// It must take connections within this time.
const START_MAX: Duration = Duration::from_secs(10);
/// Between two attempts.
const RETRY: Duration = Duration::from_millis(20);

/// A running peer of one thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Peer {
    /// What to call it.
    pub(super) name: &'static str,
    /// Where it listens.
    pub(super) addr: SocketAddr,
    process: Child,
}

impl Peer {
    /// Starts the peer of that kind of certificate. None, with a word on how to get it, where it
    /// is not installed.
    pub(super) async fn start(
        certificate: &Certificate,
        clock: &Clock,
    ) -> anyhow::Result<Option<Self>> {
        let addr = free_addr()?;
        let (name, mut command, missing) = match certificate.kind {
            Kind::P256 | Kind::Ed25519 | Kind::Rsa2048 => {
                ("nginx", nginx(certificate, addr)?, "apt-get install nginx")
            }
            Kind::Sm2 => ("openssl s_server", s_server(certificate, addr), "run ops/tools/install"),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = match command.current_dir(certificate.folder()).kill_on_drop(true).spawn() {
            Ok(process) => process,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                note(&format!("{} has no peer: {missing}", certificate.kind.line()));
                return Ok(None);
            }
            Err(error) => return Err(error).with_context(|| format!("cannot start {name}")),
        };
        let mut peer = Self { name, addr, process };
        peer.is_up(clock).await?;
        Ok(Some(peer))
    }

    /// The CPU time that it has used.
    pub(super) fn cpu(&self) -> anyhow::Result<Duration> {
        let pid = self.process.id().context("the peer has ended")?;
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
        let on_cpu_ns = text.split(' ').next().and_then(|it| it.parse().ok());
        Ok(Duration::from_nanos(on_cpu_ns.context("/proc has no CPU time of the peer")?))
    }

    async fn is_up(&mut self, clock: &Clock) -> anyhow::Result<()> {
        let deadline = clock.mono() + START_MAX;
        while TcpStream::connect(self.addr).await.is_err() {
            if let Some(status) = self.process.try_wait()? {
                bail!("{} ended at once: {status}", self.name);
            }
            if clock.mono() >= deadline {
                bail!("{} takes no connections", self.name);
            }
            clock.sleep(RETRY).await;
        }
        Ok(())
    }
}

/// One process that does everything itself.
fn nginx(certificate: &Certificate, addr: SocketAddr) -> anyhow::Result<Command> {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|it| format!("{it}_temp_path {it};\n"))
        .concat();
    let config = format!(
        "daemon off; master_process off; pid nginx.pid; error_log stderr crit;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n{temporary}access_log off;\nserver {{\n\
         listen {addr} ssl backlog=1024;\n\
         ssl_protocols TLSv1.3; ssl_certificate chain.pem; ssl_certificate_key key.pem;\n\
         return 204;\n}} }}\n"
    );
    fs::write(certificate.folder().join("nginx.conf"), config)?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(certificate.folder()).args(["-c", "nginx.conf", "-e", "stderr"]);
    Ok(command)
}

/// One connection after the other; each line comes back reversed.
fn s_server(certificate: &Certificate, addr: SocketAddr) -> Command {
    let mut command = Command::new(openssl4());
    command.args(["s_server", "-rev", "-tls1_3", "-ciphersuites", "TLS_SM4_GCM_SM3"]);
    command.args(["-groups", "curveSM2", "-sigalgs", "sm2sig_sm3", "-accept", &addr.to_string()]);
    command.arg("-cert").arg(certificate.chain()).arg("-key").arg(certificate.key());
    command
}

/// Where `ops/tools/install` puts it.
fn openssl4() -> PathBuf {
    let tools = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools"),
        PathBuf::from,
    );
    tools.join("openssl4/bin/openssl")
}

/// Another program cannot be asked which port it took.
fn free_addr() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

#[expect(clippy::print_stderr, reason = "a word to whoever started the benchmark")]
fn note(text: &str) {
    eprintln!("{text}");
}
