//! What every act has in common: in whose name it is done, whether that person may, its record.

use proto::control::{Fact, RoomFact, Standing};
use proto::id::{AppId, RoomId, ViewerId};
use proto::item::Role;
use serde::Deserialize;
use serde_json::Value;

use super::Api;
use super::no::No;
use super::people::viewer_of;
use crate::store::rows::{Acted, Record, Rows, WHY_BYTES_MAX, ended};
use crate::store::{Expect, StoreError, Write};
use chatserver_core::rank::{self, Act};

/// How often an act is tried again because another one came between.
pub(super) const TRIES_MAX: usize = 20;

/// In whose name something is done, and why: the query of every request that changes something.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Signed {
    /// The moderator or host who does it; without one, the business server does it itself. What
    /// that person is, and what the other one is, is the room's word: what tickets say, this
    /// service does not know.
    by: Option<String>,
    why: Option<String>,
    /// What the person to whom it is done is by ticket, if that is more than the room's word.
    on_role: Option<Role>,
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
    on_role: Role,
    /// What that person's right rests on: it must still be so when it is done.
    pub(super) guards: Vec<Write>,
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

    /// What the person to whom it is done is, of whom the room says this.
    pub(super) fn role_of(&self, standing: Standing) -> Role {
        standing.role.unwrap_or_default().max(self.on_role)
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
        let Signed { by, why, on_role } = signed;
        if why.as_ref().is_some_and(|it| it.len() > WHY_BYTES_MAX) {
            let why = format!("must have at most {WHY_BYTES_MAX} bytes");
            return Err(No::Field { field: "why", why });
        }
        let mut guards = Vec::new();
        let by = match by {
            Some(by) => {
                let by = viewer_of(&by)?;
                let (standing, expect) = self.stands(app, &room, &by).await?;
                guards.push(Rows::guard(&person(app, &room, &by), expect));
                Some((by, standing.role.unwrap_or_default()))
            }
            None => None,
        };
        Ok(Deed { app, room, open, by, why, on_role: on_role.unwrap_or_default(), guards })
    }

    /// What a viewer is by the room's word.
    pub(super) async fn standing(
        &self,
        app: AppId,
        room: &RoomId,
        viewer: &ViewerId,
    ) -> Result<Standing, No> {
        Ok(self.stands(app, room, viewer).await?.0)
    }

    /// What a viewer is by the room's word, and what must be there for that to be replaced.
    pub(super) async fn stands(
        &self,
        app: AppId,
        room: &RoomId,
        viewer: &ViewerId,
    ) -> Result<(Standing, Expect), No> {
        let (found, expect) = self.site.rows.act(&person(app, room, viewer)).await?;
        match found {
            Some(Fact::Person { standing, .. }) => Ok((standing, expect)),
            Some(_) | None => Ok((Standing::default(), expect)),
        }
    }

    /// Writes an act with its record, and tells everyone; whatever was said under its key before.
    /// Where nothing was, there must be fewer than `acts_max` of the kind in the room.
    pub(super) async fn act(
        &self,
        act: Fact,
        acts_max: Option<usize>,
        deed: &Deed,
        record: Record,
    ) -> Result<(), No> {
        let key = act.key();
        let prefix: String = key.split_inclusive(':').take(3).collect();
        for no in 0..TRIES_MAX {
            if no > 0 {
                self.still(deed).await?;
            }
            let (_, expect) = self.site.rows.act(&act).await?;
            if let (Some(acts_max), Expect::Absent) = (acts_max, expect) {
                self.check_count(prefix.clone(), acts_max).await?;
            }
            if self.act_if(act.clone(), expect, deed, record.clone()).await? {
                return Ok(());
            }
        }
        Err(No::Changed)
    }

    /// As [`Api::act`], if `expect` holds; whether it did.
    pub(super) async fn act_if(
        &self,
        act: Fact,
        expect: Expect,
        deed: &Deed,
        record: Record,
    ) -> Result<bool, No> {
        let mut beside = deed.guards.clone();
        beside.push(record.write(deed.app, Some(&deed.room))?);
        let is_done = self.write_act(deed.app, &act, expect, beside).await?;
        if is_done {
            self.announce(act).await?;
        }
        Ok(is_done)
    }

    /// As [`Api::act_if`], of something so frequent that there is no record, and that everyone is
    /// told the newest of within a second or so.
    pub(super) async fn act_quietly(
        &self,
        app: AppId,
        act: Fact,
        expect: Expect,
    ) -> Result<bool, No> {
        let is_done = self.write_act(app, &act, expect, Vec::new()).await?;
        if is_done {
            self.site.tell_later([act]);
        }
        Ok(is_done)
    }

    async fn write_act(
        &self,
        app: AppId,
        act: &Fact,
        expect: Expect,
        beside: Vec<Write>,
    ) -> Result<bool, No> {
        let acts_max = self.site.config.quota_of(app).acts_max;
        let written = self.site.rows.write_act(act, expect, beside, acts_max).await;
        if let Err(StoreError::Away { .. }) = written {
            // It may have happened: what the store says is told, and that nothing is, if it says
            // nothing.
            self.site.tell_later(ended(act.clone()));
        }
        match written? {
            Acted::Done => Ok(true),
            Acted::Changed => Ok(false),
            Acted::TooMany => Err(No::TooMany),
        }
    }

    /// Whether the right to do it is still what it was; it is not tried again on another one.
    pub(super) async fn still(&self, deed: &Deed) -> Result<(), No> {
        if self.site.rows.hold(&deed.guards).await? { Ok(()) } else { Err(No::Changed) }
    }

    /// Refuses one more where `prefix` has as many as there may be.
    async fn check_count(&self, prefix: String, acts_max: usize) -> Result<(), No> {
        let others = self.site.rows.count_acts(prefix, acts_max).await?;
        if others >= acts_max { Err(No::TooMany) } else { Ok(()) }
    }
}

/// A viewer in a room, of whom nothing is said.
pub(super) fn person(app: AppId, room: &RoomId, viewer: &ViewerId) -> Fact {
    let (room, viewer) = (room.clone(), viewer.clone());
    Fact::Person { app, room, viewer, standing: Standing::default() }
}
