//! Wires between viewers and the link, which can be cut: one in front of every listener.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kit::seed::derive;
use kit::task::Tasks;
use stack::Config;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A link of the demonstration has a listener for each transport.
const LISTENERS_MAX: usize = 4;
/// Connections through one wire at a time: a crowd's on each transport.
const CONNECTIONS_MAX: usize = 4096;

/// Wires in front of a link's listeners, one for each of its transports.
#[derive(Debug)]
pub struct Wires {
    /// Where viewers connect, and where the link then listens.
    ends: Vec<(SocketAddr, SocketAddr)>,
    cuts: watch::Sender<u64>,
    connections: Arc<AtomicU64>,
    _tasks: Tasks,
}

impl Wires {
    /// Wires that carry to the same ports of another loopback address, drawn from `seed`.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn new(seed: u64) -> anyhow::Result<Self> {
        let (cuts, _) = watch::channel(0);
        let connections = Arc::new(AtomicU64::new(0));
        let mut tasks = Tasks::default();
        let [a, b, c, ..] = derive(seed, "wire").to_le_bytes();
        let behind = IpAddr::V4(Ipv4Addr::new(127, 1 + a % 254, b, 1 + c % 254));
        let mut ends = Vec::new();
        for _ in 0..LISTENERS_MAX {
            let wire = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let front = wire.local_addr()?;
            let link = SocketAddr::new(behind, front.port());
            ends.push((front, link));
            tasks.spawn("wire", carry(wire, link, cuts.clone(), Arc::clone(&connections)));
        }
        Ok(Self { ends, cuts, connections, _tasks: tasks })
    }

    /// Puts a wire in front of every listener of `config`: viewers get the wires' addresses.
    pub fn before(&self, config: &mut Config) {
        for (listener, &(front, link)) in config.link.listeners.iter_mut().zip(&self.ends) {
            listener.listen = link;
            listener.host = front.ip().to_string();
            listener.port = front.port();
        }
    }

    /// Cuts every connection, without a goodbye to either end.
    pub fn cut(&self) {
        self.cuts.send_modify(|it| *it += 1);
    }

    /// Connections that were ever made.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn carry(
    wire: TcpListener,
    link: SocketAddr,
    cuts: watch::Sender<u64>,
    connections: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    let mut tasks = Tasks::default();
    loop {
        let (viewer, _) = wire.accept().await?;
        tasks.reap()?;
        if tasks.len() >= CONNECTIONS_MAX {
            continue;
        }
        connections.fetch_add(1, Ordering::Relaxed);
        let mut cuts = cuts.subscribe();
        tasks.spawn("wire connection", async move {
            let work = join(viewer, link);
            tokio::select! {
                () = work => {}
                _ = cuts.changed() => {}
            }
            Ok(())
        });
    }
}

/// Carries bytes both ways until one end is gone. Dropping it resets both connections.
async fn join(mut viewer: TcpStream, link: SocketAddr) {
    let Ok(mut link) = TcpStream::connect(link).await else {
        return;
    };
    for end in [&viewer, &link] {
        if end.set_nodelay(true).and_then(|()| end.set_zero_linger()).is_err() {
            return;
        }
    }
    if let Err(error) = copy_bidirectional(&mut viewer, &mut link).await {
        tracing::debug!(%error, "a wire broke");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_wire_carries_until_it_is_cut() {
        let mut config = Config::demo(std::path::Path::new("unused"));
        let wires = Wires::new(7).await.unwrap();
        wires.before(&mut config);
        let listener = &config.link.listeners[0];
        let link = TcpListener::bind(listener.listen).await.unwrap();

        let mut viewer = TcpStream::connect((&*listener.host, listener.port)).await.unwrap();
        viewer.write_all(b"hello").await.unwrap();
        let (mut session, _) = link.accept().await.unwrap();
        let mut hello = [0; 5];
        session.read_exact(&mut hello).await.unwrap();
        assert_eq!(&hello, b"hello");
        wires.cut();

        assert!(session.read_exact(&mut hello).await.is_err());
        assert!(viewer.read_exact(&mut hello).await.is_err());
        assert_eq!(wires.connections(), 1);
    }
}
