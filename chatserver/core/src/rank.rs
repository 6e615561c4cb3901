//! Who may do what to whom in a room.
//!
//! | act | host | moderator | VIP, viewer, guest |
//! |---|---|---|---|
//! | mute, ban, kick; put on the allow-list or the followers' list | everyone else | VIPs, viewers, guests | nobody |
//! | give a role | any role but host, to everyone else | VIP, viewer, guest, to those | – |
//! | settings, notice, attributes, counters, words, devices and addresses | yes | yes | no |
//! | close the room | yes | no | no |
//!
//! The business server itself may do everything: this is for what it does in a person's name.

use proto::item::Role;

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Act {
    /// Something to a person of this role: a mute, a ban, a kick, a place on a list, or its end.
    To(Role),
    /// A person of the one role is given the other.
    Appoint(Role, Role),
    /// A change of what the room allows, shows or says.
    Arrange,
    /// The room is closed.
    Close,
}

/// The person may not do it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a {} of the room may not do this", by.name())]
pub struct NotAllowed {
    /// What the person is.
    pub by: Role,
}

/// Whether a person may do it.
///
/// # Errors
/// [`NotAllowed`].
pub fn may(by: Role, act: Act) -> Result<(), NotAllowed> {
    let allowed = by >= Role::Moderator
        && match act {
            Act::To(on) => by > on,
            Act::Appoint(on, to) => by > on && by > to,
            Act::Arrange => true,
            Act::Close => by == Role::Host,
        };
    if allowed { Ok(()) } else { Err(NotAllowed { by }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds() {
        use Role::{Guest, Host, Moderator, Viewer, Vip};
        let rows = [
            (Host, Act::To(Moderator), true),
            (Host, Act::To(Guest), true),
            (Host, Act::To(Host), false),
            (Moderator, Act::To(Vip), true),
            (Moderator, Act::To(Moderator), false),
            (Moderator, Act::To(Host), false),
            (Host, Act::Appoint(Viewer, Moderator), true),
            (Host, Act::Appoint(Viewer, Host), false),
            (Host, Act::Appoint(Host, Viewer), false),
            (Moderator, Act::Appoint(Viewer, Vip), true),
            (Moderator, Act::Appoint(Viewer, Moderator), false),
            (Moderator, Act::Appoint(Moderator, Viewer), false),
            (Moderator, Act::Arrange, true),
            (Moderator, Act::Close, false),
            (Host, Act::Close, true),
        ];
        for (by, act, expected) in rows {
            assert_eq!(may(by, act).is_ok(), expected, "{by:?} {act:?}");
        }
        for by in [Vip, Viewer, Guest] {
            for act in [Act::To(Guest), Act::Appoint(Guest, Guest), Act::Arrange, Act::Close] {
                assert_eq!(may(by, act), Err(NotAllowed { by }));
            }
        }
    }
}
