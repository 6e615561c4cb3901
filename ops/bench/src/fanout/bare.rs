//! The peer: the bare system call.

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use proto::address::{Address, Carrier, Transport};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::cpu;

/// All receivers must have connected within this time.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// Sockets without anything around them.
#[derive(Debug)]
pub(super) struct Bare {
    listener: TcpListener,
    sockets: Vec<TcpStream>,
}

impl Bare {
    pub(super) async fn listen() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self { listener, sockets: Vec::new() })
    }

    pub(super) fn address(&self) -> anyhow::Result<Address> {
        Ok(Address {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: self.listener.local_addr()?.port(),
            transport: Transport::Tcp,
            carrier: Carrier::default(),
            machine_room: String::new(),
        })
    }

    /// Takes so many receivers in.
    pub(super) async fn accept(&mut self, sockets: usize) -> anyhow::Result<()> {
        let accepting = async {
            while self.sockets.len() < sockets {
                let (socket, _) = self.listener.accept().await?;
                socket.set_nodelay(true)?;
                self.sockets.push(socket.into_std()?);
            }
            anyhow::Ok(())
        };
        timeout(CONNECT_MAX, accepting).await.context("the receivers did not connect")?
    }

    /// Writes the bytes to every socket, and says what CPU time that took.
    ///
    /// The sockets do not block, and have room: their receivers have all that was written before.
    pub(super) fn write(&self, bytes: &[u8]) -> anyhow::Result<Duration> {
        let start = cpu::thread();
        for mut socket in &self.sockets {
            let written = socket.write(bytes)?;
            ensure!(written == bytes.len(), "a socket took {written} of {} bytes", bytes.len());
        }
        Ok(cpu::thread() - start)
    }
}
