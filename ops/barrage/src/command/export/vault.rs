//! Slots of sealed rooms, opened with the masters of the system that wrote them.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use auth_core::derive::from_hex;
use auth_core::room_key::{self, RoomKey, Unopened};
use proto::head::{Head, head_path};
use proto::id::{AppId, Gen, RoomId};
use proto::keys::Master;
use proto::sealed::is_sealed;
use stack::identity;

use crate::command::keys::masters::Place;

/// What opens the slots of one room, if they are sealed.
pub(super) struct Vault {
    data: PathBuf,
    segments: PathBuf,
    place: Place,
    room: RoomId,
    app: AppId,
    /// Read when the first sealed slot is met.
    masters: OnceCell<Vec<Master>>,
}

impl Vault {
    pub(super) fn new(data: &Path, place: &Place, room: &RoomId) -> Self {
        let segments = data.join(stack::SEGMENTS);
        let head = fs::read(segments.join(head_path(room))).ok();
        let head = head.and_then(|it| serde_json::from_slice::<Head>(&it).ok());
        Self {
            data: data.to_path_buf(),
            segments,
            place: place.clone(),
            room: room.clone(),
            app: head.and_then(|it| it.app).unwrap_or(identity::APP),
            masters: OnceCell::new(),
        }
    }

    /// What is in a file of this gen, compressed as it was.
    pub(super) fn open(&self, gen_no: Gen, file: &Path, bytes: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        if !is_sealed(&bytes) {
            return Ok(bytes);
        }
        let path = file.strip_prefix(&self.segments).ok().and_then(Path::to_str);
        let path = path.with_context(|| format!("{} is in no store", file.display()))?;
        match room_key::open(&self.keys(gen_no)?, path, &bytes) {
            Ok(opened) => Ok(opened),
            Err(Unopened::NoKey { kid }) => {
                bail!("{path} is sealed under master {kid}, which is gone: nobody can open it")
            }
            Err(error) => Err(error).with_context(|| format!("{path} cannot be opened")),
        }
    }

    fn keys(&self, gen_no: Gen) -> anyhow::Result<Vec<RoomKey>> {
        let masters = match self.masters.get() {
            Some(masters) => masters,
            None => {
                let read = self.place.file(&self.data).and_then(|it| it.read());
                let read = read.context(
                    "the room is sealed, and its keys come from the auth service's masters: name \
                     its configuration with --config",
                )?;
                self.masters.get_or_init(|| read)
            }
        };
        let key = |it: &Master| {
            let master = from_hex(&it.key)?;
            Some(RoomKey::derive(&master, it.kid, self.app, &self.room, gen_no))
        };
        Ok(masters.iter().filter_map(key).collect())
    }
}
