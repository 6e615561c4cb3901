//! A viewer at a terminal: what `watch`, `say` and `replay` have in common.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::secret::Secret;
use channel::ClientTls;
use kit::clock::Clock;
use proto::frame::{JoinOutcome, Joined, Path};
use proto::id::{RoomId, ViewerId};
use proto::policy::Policy;
use sdk::{Client, Events, Options};
use stack::crowd::{signer, ticket_source};
use stack::identity::APP;

use crate::cli::Target;
use crate::run_file::RunFile;

/// A running system, and how to be a viewer there.
pub(crate) struct Place {
    run: RunFile,
    app: App,
    tls: ClientTls,
    http: reqwest::Client,
    pub(crate) clock: Clock,
    pub(crate) room: RoomId,
}

impl Place {
    /// Finds the running system of a data folder.
    pub(crate) fn find(target: &Target) -> anyhow::Result<Self> {
        let run = RunFile::read(&target.data)?;
        let tls = ClientTls::trusting(&run.ca_pem)?;
        let key = Secret::new(run.ticket_key.clone());
        let app = App {
            id: APP,
            name: String::new(),
            ticket_keys: vec![TicketKey { kid: String::new(), alg: TicketAlg::Hs256, key }],
            jwks: PathBuf::new(),
            api_keys: Vec::new(),
            policy: Policy::default(),
        };
        let room = target.room.clone().unwrap_or_else(|| run.room.clone());
        let http = sdk::http::client(&tls)?;
        Ok(Self { run, app, tls, http, clock: Clock::system(), room })
    }

    /// Starts a viewer; how the SDK is used is all here.
    pub(crate) fn enter(&self, account: &ViewerId, path: Path) -> anyhow::Result<(Client, Events)> {
        let signer = Arc::new(signer(&self.app)?);
        let ticket = ticket_source(&signer, &self.app, account, &self.room, &self.clock);
        let mut options = Options::new(
            self.run.enter.clone(),
            Arc::new(ticket),
            self.http.clone(),
            self.clock.clone(),
            kit::seed::fresh()?,
        );
        options.rooms = vec![(self.room.clone(), path)];
        options.tls = Some(self.tls.clone());
        Ok(Client::start(options))
    }
}

/// Refuses to go on in a room that does not let the viewer in.
pub(crate) fn let_in(rooms: &[Joined]) -> anyhow::Result<()> {
    for Joined { room, outcome } in rooms {
        match outcome {
            JoinOutcome::In { .. } => {}
            JoinOutcome::Refused { code, .. } if code.comes_back() => {}
            JoinOutcome::Refused { code, .. } => bail!("{room} cannot be entered: {}", code.name()),
        }
    }
    Ok(())
}
