//! An authority with one server below it, and both ends of a handshake in memory.

use std::sync::Arc;

use channel::national::certs::{Authority, Key, Life, Names};
use channel::national::provider;
use proto::time::Wall;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, Connection, Error, RootCertStore, ServerConfig,
    ServerConnection,
};

/// Flights of a handshake; more means that the two ends do not move.
const FLIGHTS_MAX: usize = 10;

pub(crate) struct Pki {
    pub(crate) authority: Authority,
    pub(crate) server_pem: String,
    pub(crate) server_key: Key,
}

impl Pki {
    pub(crate) fn new() -> Self {
        Self::with_names(&["localhost"])
    }

    pub(crate) fn with_names(names: &[&str]) -> Self {
        Self::with_life(names, year())
    }

    pub(crate) fn with_life(names: &[&str], life: Life) -> Self {
        let authority = Authority::create(fresh_key(), "Test authority", life).unwrap();
        let server_key = fresh_key();
        let names = Names::new(names.iter().copied()).unwrap();
        let server_pem = authority.issue(&server_key, &names, life).unwrap();
        Self { authority, server_pem, server_key }
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        let key_pem = self.server_key.to_pem().unwrap();
        Arc::new(server_config(provider(), &self.server_pem, &key_pem).unwrap())
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::new(client_config(provider(), &self.authority.to_pem().unwrap()))
    }

    pub(crate) fn connect(&self, name: &str) -> Result<Ends, Box<Failure>> {
        connect(self.client(), self.server(), name)
    }
}

pub(crate) fn server_config(
    provider: Arc<CryptoProvider>,
    chain_pem: &str,
    key_pem: &str,
) -> Result<ServerConfig, Error> {
    let chain = vec![CertificateDer::from_pem_slice(chain_pem.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)
}

pub(crate) fn client_config(provider: Arc<CryptoProvider>, ca_pem: &str) -> ClientConfig {
    ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots(ca_pem))
        .with_no_client_auth()
}

pub(crate) fn roots(ca_pem: &str) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    roots
}

pub(crate) fn fresh_key() -> Key {
    Key::from_seed(&kit::seed::random_bytes().unwrap()).unwrap()
}

pub(crate) fn now() -> Wall {
    kit::clock::Clock::system().wall()
}

pub(crate) fn year() -> Life {
    Life { now: now(), days: 365 }
}

/// Two ends whose handshake is complete.
pub(crate) struct Ends {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
}

/// What the two ends say of a handshake that failed; `None` is an end that saw nothing wrong.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) client: Option<Error>,
    pub(crate) server: Option<Error>,
}

pub(crate) fn connect(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    name: &str,
) -> Result<Ends, Box<Failure>> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = Connection::from(ClientConnection::new(client, name).unwrap());
    let mut server = Connection::from(ServerConnection::new(server).unwrap());
    for _flight in 0..FLIGHTS_MAX {
        let server_error = pass(&mut client, &mut server).err();
        let client_error = pass(&mut server, &mut client).err();
        if server_error.is_some() || client_error.is_some() {
            // The alert that tells the other end.
            let server_error = server_error.or_else(|| pass(&mut client, &mut server).err());
            return Err(Box::new(Failure { client: client_error, server: server_error }));
        }
        if !client.is_handshaking() && !server.is_handshaking() {
            return Ok(Ends { client, server });
        }
    }
    panic!("the handshake does not end");
}

/// Hands over what `from` wants to send.
pub(crate) fn pass(from: &mut Connection, to: &mut Connection) -> Result<(), Error> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    deliver(&bytes, to)
}

pub(crate) fn deliver(mut bytes: &[u8], to: &mut Connection) -> Result<(), Error> {
    while !bytes.is_empty() {
        to.read_tls(&mut bytes).unwrap();
        to.process_new_packets()?;
    }
    Ok(())
}
