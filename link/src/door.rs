//! Whether a credential opens a session: keys, revocations, used tokens, policies. And whether
//! enough is known to say so.

mod shut;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use auth_core::derive::LinkId;
use auth_core::keyring::{KeyError, LinkKeyring};
use auth_core::policy::{Policies, SdkPolicy, access};
use auth_core::replay::Replays;
use auth_core::resume::{self, NONCE_BYTES};
use auth_core::revocation::{Revocations, Standing};
use auth_core::token::{self, Rooms, Scope, Selector, Verified, cap, flag};
use link_core::hub::Member;
use link_core::knowledge::Knowledge;
use parking_lot::{Mutex, MutexGuard, RwLock};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::frame::{Credential, Login};
use proto::id::{AppId, DeviceId, RoomId, SessionId, ViewerId};
use proto::item::Role;
use proto::policy::Access;
use proto::time::{Mono, Wall, millis};
use tokio::sync::Notify;

use crate::config::{Config, ms};
use crate::counts::Counts;
use crate::kept::Answer;
use crate::used::{Use, Used};

pub(crate) use shut::Shut;

/// A token bears a time that is at most so much before the one when it was minted, as a rule.
const MINT_LAG: Duration = Duration::from_secs(2);

/// Decides who may come in.
#[derive(Debug)]
pub(crate) struct Door {
    keys: ArcSwapOption<LinkKeyring>,
    /// The farthest that keys ever reached when they were fetched, in milliseconds.
    reach_ms: AtomicU64,
    revocations: RwLock<Revocations>,
    replays: Mutex<Replays>,
    used: Used,
    counts: Counts,
    policies: RwLock<Policies>,
    sdks: ArcSwap<SdkPolicy>,
    /// How old all of this is, the keys aside.
    knowledge: Mutex<Knowledge>,
    /// Older, and nobody is let in.
    age_max: Duration,
    /// Rung when there may be keys of another epoch.
    pub(crate) refetch: Notify,
}

/// How long keys reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Horizon {
    /// From now on.
    pub(crate) left: Duration,
    /// Those of any answer, when it was fetched.
    pub(crate) most: Duration,
}

/// What a good credential says.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    pub(crate) permit: Permit,
    device: Option<DeviceId>,
    /// Master and epoch of the permission; resume tickets take them over.
    origin: (u8, u32),
}

/// What counts of a pass as long as its session lives.
#[derive(Clone, Debug)]
pub(crate) struct Permit {
    pub(crate) member: Arc<Member>,
    pub(crate) rooms: Rooms,
    flags: u8,
    caps: u16,
    /// When permission was issued; resume tickets take it over, so that a kick in between counts.
    iat_s: u32,
    /// Where the session comes from; known once it has arrived.
    pub(crate) address: Option<SocketAddr>,
    /// What it comes with, as the token or the client says.
    pub(crate) device: Option<DeviceId>,
}

/// Claims of a token or of a resume ticket.
struct Said {
    app: AppId,
    account: ViewerId,
    device: Option<DeviceId>,
    rooms: Rooms,
    flags: u8,
    caps: u16,
    iat_s: u32,
    origin: (u8, u32),
}

impl Said {
    fn pass(self, session: SessionId) -> Pass {
        let Self { app, account, device, rooms, flags, caps, iat_s, origin } = self;
        let member = Member {
            session,
            app,
            viewer: account,
            role: token::role(flags, caps),
            may_send: flags & flag::MAY_SEND != 0,
        };
        let permit = Permit {
            member: Arc::new(member),
            rooms,
            flags,
            caps,
            iat_s,
            address: None,
            device: device.clone(),
        };
        Pass { permit, device, origin }
    }
}

impl Permit {
    /// Whether no ticket stands behind it, only what rooms allow at the moment.
    pub(crate) const fn is_ticketless(&self) -> bool {
        self.flags & flag::NO_TICKET != 0
    }

    /// Whether it keeps the push in hot rooms, if it asks for it.
    pub(crate) fn is_promoted(&self) -> bool {
        matches!(self.member.role, Role::Moderator | Role::Host) || self.caps & cap::PROMOTED != 0
    }

    pub(crate) const fn issued(&self) -> Wall {
        Wall(self.iat_s as u64 * 1000)
    }
}

impl Door {
    /// A door that knows no more than the apps' own `policies`, and which tokens were used before
    /// this process began.
    ///
    /// # Errors
    /// When used tokens cannot be kept.
    pub(crate) fn open(
        config: &Config,
        policies: Policies,
        counts: Counts,
        now: Wall,
    ) -> anyhow::Result<Self> {
        let (used, uses) = Used::open(&config.data, config.replays_max, now)?;
        let mut replays = Replays::new(config.replays_max);
        for Use { jti, ends } in uses {
            // One that is there twice is known, and of more than are remembered, some are.
            replays.take(jti, ends, now).ok();
        }
        Ok(Self {
            keys: ArcSwapOption::empty(),
            reach_ms: AtomicU64::new(0),
            revocations: RwLock::new(Revocations::new(config.revocations_max)),
            replays: Mutex::new(replays),
            used,
            counts,
            policies: RwLock::new(policies),
            sdks: ArcSwap::default(),
            knowledge: Mutex::default(),
            age_max: ms(config.control_ms_max),
            refetch: Notify::new(),
        })
    }

    /// Takes an answer of the auth service in place of the last one.
    ///
    /// # Errors
    /// When it is not usable; the last one stays.
    pub(crate) fn take_keys(&self, answer: &Answer) -> Result<(), KeyError> {
        let keys = LinkKeyring::new(&answer.keys)?;
        self.reach_ms.fetch_max(millis(keys.horizon(answer.fetched)), Ordering::Relaxed);
        self.keys.store(Some(Arc::new(keys)));
        Ok(())
    }

    /// How long logins survive without another answer.
    pub(crate) fn horizon(&self, now: Wall) -> Horizon {
        let left = self.keys.load().as_ref().map_or(Duration::ZERO, |it| it.horizon(now));
        Horizon { left, most: Duration::from_millis(self.reach_ms.load(Ordering::Relaxed)) }
    }

    /// Takes note of a fact about kicks, bans, void epochs, policies and SDKs.
    pub(crate) fn learn(&self, fact: &Fact, now: Wall) {
        match fact {
            Fact::Policy(_) => self.policies.write().handle(fact),
            Fact::Sdk(_) => {
                let mut sdks = SdkPolicy::clone(&self.sdks.load());
                sdks.handle(fact);
                self.sdks.store(Arc::new(sdks));
            }
            Fact::Kick { .. }
            | Fact::Ban { .. }
            | Fact::Revoked { .. }
            | Fact::Epoch(_)
            | Fact::Room(_)
            | Fact::Mute { .. }
            | Fact::Close { .. }
            | Fact::Keep { .. }
            | Fact::Heat { .. }
            | Fact::Bases { .. }
            | Fact::Move { .. }
            | Fact::Lease(_)
            | Fact::Words { .. }
            | Fact::Catalogue(_)
            | Fact::Exclude { .. }
            | Fact::Person { .. }
            | Fact::Attribute { .. }
            | Fact::Sealed { .. } => self.revocations.write().handle(fact, now),
        }
    }

    /// How old what was learned is.
    pub(crate) fn knowledge(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge.lock()
    }

    /// Whether enough is known to let somebody in.
    pub(crate) fn is_current(&self, now: Mono) -> bool {
        self.knowledge().age(now).is_some_and(|it| it <= self.age_max)
    }

    /// What is asked of SDKs now.
    pub(crate) fn sdks(&self) -> Arc<SdkPolicy> {
        self.sdks.load_full()
    }

    /// What is allowed in a room, by the policy in force now.
    pub(crate) fn access(&self, permit: &Permit, room: &RoomId) -> Access {
        let policy = self.policies.read().of_room(permit.member.app, room);
        let access = access(&policy, permit.flags, permit.caps);
        if permit.member.may_send { access } else { access.max(Access::Read) }
    }

    /// Whether what let somebody in without a ticket holds no more, in any of the rooms.
    pub(crate) fn wants_ticket(&self, permit: &Permit) -> bool {
        let is_refused = |room| self.access(permit, room) == Access::Refuse;
        permit.is_ticketless() && permit.rooms.iter().all(is_refused)
    }

    /// Forgets revocations that do not count any more.
    pub(crate) fn tick(&self, now: Wall) {
        self.revocations.write().tick(now);
    }

    pub(crate) fn is_banned(&self, member: &Member, room: &RoomId, now: Wall) -> bool {
        let rooms = std::slice::from_ref(room);
        self.revocations.read().is_banned(member.app, rooms, &member.viewer, now)
    }

    /// Whether the session's device or its address is excluded from a room.
    pub(crate) fn is_excluded(&self, permit: &Permit, room: &RoomId, now: Wall) -> bool {
        let (rooms, device) = (std::slice::from_ref(room), permit.device.as_ref());
        let address = permit.address.map(|it| it.ip());
        self.revocations.read().is_excluded(permit.member.app, rooms, device, address, now)
    }

    /// Whether kicks let the session be here; if not, why. One that is in doubt is let in nowhere: a
    /// gslb whose clock is ahead may have minted it before the kick.
    pub(crate) fn check_kicks(&self, permit: &Permit, now: Wall) -> Result<(), Shut> {
        let Permit { member, rooms, .. } = permit;
        let Member { app, viewer, .. } = &**member;
        let skew = Duration::from_secs(self.policies.read().of(*app, rooms).skew_s.into());
        match self.revocations.read().standing(*app, rooms, viewer, permit.issued(), skew) {
            Standing::Good => Ok(()),
            Standing::Kicked => Err(Shut::of(CloseCode::Kicked)),
            Standing::Doubtful { until } => {
                // Tokens bear whole seconds, and the time up to which their gslb knew `control`.
                let wait = until.since(now) + MINT_LAG;
                Err(Shut { wait, ..Shut::of(CloseCode::KickedLately) })
            }
        }
    }

    /// Checks the credential of a login of a `session` that came in on the listener `link`.
    pub(crate) fn check(
        &self,
        login: &Login,
        link: LinkId,
        session: SessionId,
        now: Wall,
    ) -> Result<Pass, Shut> {
        let keys = self.keys.load();
        let Some(keys) = keys.as_deref().filter(|it| !it.horizon(now).is_zero()) else {
            return Err(Shut::named(CloseCode::Unavailable, "no_keys"));
        };
        let said = match &login.credential {
            Credential::Token(text) => self.token(text, keys, link, now)?,
            Credential::ResumeTicket(text) => self.ticket(text, keys, now)?,
        };
        match (&said.device, &login.device) {
            (Some(named), Some(found)) if named != found => {
                Err(Shut::named(CloseCode::TokenInvalid, "device"))
            }
            (_, found) => {
                let mut pass = said.pass(session);
                // A ticket is not sealed for a device that the token did not name.
                pass.permit.device = pass.permit.device.or_else(|| found.clone());
                Ok(pass)
            }
        }
    }

    fn token(&self, text: &str, keys: &LinkKeyring, link: LinkId, now: Wall) -> Result<Said, Shut> {
        let (claims, selector) = self.verify(text, keys, link, now)?;
        if claims.has_flag(flag::SINGLE_USE) {
            let noted = self.used.note(Use { jti: claims.jti, ends: claims.ends() }, now);
            if noted.is_err() {
                self.counts.unkept_uses.inc();
            }
        }
        Ok(Said {
            app: claims.app,
            account: claims.account,
            device: claims.device,
            rooms: claims.rooms,
            flags: claims.flags,
            caps: claims.caps,
            iat_s: claims.iat_s,
            origin: (selector.kid, selector.epoch),
        })
    }

    fn verify(
        &self,
        text: &str,
        keys: &LinkKeyring,
        link: LinkId,
        now: Wall,
    ) -> Result<(token::Claims, Selector), Shut> {
        let (revocations, policies) = (self.revocations.read(), self.policies.read());
        let scope = Scope { keys, links: &[link], policies: &policies, revocations: &revocations };
        let said = |it: Verified<'_>| (it.claims(), it.selector());
        token::verify_with(text, &scope, &mut self.replays.lock(), now, said)
            .map_err(|it| Shut::named(it.close_code(), it.name()))
    }

    fn ticket(&self, text: &str, keys: &LinkKeyring, now: Wall) -> Result<Said, Shut> {
        let claims = resume::open(text, keys, &self.revocations.read(), now)
            .map_err(|it| Shut::named(it.close_code(), it.name()))?;
        Ok(Said {
            app: claims.app,
            account: claims.account,
            device: claims.device,
            rooms: claims.rooms,
            flags: claims.flags,
            caps: claims.caps,
            iat_s: claims.iat_s,
            origin: (claims.kid, claims.epoch),
        })
    }

    /// A ticket for the next login; empty where there is no key for it.
    pub(crate) fn resume_ticket(&self, pass: &Pass, now: Wall) -> String {
        let keys = self.keys.load();
        let key = keys.as_deref().and_then(|it| it.sealing_key(now));
        let (Some(key), Ok(nonce)) = (key, kit::seed::random_bytes::<NONCE_BYTES>()) else {
            return String::new();
        };
        let Permit { member, rooms, flags, caps, iat_s, .. } = &pass.permit;
        let claims = resume::Claims {
            app: member.app,
            iat_s: *iat_s,
            kid: pass.origin.0,
            epoch: pass.origin.1,
            flags: *flags,
            caps: *caps,
            account: member.viewer.clone(),
            device: pass.device.clone(),
            rooms: rooms.clone(),
        };
        resume::seal(&claims, key, nonce)
    }
}
