//! Who enters: whom a ticket names, or whom a policy lets in without one.
//!
//! Without a ticket a viewer has a passing account that nobody can guess, for as long as one
//! session and what resumes it live. It cannot be renewed: whose account it was would need a proof.
//! A kick holds for the account it names, so a viewer without a ticket can come back as another.

use auth_core::policy::{Policies, access};
use auth_core::ticket::Ticket;
use auth_core::token::{Shared, TTL_S_MAX, cap, flag};
use proto::id::{AppId, DeviceId, RoomId};
use proto::policy::{Access, Entry, Policy, SKEW_S_MAX};
use proto::time::Wall;

use super::refusal::Refusal;

/// Who asks.
#[derive(Debug)]
pub(super) enum Asker<'a> {
    /// Whom a ticket names.
    Known(Ticket),
    /// Somebody without a ticket.
    Passing { app: AppId, room: &'a RoomId, account: &'a Account },
}

/// A passing account: `anon-` and 32 hexadecimal digits.
#[derive(Debug)]
pub(super) struct Account([u8; 37]);

/// Somebody who may have tokens, and what stands in them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Entrant<'a> {
    pub(super) app: AppId,
    /// Text within the grammar of a [`ViewerId`](proto::id::ViewerId).
    pub(super) account: &'a [u8],
    pub(super) rooms: &'a [RoomId],
    /// Bits of [`flag`].
    pub(super) flags: u8,
    /// Bits of [`cap`].
    pub(super) caps: u16,
    pub(super) ttl_s: u16,
    /// How much longer links take the token, for clocks that differ.
    pub(super) skew_s: u16,
    pub(super) by: By,
}

/// What lets somebody in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum By {
    Ticket,
    /// An open room.
    Open,
    /// A room that is open for guests.
    Guest,
}

impl By {
    pub(super) const ALL: [Self; 3] = [Self::Ticket, Self::Open, Self::Guest];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ticket => "ticket",
            Self::Open => "open",
            Self::Guest => "guest",
        }
    }
}

impl Account {
    /// Room for one.
    pub(super) const ROOM: Self = Self(*b"anon-00000000000000000000000000000000");

    /// The one with this number, which must be random, in this room: to hand it about would cost
    /// more than to write it.
    #[inline(never)]
    pub(super) fn write(&mut self, number: &[u8; 16]) {
        // Without a branch or a table: all digits at once.
        let digit = |it: u8| it + b'0' + u8::from(it > 9) * (b'a' - b'9' - 1);
        for (digits, byte) in self.0[5..].as_chunks_mut().0.iter_mut().zip(number) {
            *digits = [digit(byte >> 4), digit(byte & 15)];
        }
    }
}

impl Asker<'_> {
    /// Lets them in as far as the policies of all their rooms allow.
    pub(super) fn enter(&self, policies: &Policies) -> Result<Entrant<'_>, Refusal> {
        match self {
            Self::Known(ticket) => {
                let policy = policies.of(ticket.app, &ticket.rooms);
                Ok(Entrant {
                    app: ticket.app,
                    account: ticket.account.as_str().as_bytes(),
                    rooms: &ticket.rooms,
                    flags: flags(&policy, ticket.flags(), ticket.caps)?,
                    caps: ticket.caps,
                    ttl_s: policy.token_ttl_s.clamp(1, TTL_S_MAX),
                    skew_s: policy.skew_s.min(SKEW_S_MAX),
                    by: By::Ticket,
                })
            }
            Self::Passing { app, room, account } => {
                let policy = policies.of_room(*app, room);
                let (by, may) = match policy.entry {
                    Entry::Open => (By::Open, flag::NO_TICKET | flag::MAY_SEND),
                    Entry::Guest => (By::Guest, flag::NO_TICKET | flag::GUEST),
                    Entry::Token => return Err(Refusal::TicketRequired),
                };
                Ok(Entrant {
                    app: *app,
                    account: &account.0,
                    rooms: std::slice::from_ref(room),
                    flags: flags(&policy, may, 0)?,
                    caps: 0,
                    ttl_s: policy.token_ttl_s.clamp(1, TTL_S_MAX),
                    skew_s: policy.skew_s.min(SKEW_S_MAX),
                    by,
                })
            }
        }
    }
}

impl<'a> Entrant<'a> {
    /// What stands in all the tokens.
    pub(super) fn shared(&self, device: Option<&'a DeviceId>, from: Wall) -> Shared<'a> {
        Shared {
            app: self.app,
            iat_s: u32::try_from(from.unix_s()).unwrap_or(u32::MAX),
            ttl_s: self.ttl_s,
            flags: self.flags,
            caps: self.caps,
            account: self.account,
            device,
            rooms: self.rooms,
        }
    }
}

/// What is left of these flags under a policy.
fn flags(policy: &Policy, flags: u8, caps: u16) -> Result<u8, Refusal> {
    let flags = match access(policy, flags, caps) {
        Access::Send => flags,
        Access::Read => flags & !flag::MAY_SEND,
        Access::Refuse => return Err(refused(policy, caps)),
    };
    Ok(if policy.single_use { flags | flag::SINGLE_USE } else { flags })
}

/// Which of the two rules refuses; where both do, the one that the viewer can do something about.
fn refused(policy: &Policy, caps: u16) -> Refusal {
    if caps & cap::VERIFIED == 0 && policy.unverified == Access::Refuse {
        Refusal::NotVerified
    } else {
        Refusal::MinorsRefused
    }
}

#[cfg(test)]
mod tests {
    use proto::control::Fact;
    use proto::id::ViewerId;
    use proto::item::Role;
    use proto::policy::PolicyFact;

    use super::*;

    const APP: AppId = AppId(1);

    fn policies(policy: Policy) -> Policies {
        let mut policies = Policies::default();
        let fact = PolicyFact { app: APP, room: None, version: 1, policy: Some(policy) };
        policies.handle(&Fact::Policy(fact));
        policies
    }

    fn room() -> RoomId {
        RoomId::parse("lobby").unwrap()
    }

    fn enter(role: Role, caps: u16, policy: Policy) -> Result<(u16, u8), Refusal> {
        let ticket = Asker::Known(Ticket {
            app: APP,
            account: ViewerId::parse("viewer").unwrap(),
            rooms: room().into(),
            role,
            may_send: role != Role::Guest,
            caps,
            issued: Wall(0),
            expires: Wall(0),
        });
        ticket.enter(&policies(policy)).map(|it| (it.ttl_s, it.flags))
    }

    #[test]
    fn a_policy_sets_the_life_and_the_use_of_tokens() {
        let of = |token_ttl_s, single_use| {
            let policy = Policy { token_ttl_s, single_use, ..Policy::default() };
            enter(Role::Viewer, 0, policy).unwrap()
        };

        assert_eq!(of(20, true), (20, flag::MAY_SEND | flag::SINGLE_USE));
        assert_eq!(of(0, false), (1, flag::MAY_SEND));
        assert_eq!(of(999, false), (TTL_S_MAX, flag::MAY_SEND));
    }

    #[test]
    fn what_a_ticket_does_not_claim_costs_what_the_policy_says() {
        let flags = |policy: Policy, caps| {
            enter(Role::Moderator, caps, Policy { single_use: false, ..policy }).map(|it| it.1)
        };
        let may = flag::MODERATOR | flag::MAY_SEND;
        let read = Policy { unverified: Access::Read, minors: Access::Read, ..Policy::default() };
        let verified = Policy { unverified: Access::Refuse, ..Policy::default() };
        let adults = Policy { minors: Access::Refuse, ..Policy::default() };
        let both = Policy { unverified: Access::Refuse, minors: Access::Refuse, ..adults };

        assert_eq!(flags(Policy::default(), cap::MINOR), Ok(may));
        assert_eq!(flags(read, cap::VERIFIED), Ok(may));
        assert_eq!(flags(read, 0), Ok(flag::MODERATOR));
        assert_eq!(flags(read, cap::VERIFIED | cap::MINOR), Ok(flag::MODERATOR));
        assert_eq!(flags(verified, cap::VERIFIED), Ok(may));
        assert_eq!(flags(verified, 0), Err(Refusal::NotVerified));
        assert_eq!(flags(adults, 0), Ok(may));
        assert_eq!(flags(adults, cap::VERIFIED | cap::MINOR), Err(Refusal::MinorsRefused));
        assert_eq!(flags(both, cap::MINOR), Err(Refusal::NotVerified));
    }

    #[test]
    fn without_a_ticket_the_policy_decides_what_a_viewer_may() {
        let without = |entry, unverified| {
            let policies =
                policies(Policy { entry, unverified, single_use: false, ..Policy::default() });
            let asker = Asker::Passing { app: APP, room: &room(), account: &Account::ROOM };
            asker.enter(&policies).map(|it| (it.by, it.flags, it.caps))
        };

        let sends = flag::NO_TICKET | flag::MAY_SEND;
        assert_eq!(without(Entry::Open, Access::Send), Ok((By::Open, sends, 0)));
        assert_eq!(without(Entry::Open, Access::Read), Ok((By::Open, flag::NO_TICKET, 0)));
        assert_eq!(without(Entry::Open, Access::Refuse), Err(Refusal::NotVerified));
        let reads = flag::NO_TICKET | flag::GUEST;
        assert_eq!(without(Entry::Guest, Access::Send), Ok((By::Guest, reads, 0)));
        assert_eq!(without(Entry::Token, Access::Send), Err(Refusal::TicketRequired));
    }

    #[test]
    fn a_passing_account_is_its_number() {
        let policies = policies(Policy { entry: Entry::Open, ..Policy::default() });
        let account = |number| {
            let mut account = Account::ROOM;
            account.write(&number);
            let asker = Asker::Passing { app: APP, room: &room(), account: &account };
            let account = asker.enter(&policies).unwrap().account.to_vec();
            ViewerId::parse(str::from_utf8(&account).unwrap()).unwrap()
        };

        assert_eq!(account([0; 16]).as_str(), "anon-00000000000000000000000000000000");
        assert_eq!(account([0xff; 16]).as_str(), "anon-ffffffffffffffffffffffffffffffff");
    }
}
