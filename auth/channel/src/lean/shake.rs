//! A handshake whose bytes are handed to rustls record by record, so that what the client says
//! right behind it stays here.
//!
//! rustls gives up its keys, but not what it has read and not looked at: it must have read nothing.

use std::io;
use std::sync::Arc;

use rustls::server::{Accepted, Acceptor};
use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::StartHandshake;
use zeroize::Zeroizing;

use super::keys::{Cipher, HEADER_BYTES, Keys};
use super::records::Records;
use super::secrets::Secrets;
use super::{Lean, Rest, Shaken};
use crate::binding::exporter;
use crate::capped::{Capped, HANDSHAKE_BYTES_MAX};
use crate::server::ServerTls;

/// Bytes of one read. A hello with a hybrid share and a ticket has 2 KiB.
const READ_BYTES: usize = 4 * 1024;

/// Shakes hands. Where the suite is one that is sealed here, what comes of it is lean.
pub(crate) async fn shake(stream: TcpStream, tls: &ServerTls) -> io::Result<Shaken> {
    let mut wire = Wire { stream, inbox: Inbox::default() };
    let hello = wire.hello().await?;
    let config = tls.config_for(hello.client_hello().cipher_suites());
    if config.crypto_provider().cipher_suites.iter().all(|it| Cipher::of(*it).is_none()) {
        // Boxed, so that other handshakes do not carry its memory.
        return Box::pin(wire.buffered(hello, config)).await;
    }
    let secrets = Arc::new(Secrets::default());
    let mut config = ServerConfig::clone(config);
    config.key_log = Arc::clone(&secrets) as Arc<dyn rustls::KeyLog>;
    config.enable_secret_extraction = true;
    let connection = match hello.into_connection(Arc::new(config)) {
        Ok(connection) => connection,
        Err((error, mut alert)) => {
            let mut bytes = Vec::new();
            alert.write_all(&mut bytes)?;
            return Err(wire.refuse(&bytes, error));
        }
    };
    wire.finish(connection, &secrets).await
}

/// A connection and what came over it.
struct Wire {
    stream: TcpStream,
    inbox: Inbox,
}

impl Wire {
    /// Reads the client's first message.
    async fn hello(&mut self) -> io::Result<Accepted> {
        let mut acceptor = Acceptor::default();
        loop {
            let part = self.part().await?;
            feed(part, |it| acceptor.read_tls(it))?;
            match acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => return Ok(accepted),
                Err((error, mut alert)) => {
                    let mut bytes = Vec::new();
                    alert.write_all(&mut bytes)?;
                    return Err(self.refuse(&bytes, error));
                }
            }
        }
    }

    /// The rest of the handshake, by tokio-rustls, which keeps the connection.
    async fn buffered(self, hello: Accepted, config: &Arc<ServerConfig>) -> io::Result<Shaken> {
        let stream = Capped::after(self.stream, self.inbox.into_rest());
        let hello = StartHandshake::from_parts(hello, stream);
        let mut stream = hello.into_stream(Arc::clone(config)).await?;
        stream.get_mut().0.lift();
        Ok(Shaken::Buffered(Box::new(stream)))
    }

    /// The rest of the handshake, after which the connection is taken from rustls.
    async fn finish(
        mut self,
        mut connection: ServerConnection,
        secrets: &Secrets,
    ) -> io::Result<Shaken> {
        let last = loop {
            let said = flight(&mut connection)?;
            if !connection.is_handshaking() {
                break said;
            }
            self.stream.write_all(&said).await?;
            let part = self.part().await?;
            feed(part, |it| connection.read_tls(it))?;
            if let Err(error) = connection.process_new_packets() {
                let alert = flight(&mut connection)?;
                return Err(self.refuse(&alert, error));
            }
        };
        let exporter = exporter(&connection).map_err(io::Error::other)?;
        let records = records(connection, secrets)?;
        let rest = Rest {
            held: self.inbox.into_rest(),
            opened: 0,
            unsent: last,
            exporter: Some(Zeroizing::new(exporter)),
        };
        Ok(Shaken::Lean(Lean::new(self.stream, records, rest)))
    }

    /// More of a record; never of two.
    async fn part(&mut self) -> io::Result<&[u8]> {
        while !self.inbox.has_part() {
            self.inbox.make_room();
            if self.stream.read_buf(&mut self.inbox.bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.inbox.take_part()
    }

    /// Says why there will be no connection, if the client still listens.
    fn refuse(&self, alert: &[u8], error: rustls::Error) -> io::Error {
        // Whoever is gone does not miss it.
        drop(self.stream.try_write(alert));
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// What came and what of it was handed over.
#[derive(Debug, Default)]
struct Inbox {
    bytes: Vec<u8>,
    /// Bytes of `bytes` that were handed over.
    taken: usize,
    /// Bytes of the record that was begun which are still to be handed over.
    record_left: usize,
    /// Bytes handed over in all.
    handed: usize,
}

impl Inbox {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Room for one read; what was handed over goes.
    fn make_room(&mut self) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.reserve(READ_BYTES);
    }

    fn has_part(&self) -> bool {
        self.rest().len() >= if self.record_left > 0 { 1 } else { HEADER_BYTES }
    }

    /// What has come of a record, at once, so that nonsense is not waited for.
    fn take_part(&mut self) -> io::Result<&[u8]> {
        if self.record_left == 0
            && let Some([_, _, _, high, low]) = self.rest().first_chunk::<HEADER_BYTES>()
        {
            self.record_left = HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
        }
        let bytes = self.record_left.min(self.rest().len());
        self.handed += bytes;
        if self.handed > HANDSHAKE_BYTES_MAX {
            let text = format!("a handshake of more than {HANDSHAKE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.record_left -= bytes;
        self.taken += bytes;
        Ok(&self.bytes[self.taken - bytes..self.taken])
    }

    /// What was not handed over.
    fn into_rest(mut self) -> Vec<u8> {
        self.bytes.drain(..self.taken);
        self.bytes
    }
}

/// Has rustls read all of `part`.
fn feed(
    mut part: &[u8],
    mut read: impl FnMut(&mut dyn io::Read) -> io::Result<usize>,
) -> io::Result<()> {
    while !part.is_empty() {
        if read(&mut part)? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(())
}

/// What a connection has to say.
fn flight(connection: &mut ServerConnection) -> io::Result<Vec<u8>> {
    let mut flight = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut flight)?;
    }
    Ok(flight)
}

/// Takes a connection's keys.
pub(super) fn records(connection: ServerConnection, secrets: &Secrets) -> io::Result<Records> {
    let records = || {
        let cipher = Cipher::of(connection.negotiated_cipher_suite()?)?;
        let extracted = connection.dangerous_extract_secrets().ok()?;
        let ours = Keys::new(cipher, secrets.server()?, extracted.tx.0)?;
        let theirs = Keys::new(cipher, secrets.client()?, extracted.rx.0)?;
        Some(Records::new(cipher, ours, theirs))
    };
    records().ok_or_else(|| io::Error::other("the connection's keys were not given"))
}
