//! One connection that stalls.

use std::time::Duration;

use drill::knock::knock;
use kit::clock::Clock;
use proto::address::Transport;
use proto::enter::Offer;
use proto::frame::{Uplink, prefixed};
use proto::id::RoomId;
use proto::suite::Suite;
use rand::RngExt;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Between two bytes.
const DRIP: Duration = Duration::from_millis(400);
/// Pause before the next connection. It differs: a link ends connections once a second, and those
/// of all attackers at once would be a rush, which is another attack.
const PAUSE_MS: std::ops::Range<u64> = 0..500;

/// Where a session stalls.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// A connection that says nothing.
    Silent,
    /// A TLS handshake, byte by byte.
    Tls,
    /// The head of an upgrade to WebSocket, byte by byte.
    Upgrade,
    /// The first frame, byte by byte.
    Hello,
    /// A message before the login, in fragments of one byte.
    Fragments,
    /// A frame after the login, byte by byte.
    Open,
}

impl Phase {
    pub(super) const ALL: [Self; 6] =
        [Self::Silent, Self::Tls, Self::Upgrade, Self::Hello, Self::Fragments, Self::Open];

    pub(super) const fn transport(self) -> Transport {
        match self {
            Self::Silent | Self::Hello | Self::Open => Transport::Tcp,
            Self::Tls => Transport::Tls,
            Self::Upgrade | Self::Fragments => Transport::Ws,
        }
    }
}

/// An attacker.
pub(super) struct Attacker {
    pub(super) clock: Clock,
    pub(super) room: RoomId,
    pub(super) phase: Phase,
    pub(super) offer: Offer,
    pub(super) rng: SmallRng,
}

impl Attacker {
    /// Stalls, and comes again when the link has ended it. What becomes of its connection is the
    /// link's business.
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        if self.phase == Phase::Open {
            self.stall_in_room().await.ok();
            return Ok(());
        }
        loop {
            self.stall().await.ok();
            let pause = Duration::from_millis(self.rng.random_range(PAUSE_MS));
            self.clock.sleep(pause).await;
        }
    }

    async fn stall(&self) -> std::io::Result<()> {
        let mut tcp = TcpStream::connect(self.offer.address.authority()).await?;
        match self.phase {
            Phase::Silent => {}
            // A record, and in it the beginning of a ClientHello of 508 bytes.
            Phase::Tls => {
                let begun = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
                self.drip(&mut tcp, &mut begun.into_iter().chain(std::iter::repeat(0))).await?;
            }
            Phase::Upgrade => {
                let head = b"GET / HTTP/1.1\r\nHost: localhost\r\n".iter();
                let more = b"X-Header: value\r\n".iter().cycle();
                self.drip(&mut tcp, &mut head.chain(more).copied()).await?;
            }
            Phase::Hello => {
                let hello = Uplink::Hello(sdk::hello::hello(&[Suite::Plain], 1)).encode();
                self.drip(&mut tcp, &mut prefixed(&hello).iter().copied()).await?;
            }
            Phase::Fragments => {
                upgrade(&mut tcp).await?;
                // The first of a binary message, then pieces of one byte; the mask is zeros.
                tcp.write_all(&[0x02, 0x81, 0, 0, 0, 0, 1]).await?;
                loop {
                    self.clock.sleep(DRIP).await;
                    tcp.write_all(&[0x00, 0x81, 0, 0, 0, 0, 0]).await?;
                }
            }
            Phase::Open => {}
        }
        tcp.read_u8().await.map(drop)
    }

    /// Writes a byte now and then, until there are none or the link has hung up.
    async fn drip(
        &self,
        tcp: &mut TcpStream,
        bytes: &mut impl Iterator<Item = u8>,
    ) -> std::io::Result<()> {
        for byte in bytes {
            tcp.write_all(&[byte]).await?;
            self.clock.sleep(DRIP).await;
        }
        Ok(())
    }

    /// Logs in, and announces a long frame that never ends.
    async fn stall_in_room(&self) -> anyhow::Result<()> {
        let (mut raw, _) = knock(&self.offer, &self.room).await?;
        raw.send_bytes(60_000_u32.to_be_bytes().to_vec().into()).await?;
        loop {
            raw.send_bytes(vec![0].into()).await?;
            self.clock.sleep(DRIP).await;
        }
    }
}

async fn upgrade(tcp: &mut TcpStream) -> std::io::Result<()> {
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Version: 13\r\n\r\n";
    tcp.write_all(request).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if tcp.read_buf(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}
