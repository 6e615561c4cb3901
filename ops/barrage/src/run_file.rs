//! `run.json`: where a running `up` listens and what the terminal commands need to talk to it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use kit::private;
use proto::address::Address;
use proto::id::RoomId;
use serde::{Deserialize, Serialize};
use stack::{Addrs, Stack};

/// What `watch`, `say`, `replay`, `room` and its like, `keys` and `token` read. It holds the
/// demonstration's ticket key, API key and operator key, so only its owner can read it.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct RunFile {
    pub(crate) enter: String,
    pub(crate) room: RoomId,
    pub(crate) ca_pem: String,
    pub(crate) ticket_key: String,
    /// Base of the auth service.
    pub(crate) auth: String,
    pub(crate) operator_key: String,
    /// Base of the business API, and the app's key to it.
    pub(crate) api: String,
    pub(crate) api_key: String,
    /// Addresses that tokens are minted for.
    pub(crate) links: Vec<String>,
}

impl RunFile {
    /// Writes what a running stack can be reached by.
    pub(crate) fn write(data: &Path, stack: &Stack, room: &RoomId) -> anyhow::Result<()> {
        let Addrs { enter, auth, link, api, .. } = stack.addrs();
        let run = Self {
            enter: enter.clone(),
            room: room.clone(),
            ca_pem: stack.trust().ca_pem.clone(),
            ticket_key: stack.identity().ticket_key.clone(),
            auth: auth.clone(),
            operator_key: stack.identity().operator_key.clone(),
            api: api.clone(),
            api_key: stack.identity().api_key.clone(),
            links: link.iter().map(Address::authority).collect(),
        };
        let path = path(data);
        private::write(&path, &serde_json::to_vec_pretty(&run)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads it; the error says what to do.
    pub(crate) fn read(data: &Path) -> anyhow::Result<Self> {
        let path = path(data);
        let read =
            private::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let bytes = read.with_context(|| {
            format!("no {}: is `barrage up` running, with the same --data?", path.display())
        })?;
        serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))
    }
}

fn path(data: &Path) -> PathBuf {
    data.join("run.json")
}
