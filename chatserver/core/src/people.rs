//! The people of one room: what they are by the room's word, and who may not speak or enter.

use std::collections::BTreeMap;

use proto::control::Standing;
use proto::id::ViewerId;
use proto::item::Role;
use proto::time::Wall;

/// Mutes of one room, bans, exclusions: about 100 bytes each.
pub const SANCTIONS_MAX: usize = 10_000;
/// Viewers of whom a room says what they are, each about 100 bytes here and a fact on `control`.
/// Of more followers than this, a room cannot name all.
pub const STANDINGS_MAX: usize = 10_000;

/// What a room knows of its people.
#[derive(Clone, Debug, Default)]
pub struct People {
    mutes: BTreeMap<ViewerId, Wall>,
    bans: BTreeMap<ViewerId, Wall>,
    standings: BTreeMap<ViewerId, Standing>,
}

impl People {
    /// Mutes `viewer` until then; 0 ends it. Past [`SANCTIONS_MAX`] the one that ends first goes.
    pub fn mute(&mut self, viewer: ViewerId, until: Wall) {
        sanction(&mut self.mutes, viewer, until);
    }

    /// Bans `viewer` until then; 0 ends it. Bounded as [`People::mute`].
    pub fn ban(&mut self, viewer: ViewerId, until: Wall) {
        sanction(&mut self.bans, viewer, until);
    }

    /// Says what `viewer` is. Past [`STANDINGS_MAX`] nobody new is taken; whoever writes standings
    /// keeps below it.
    pub fn stand(&mut self, viewer: ViewerId, standing: Standing) {
        if standing.is_none() {
            self.standings.remove(&viewer);
        } else if self.standings.len() < STANDINGS_MAX || self.standings.contains_key(&viewer) {
            self.standings.insert(viewer, standing);
        }
    }

    /// What `viewer` is by the room's word.
    #[must_use]
    pub fn standing(&self, viewer: &ViewerId) -> Standing {
        self.standings.get(viewer).copied().unwrap_or_default()
    }

    /// What `viewer` is, who is this by ticket. Whoever has no account stays a guest, and whoever
    /// keeps order by ticket does so whatever the room says.
    #[must_use]
    pub fn role(&self, viewer: &ViewerId, by_ticket: Role) -> Role {
        match by_ticket {
            Role::Guest => Role::Guest,
            Role::Viewer | Role::Vip | Role::Moderator | Role::Host => {
                let by_room = self.standing(viewer).role.unwrap_or(by_ticket);
                if by_ticket >= Role::Moderator { by_room.max(by_ticket) } else { by_room }
            }
        }
    }

    /// Until when `viewer` is muted; 0: not.
    #[must_use]
    pub fn muted_until(&self, viewer: &ViewerId) -> Wall {
        self.mutes.get(viewer).copied().unwrap_or_default()
    }

    /// Until when `viewer` is banned; 0: not.
    #[must_use]
    pub fn banned_until(&self, viewer: &ViewerId) -> Wall {
        self.bans.get(viewer).copied().unwrap_or_default()
    }

    /// Forgets mutes and bans that are over.
    pub fn expire(&mut self, now: Wall) {
        self.mutes.retain(|_, until| *until > now);
        self.bans.retain(|_, until| *until > now);
    }
}

fn sanction(sanctions: &mut BTreeMap<ViewerId, Wall>, viewer: ViewerId, until: Wall) {
    if until == Wall(0) {
        sanctions.remove(&viewer);
        return;
    }
    sanctions.insert(viewer, until);
    if sanctions.len() > SANCTIONS_MAX {
        let first = sanctions.iter().min_by_key(|it| it.1).map(|it| it.0.clone());
        if let Some(viewer) = first {
            sanctions.remove(&viewer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rooms_word_counts_before_the_tickets_unless_it_lowers_who_keeps_order() {
        let mut people = People::default();
        let viewer = ViewerId::parse("v").unwrap();
        people.stand(viewer.clone(), Standing { role: Some(Role::Vip), ..Standing::default() });

        assert_eq!(people.role(&viewer, Role::Viewer), Role::Vip);
        assert_eq!(people.role(&viewer, Role::Moderator), Role::Moderator);
        assert_eq!(people.role(&viewer, Role::Host), Role::Host);
        assert_eq!(people.role(&viewer, Role::Guest), Role::Guest);
        people.stand(viewer.clone(), Standing::default());
        assert_eq!(people.role(&viewer, Role::Moderator), Role::Moderator);
        assert!(people.standings.is_empty());
    }

    #[test]
    fn of_too_many_mutes_the_one_that_ends_first_goes() {
        let mut people = People::default();
        let viewer = |no: usize| ViewerId::parse(&format!("v{no}")).unwrap();
        for no in 0..=SANCTIONS_MAX {
            people.mute(viewer(no), Wall(1 + u64::try_from(no).unwrap()));
        }

        assert_eq!(people.mutes.len(), SANCTIONS_MAX);
        assert_eq!(people.muted_until(&viewer(0)), Wall(0));
        assert_eq!(people.muted_until(&viewer(1)), Wall(2));
    }
}
