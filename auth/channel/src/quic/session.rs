//! The server's half of a handshake inside QUIC, which lets go of rustls when it is over.
//!
//! What QUIC needs of TLS afterwards is little: the secrets that the next keys are made from. What
//! rustls keeps, the client's hello and all that a handshake could still come to, is ten times as
//! much, and an idle connection would carry it along to its end. A client has nothing to say after
//! its handshake: it sends no tickets and no certificate, and keys change without TLS (RFC 9001,
//! sections 4.4, 4.6.1 and 6). So whatever else it says ends the connection.

use std::any::Any;
use std::sync::Arc;

use quinn_proto::crypto::rustls::{HandshakeData, NoInitialCipherSuite, QuicServerConfig};
use quinn_proto::crypto::{
    ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::AlertDescription;
use rustls::quic::{Connection, KeyChange, Secrets, ServerConnection, Version};
use zeroize::Zeroizing;

use crate::binding::EXPORTER_LABEL;
use crate::quic::QUIC_VERSION;

/// What every handshake begins with.
pub(super) struct Handshakes {
    config: Arc<rustls::ServerConfig>,
    /// Knows the keys that follow from what everybody can read (RFC 9001, sections 5.2 and 5.8).
    initial: Arc<QuicServerConfig>,
}

/// One handshake, and what is left of it.
struct Handshake {
    stage: Stage,
    initial: Arc<QuicServerConfig>,
    /// What the keys after the next ones are made from.
    secrets: Option<Secrets>,
}

enum Stage {
    /// The offer is the client's choice of an application protocol.
    Shaking {
        connection: Box<ServerConnection>,
        is_offer_known: bool,
    },
    Over {
        exporter: Option<Zeroizing<[u8; 32]>>,
    },
}

impl Handshakes {
    /// # Errors
    /// When the configuration lacks the suite of initial packets.
    pub(super) fn new(config: Arc<rustls::ServerConfig>) -> Result<Self, NoInitialCipherSuite> {
        let initial = Arc::new(QuicServerConfig::try_from(Arc::clone(&config))?);
        Ok(Self { config, initial })
    }
}

impl ServerConfig for Handshakes {
    fn initial_keys(
        &self,
        version: u32,
        client: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        if version != QUIC_VERSION {
            return Err(UnsupportedVersion);
        }
        self.initial.initial_keys(version, client)
    }

    fn retry_tag(&self, version: u32, client: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.initial.retry_tag(version, client, packet)
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        let mut bytes = Vec::new();
        params.write(&mut bytes);
        let connection = ServerConnection::new(Arc::clone(&self.config), Version::V1, bytes)
            .expect("its suites are of TLS 1.3, one is fit for QUIC, and it takes no early data");
        let connection = Box::new(connection);
        Box::new(Handshake {
            stage: Stage::Shaking { connection, is_offer_known: false },
            initial: Arc::clone(&self.initial),
            secrets: None,
        })
    }
}

impl Handshake {
    const fn connection(&self) -> Option<&ServerConnection> {
        match &self.stage {
            Stage::Shaking { connection, .. } => Some(connection),
            Stage::Over { .. } => None,
        }
    }

    /// The handshake is over, and all is said.
    fn let_go(&mut self) {
        let over = Stage::Over { exporter: None };
        if let Stage::Shaking { connection, .. } = std::mem::replace(&mut self.stage, over) {
            let exporter = Connection::Server(*connection).export_keying_material(
                Zeroizing::new([0; 32]),
                EXPORTER_LABEL,
                Some(&[]),
            );
            self.stage = Stage::Over { exporter: exporter.ok() };
        }
    }
}

impl Session for Handshake {
    fn initial_keys(&self, client: &ConnectionId, _: Side) -> Keys {
        self.initial.initial_keys(QUIC_VERSION, client).expect("version 1 is what it supports")
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let connection = self.connection()?;
        let protocol = connection.alpn_protocol().map(<[u8]>::to_vec);
        let server_name = connection.server_name().map(str::to_owned);
        Some(Box::new(HandshakeData { protocol, server_name }))
    }

    /// Clients show no certificate.
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// Nothing is taken early.
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.connection().is_some_and(|it| it.is_handshaking())
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let Stage::Shaking { connection, is_offer_known } = &mut self.stage else {
            let alert = AlertDescription::UnexpectedMessage;
            return Err(failed(alert, "a message after the handshake"));
        };
        connection.read_hs(bytes).map_err(|error| {
            let alert = connection.alert().unwrap_or(AlertDescription::InternalError);
            failed(alert, &error.to_string())
        })?;
        let was_known = *is_offer_known;
        *is_offer_known |= connection.alpn_protocol().is_some();
        Ok(*is_offer_known && !was_known)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let params = self.connection().and_then(|it| it.quic_transport_parameters());
        let params = params.map(|mut it| TransportParameters::read(Side::Server, &mut it));
        Ok(params.transpose()?)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let Stage::Shaking { connection, .. } = &mut self.stage else {
            return None;
        };
        let before = out.len();
        let keys = match connection.write_hs(out) {
            Some(KeyChange::Handshake { keys }) => keys,
            Some(KeyChange::OneRtt { keys, next }) => {
                self.secrets = Some(next);
                keys
            }
            None => {
                if out.len() == before && !connection.is_handshaking() {
                    self.let_go();
                }
                return None;
            }
        };
        let (local, remote) = (keys.local, keys.remote);
        Some(Keys {
            header: KeyPair { local: Box::new(local.header), remote: Box::new(remote.header) },
            packet: KeyPair { local: Box::new(local.packet), remote: Box::new(remote.packet) },
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.secrets.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    /// Only servers send them.
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    /// What logins are bound to, and nothing else.
    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        match &self.stage {
            Stage::Over { exporter: Some(exporter) }
                if (label, context) == (EXPORTER_LABEL, &[]) && output.len() == exporter.len() =>
            {
                output.copy_from_slice(&exporter[..]);
                Ok(())
            }
            Stage::Shaking { .. } | Stage::Over { .. } => Err(ExportKeyingMaterialError),
        }
    }
}

fn failed(alert: AlertDescription, reason: &str) -> TransportError {
    let code = TransportErrorCode::crypto(alert.into());
    TransportError { code, frame: None, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests;
