//! A live CDN of one connection: takes the stream and reads it, as a player behind it would.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, bail};
use broadcaster_core::video::{avc, sei};
use rml_rtmp::handshake::{Handshake, HandshakeProcessResult, PeerType};
use rml_rtmp::sessions::{
    ServerSession, ServerSessionConfig, ServerSessionEvent, ServerSessionResult,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::ledger::{Ledger, Way};

/// Listens, and reads nothing yet.
pub(super) struct Sink {
    listener: TcpListener,
    addr: SocketAddr,
}

impl Sink {
    pub(super) async fn bind() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        Ok(Self { listener, addr })
    }

    /// Where rooms are pushed to.
    pub(super) fn url(&self) -> String {
        format!("rtmp://{}/live", self.addr)
    }

    /// Takes one stream, which must not end.
    pub(super) async fn run(self, ledger: Arc<Ledger>) -> anyhow::Result<()> {
        let (stream, _) = self.listener.accept().await?;
        stream.set_nodelay(true)?;
        let mut connection = Connection { stream, reader: sei::Reader::default(), ledger };
        let rest = connection.shake_hands().await?;
        let (mut session, first) = ServerSession::new(ServerSessionConfig::new())?;
        connection.obey(&mut session, first).await?;
        let heard = session.handle_input(&rest)?;
        connection.obey(&mut session, heard).await?;
        loop {
            let bytes = connection.read().await?;
            let heard = session.handle_input(&bytes)?;
            connection.obey(&mut session, heard).await?;
        }
    }
}

/// A connection.
struct Connection {
    stream: TcpStream,
    reader: sei::Reader,
    ledger: Arc<Ledger>,
}

impl Connection {
    async fn read(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(4096);
        if self.stream.read_buf(&mut bytes).await? == 0 {
            bail!("the push ended");
        }
        Ok(bytes)
    }

    /// Gives what was read beyond the handshake.
    async fn shake_hands(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut handshake = Handshake::new(PeerType::Server);
        loop {
            let bytes = self.read().await?;
            let (response, rest) = match handshake.process_bytes(&bytes) {
                Ok(HandshakeProcessResult::InProgress { response_bytes }) => (response_bytes, None),
                Ok(HandshakeProcessResult::Completed { response_bytes, remaining_bytes }) => {
                    (response_bytes, Some(remaining_bytes))
                }
                Err(error) => bail!("no handshake: {error}"),
            };
            self.stream.write_all(&response).await?;
            if let Some(rest) = rest {
                return Ok(rest);
            }
        }
    }

    /// Says yes to everything, and reads the frames.
    async fn obey(
        &mut self,
        session: &mut ServerSession,
        results: Vec<ServerSessionResult>,
    ) -> anyhow::Result<()> {
        let mut results = std::collections::VecDeque::from(results);
        while let Some(result) = results.pop_front() {
            match result {
                ServerSessionResult::OutboundResponse(packet) => {
                    self.stream.write_all(&packet.bytes).await?;
                }
                ServerSessionResult::RaisedEvent(
                    ServerSessionEvent::ConnectionRequested { request_id, .. }
                    | ServerSessionEvent::PublishStreamRequested { request_id, .. },
                ) => results.extend(session.accept_request(request_id)?),
                ServerSessionResult::RaisedEvent(ServerSessionEvent::VideoDataReceived {
                    data,
                    ..
                }) => self.watch(&data).context("a frame cannot be read")?,
                ServerSessionResult::RaisedEvent(_)
                | ServerSessionResult::UnhandleableMessageReceived(_) => {}
            }
        }
        Ok(())
    }

    fn watch(&mut self, frame: &[u8]) -> anyhow::Result<()> {
        for unit in avc::units(frame) {
            if let Some(text) = self.reader.take(unit) {
                self.ledger.hear_json(Way::Rtmp, text.as_bytes())?;
            }
        }
        Ok(())
    }
}
