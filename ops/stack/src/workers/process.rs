//! One worker process, as its supervisor has it.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use auth_core::secret::Secret;
use bus::remote::{Ports, serve};
use kit::task::Tasks;
use link::workers::{Relay, Worker};
use proto::address::Address;
use proto::time::Wall;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout, Command};

use super::worker::NAME;
use crate::config::Config;

/// A worker listens within this time.
const START_MAX: Duration = Duration::from_secs(30);
/// Bytes of orders: a configuration.
const ORDERS_BYTES_MAX: usize = 1 << 20;

/// What a worker is told first.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Orders {
    /// Its own. Configurations do not print their secrets, so there is none in it.
    pub(super) config: Config,
    /// The link's.
    secret: String,
    /// Which it is, of how many, and when the node began.
    worker: (u8, u8, Wall),
}

/// What a worker says, one JSON object a line.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// It listens. Said once, first.
    Bound(Bound),
    /// It can do its job.
    Ready,
    /// It cannot.
    NotReady(String),
}

/// Where a worker listens.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Bound {
    /// Where viewers connect.
    pub(super) addresses: Vec<Address>,
    /// The ports of its listeners.
    pub(super) ports: Vec<u16>,
    /// Metrics and health.
    pub(super) admin: SocketAddr,
}

impl Orders {
    /// For the worker with this number, which reports to `relay`.
    pub(super) fn new(config: &Config, no: u8, relay: &Relay) -> anyhow::Result<Self> {
        let secret = config.link.secret.expose().to_owned();
        let mut config = config.clone();
        config.link = config.link.of_worker(no, relay.start())?;
        config.link.collectors = vec![relay.addr().to_string()];
        let port = config.admin.listen.port();
        if port != 0 {
            let port =
                port.checked_add(u16::from(no) + 1).context("no port for a worker's admin")?;
            config.admin.listen.set_port(port);
        }
        let worker = (no, config.link.workers, relay.start());
        Ok(Self { config, secret, worker })
    }

    /// With the ports that a process was given, so that the next one has them, too: addresses
    /// outlive a worker.
    pub(super) fn fixed(mut self, process: &Process) -> Self {
        let Bound { ports, admin, .. } = process.bound();
        for (listener, &port) in self.config.link.listeners.iter_mut().zip(ports) {
            listener.listen.set_port(port);
        }
        self.config.admin.listen = *admin;
        self
    }

    /// Reads them from the start of a connection.
    pub(super) async fn read(stream: &mut UnixStream) -> anyhow::Result<Config> {
        let bytes = usize::try_from(stream.read_u32().await?)?;
        anyhow::ensure!(bytes <= ORDERS_BYTES_MAX, "the orders are too long");
        let mut text = vec![0; bytes];
        stream.read_exact(&mut text).await?;
        let Self { mut config, secret, worker: (no, workers, node_start) } =
            serde_json::from_slice(&text)?;
        config.link.secret = Secret::new(secret);
        config.link.worker = Some(Worker { no, workers, node_start });
        Ok(config)
    }

    async fn write(&self, stream: &mut UnixStream) -> anyhow::Result<()> {
        let text = serde_json::to_vec(self)?;
        stream.write_u32(u32::try_from(text.len())?).await?;
        Ok(stream.write_all(&text).await?)
    }
}

/// A running worker. It is killed when this is dropped.
pub(super) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    bound: Bound,
    /// Serves its bus.
    serving: Tasks,
}

/// What a worker did.
pub(super) enum Event {
    /// It can do its job, or says why not.
    Ready(Result<(), String>),
    /// It has ended.
    Ended(ExitStatus),
}

impl Process {
    /// Starts a worker, and waits until it listens.
    pub(super) async fn start(
        program: &Path,
        orders: &Orders,
        ports: &Ports,
    ) -> anyhow::Result<Self> {
        let (near, far) = std::os::unix::net::UnixStream::pair()?;
        near.set_nonblocking(true)?;
        let mut near = UnixStream::from_std(near)?;
        let mut child = Command::new(program)
            .arg(NAME)
            .stdin(Stdio::from(OwnedFd::from(far)))
            .stdout(Stdio::piped())
            // Ctrl-C is for the supervisor, which tells its workers.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let output = child.stdout.take().context("the worker has no output")?;
        let mut lines = BufReader::new(output).lines();
        let started = tokio::time::timeout(START_MAX, async {
            orders.write(&mut near).await?;
            let mut serving = Tasks::default();
            let ports = ports.clone();
            serving.spawn("worker bus", async move { Ok(serve(near, ports).await?) });
            let line = lines.next_line().await?.context("it ended before it listened")?;
            match serde_json::from_str(&line)? {
                Said::Bound(bound) => Ok((serving, bound)),
                Said::Ready | Said::NotReady(_) => bail!("it does not say where it listens"),
            }
        });
        let started = started.await.context("it does not listen in time").flatten();
        let (serving, bound) =
            started.with_context(|| format!("worker {} did not start", orders.worker.0))?;
        Ok(Self { child, lines, bound, serving })
    }

    pub(super) const fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Waits for something to happen. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                line = self.lines.next_line() => match said(line) {
                    Some(Said::Ready) => return Event::Ready(Ok(())),
                    Some(Said::NotReady(why)) => return Event::Ready(Err(why)),
                    Some(Said::Bound(_)) => {}
                    None => return Event::Ended(self.end().await),
                },
                // It has let go of its bus, or must: its input ends with this task.
                Some(ended) = self.serving.next() => if let Err(error) = ended {
                    tracing::warn!(error = format!("{error:#}"), "a worker is cut off the bus");
                },
            }
        }
    }

    /// Asks it to drain.
    pub(super) fn tell_end(&self) {
        let pid = self.child.id().and_then(|it| Pid::from_raw(it.try_into().ok()?));
        if let Some(pid) = pid
            && let Err(error) = kill_process(pid, Signal::TERM)
        {
            tracing::warn!(%error, "a worker cannot be told to end");
        }
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        if let Err(error) = self.child.start_kill() {
            tracing::warn!(%error, "a worker cannot be killed");
        }
    }

    /// Its output has ended, which it does last.
    async fn end(&mut self) -> ExitStatus {
        match self.child.wait().await {
            Ok(status) => status,
            Err(error) => {
                tracing::warn!(%error, "it is not known how a worker ended");
                ExitStatus::default()
            }
        }
    }
}

/// None at the end of a worker's output, or where it makes no sense.
fn said(line: std::io::Result<Option<String>>) -> Option<Said> {
    serde_json::from_str(&line.ok().flatten()?).ok()
}
