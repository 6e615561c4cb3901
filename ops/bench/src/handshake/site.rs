//! The measured side: all services, and a link with one listener.

use std::sync::Arc;

use kit::clock::Clock;
use kit::task::Tasks;
use proto::id::{RoomId, ViewerId};
use stack::{Config, Stack, crowd};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::certificate::{Certificate, Kind};
use super::guests::Orders;

/// The measured side.
pub(super) struct Site {
    enter_url: String,
    ticket: String,
    services: Tasks,
    stop: CancellationToken,
    _data: TempDir,
}

impl Site {
    /// Starts all services.
    pub(super) async fn open(certificate: &Certificate, clock: &Clock) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let mut config = Config::demo(data.path());
        config.gslb.rate.enabled = false;
        config.link.listeners.retain(|it| it.transport == certificate.kind.transport());
        let (chain, key) = (certificate.chain(), certificate.key());
        match certificate.kind {
            Kind::P256 | Kind::Ed25519 | Kind::Rsa2048 => {
                (config.tls.chain, config.tls.key) = (chain, key);
            }
            Kind::Sm2 => (config.tls.national_chain, config.tls.national_key) = (chain, key),
        }
        let stack = Box::pin(Stack::bind(config, clock.clone(), 1)).await?;
        let room = RoomId::parse("handshake")?;
        let account = ViewerId::parse("guest")?;
        let app = stack.identity().app();
        let signer = Arc::new(crowd::signer(&app)?);
        let ticket = crowd::ticket_source(&signer, &app, &account, &room, clock)();
        let enter_url = stack.addrs().enter.clone();
        let (mut services, stop) = (Tasks::default(), CancellationToken::new());
        services.spawn("stack", Box::pin(stack.run(stop.clone())));
        Ok(Self { enter_url, ticket, services, stop, _data: data })
    }

    /// What the guests are told; of a peer and of numbers it knows nothing.
    pub(super) fn orders(&self, certificate: &Certificate) -> anyhow::Result<Orders> {
        Ok(Orders {
            kind: certificate.kind,
            ca_pem: certificate.ca_pem()?,
            enter_url: self.enter_url.clone(),
            ticket: self.ticket.clone(),
            logins: 0,
            peer: None,
        })
    }

    /// Ends all services.
    pub(super) async fn close(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.services.join().await
    }
}
