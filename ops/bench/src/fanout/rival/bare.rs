//! The bare system call: one `write` a subscriber, from one thread. What the kernel costs whatever
//! the design.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use super::{BARE, Step, Ways, item};

/// Where it listens, in its environment.
const LISTEN_ENV: &str = "BENCH_BARE_LISTEN";
/// First word of a subscriber, and the answer.
const SUBSCRIBE: u8 = b's';
/// First word of the publisher.
const PUBLISH: u8 = b'p';
/// Whoever connects says what it is within this time.
const WORD_MAX: Duration = Duration::from_secs(10);

pub(super) fn ways(addr: SocketAddr) -> anyhow::Result<Ways> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", BARE]).env(LISTEN_ENV, addr.to_string());
    Ok(Ways {
        command,
        subscribe: vec![Step::new([SUBSCRIBE], [SUBSCRIBE])],
        enter: vec![Step::new([PUBLISH], [])],
        publish: |items| format!("{items}\n").into_bytes(),
    })
}

/// The server: takes subscribers in until the publisher comes, and then obeys that one.
pub(crate) async fn serve() -> anyhow::Result<()> {
    let addr = std::env::var(LISTEN_ENV).context("nobody said where to listen")?;
    let listener = TcpListener::bind(addr).await?;
    let mut subscribers = Vec::new();
    loop {
        let (mut stream, _) = listener.accept().await?;
        match timeout(WORD_MAX, stream.read_u8()).await.context("somebody says nothing")? {
            Ok(SUBSCRIBE) => {
                stream.set_nodelay(true)?;
                stream.write_u8(SUBSCRIBE).await?;
                subscribers.push(stream.into_std()?);
            }
            Ok(PUBLISH) => return obey(stream, &subscribers).await,
            // Somebody only looked whether this listens.
            Ok(_) | Err(_) => {}
        }
    }
}

async fn obey(publisher: tokio::net::TcpStream, subscribers: &[TcpStream]) -> anyhow::Result<()> {
    let mut lines = BufReader::new(publisher).lines();
    while let Some(line) = lines.next_line().await? {
        let bytes = item().repeat(line.parse()?);
        // They do not block, and have room: their subscribers have all that was written before.
        for mut stream in subscribers {
            let written = stream.write(&bytes)?;
            ensure!(written == bytes.len(), "a socket took {written} of {} bytes", bytes.len());
        }
    }
    Ok(())
}
