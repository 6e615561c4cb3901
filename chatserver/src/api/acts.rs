//! What every act has in common: in whose name it is done, whether that person may, its record.

use proto::control::{Fact, RoomFact, Standing};
use proto::id::{AppId, RoomId, ViewerId};
use proto::item::Role;
use serde::Deserialize;
use serde_json::Value;

use super::Api;
use super::no::No;
use super::people::viewer_of;
use crate::store::Expect;
use crate::store::rows::{Record, WHY_BYTES_MAX};
use chatserver_core::rank::{self, Act};

/// In whose name something is done, and why: the query of every request that changes something.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Signed {
    /// The moderator or host who does it; without one, the business server does it itself.
    by: Option<String>,
    why: Option<String>,
}

/// Who does something in a room.
#[derive(Clone, Debug)]
pub(super) struct Deed {
    pub(super) app: AppId,
    pub(super) room: RoomId,
    /// Whether the room takes anything.
    pub(super) open: bool,
    by: Option<(ViewerId, Role)>,
    why: Option<String>,
}

/// What is recorded of an act.
#[derive(Clone, Debug, Default)]
pub(super) struct What {
    /// To whom, or to what.
    pub(super) on: Option<String>,
    /// Until when.
    pub(super) until: Option<proto::time::Wall>,
    /// What was said, written or set.
    pub(super) value: Option<Value>,
}

impl Deed {
    /// Whether whoever does it may.
    pub(super) fn allow(&self, act: Act) -> Result<(), No> {
        match &self.by {
            Some((_, role)) => rank::may(*role, act).map_err(No::NotAllowed),
            None => Ok(()),
        }
    }

    /// The record of it.
    pub(super) fn record(&self, api: &Api, act: &str, what: What) -> Record {
        let What { on, until, value } = what;
        let record = Record::new(api.site.clock.wall(), act);
        let by = self.by.as_ref().map(|it| it.0.clone());
        Record { by, on, until, value, why: self.why.clone(), ..record }
    }
}

impl Api {
    /// Reads who does something in a room of the app.
    pub(super) async fn deed(&self, app: AppId, room: &str, signed: Signed) -> Result<Deed, No> {
        let RoomFact { room, open, .. } = self.own_room(app, room).await?;
        let Signed { by, why } = signed;
        if why.as_ref().is_some_and(|it| it.len() > WHY_BYTES_MAX) {
            let why = format!("must have at most {WHY_BYTES_MAX} bytes");
            return Err(No::Field { field: "why", why });
        }
        let by = match by {
            Some(by) => {
                let by = viewer_of(&by)?;
                let role = self.standing(app, &room, &by).await?.role;
                Some((by, role.unwrap_or_default()))
            }
            None => None,
        };
        Ok(Deed { app, room, open, by, why })
    }

    /// What a viewer is by the room's word.
    pub(super) async fn standing(
        &self,
        app: AppId,
        room: &RoomId,
        viewer: &ViewerId,
    ) -> Result<Standing, No> {
        let (room, viewer) = (room.clone(), viewer.clone());
        let person = Fact::Person { app, room, viewer, standing: Standing::default() };
        match self.site.rows.act(&person).await?.0 {
            Some(Fact::Person { standing, .. }) => Ok(standing),
            Some(_) | None => Ok(Standing::default()),
        }
    }

    /// Writes an act with its record, and tells everyone; whatever was said under its key before.
    pub(super) async fn act(&self, act: Fact, deed: &Deed, record: Record) -> Result<(), No> {
        self.act_if(act, Expect::Any, deed, record).await?;
        Ok(())
    }

    /// As [`Api::act`], if `expect` holds; whether it did.
    pub(super) async fn act_if(
        &self,
        act: Fact,
        expect: Expect,
        deed: &Deed,
        record: Record,
    ) -> Result<bool, No> {
        let record = record.write(deed.app, Some(&deed.room))?;
        if !self.site.rows.write_act(&act, expect, record).await? {
            return Ok(false);
        }
        self.announce(act).await?;
        Ok(true)
    }

    /// Refuses one more where `prefix` has as many as there may be.
    pub(super) async fn check_count(&self, prefix: String, acts_max: usize) -> Result<(), No> {
        let others = self.site.rows.count_acts(prefix, acts_max).await?;
        if others >= acts_max { Err(No::TooMany) } else { Ok(()) }
    }
}
