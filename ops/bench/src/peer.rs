//! Somebody else's server, measured in the same run.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use kit::clock::Clock;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// It must take connections within this time.
const START_MAX: Duration = Duration::from_secs(10);
/// Between two attempts.
const RETRY: Duration = Duration::from_millis(20);

/// A running peer; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    /// What to call it.
    pub(crate) name: &'static str,
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    process: Child,
}

impl Peer {
    /// Starts a peer in `folder` that will listen at `addr`; `None` where it is not installed.
    pub(crate) async fn start(
        name: &'static str,
        mut command: Command,
        addr: SocketAddr,
        folder: &Path,
        clock: &Clock,
    ) -> anyhow::Result<Option<Self>> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = match command.current_dir(folder).kill_on_drop(true).spawn() {
            Ok(process) => process,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot start {name}")),
        };
        let mut peer = Self { name, addr, process };
        peer.is_up(clock).await?;
        Ok(Some(peer))
    }

    /// The CPU time that all its threads have used.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let pid = self.process.id().context("the peer has ended")?;
        let mut on_cpu_ns = 0;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = fs::read_to_string(thread?.path().join("schedstat"))?;
            let ns: Option<u64> = text.split(' ').next().and_then(|it| it.parse().ok());
            on_cpu_ns += ns.context("/proc has no CPU time of the peer")?;
        }
        Ok(Duration::from_nanos(on_cpu_ns))
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

/// What nginx is given, with `server` as the content of its one server: one process that does
/// everything itself.
pub(crate) fn nginx(folder: &Path, server: &str) -> anyhow::Result<Command> {
    nginx_with(folder, "", 4096, server)
}

/// The same with a line above all, and for so many connections.
pub(crate) fn nginx_with(
    folder: &Path,
    line: &str,
    connections_max: u32,
    server: &str,
) -> anyhow::Result<Command> {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|it| format!("{it}_temp_path {it};\n"))
        .concat();
    let config = format!(
        "{line}\ndaemon off; master_process off; pid nginx.pid; error_log stderr crit;\n\
         events {{ worker_connections {connections_max}; }}\n\
         http {{\n{temporary}access_log off;\nserver {{\n{server}\n}} }}\n"
    );
    fs::write(folder.join("nginx.conf"), config)?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).args(["-c", "nginx.conf", "-e", "stderr"]);
    Ok(command)
}

/// A file in the folder of tools, where `ops/tools` puts what is not Debian's.
pub(crate) fn tool(path: &str) -> PathBuf {
    let tools = std::env::var_os("BARRAGE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools"),
        PathBuf::from,
    );
    tools.join(path)
}

/// Another program cannot be asked which port it took.
pub(crate) fn free_addr() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// A word to whoever started the benchmark.
#[expect(clippy::print_stderr, reason = "a word to whoever started the benchmark")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}
