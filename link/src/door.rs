//! Whether a credential opens a session: keys, revocations, used tokens, policies. And whether
//! enough is known to say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use auth_core::derive::LinkId;
use auth_core::keyring::{KeyError, LinkKeyring};
use auth_core::policy::{Policies, SdkPolicy, access};
use auth_core::replay::Replays;
use auth_core::resume::{self, NONCE_BYTES};
use auth_core::revocation::Revocations;
use auth_core::token::{self, Rooms, Scope, Selector, Verified, cap, flag};
use link_core::hub::Member;
use link_core::knowledge::Knowledge;
use parking_lot::{Mutex, MutexGuard, RwLock};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::frame::{Credential, Login};
use proto::id::{AppId, DeviceId, RoomId, ViewerId};
use proto::item::Role;
use proto::policy::Access;
use proto::time::{Mono, Wall, millis};
use tokio::sync::Notify;

use crate::config::{Config, ms};
use crate::kept::Answer;

/// Decides who may come in.
#[derive(Debug)]
pub(crate) struct Door {
    keys: ArcSwapOption<LinkKeyring>,
    /// The farthest that keys ever reached when they were fetched, in milliseconds.
    reach_ms: AtomicU64,
    revocations: RwLock<Revocations>,
    replays: Mutex<Replays>,
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
    pub(crate) app: AppId,
    pub(crate) viewer: ViewerId,
    pub(crate) device: Option<DeviceId>,
    pub(crate) rooms: Rooms,
    flags: u8,
    caps: u16,
    /// When permission was issued; resume tickets take it over, so that a kick in between counts.
    iat_s: u32,
    /// Master and epoch of that permission, taken over likewise.
    origin: (u8, u32),
}

impl Pass {
    fn of(claims: token::Claims, selector: Selector) -> Self {
        Self {
            app: claims.app,
            viewer: claims.account,
            device: claims.device,
            rooms: claims.rooms,
            flags: claims.flags,
            caps: claims.caps,
            iat_s: claims.iat_s,
            origin: (selector.kid, selector.epoch),
        }
    }

    pub(crate) const fn role(&self) -> Role {
        token::role(self.flags, self.caps)
    }

    pub(crate) const fn may_send(&self) -> bool {
        self.flags & flag::MAY_SEND != 0
    }

    /// Whether no ticket stands behind it, only what rooms allow at the moment.
    pub(crate) const fn is_ticketless(&self) -> bool {
        self.flags & flag::NO_TICKET != 0
    }

    /// Whether it keeps the push in hot rooms, if it asks for it.
    pub(crate) const fn is_promoted(&self) -> bool {
        matches!(self.role(), Role::Moderator | Role::Host) || self.caps & cap::PROMOTED != 0
    }

    pub(crate) const fn issued(&self) -> Wall {
        Wall(self.iat_s as u64 * 1000)
    }
}

/// Why a credential does not open a session: the code, and the word in metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shut {
    pub(crate) code: CloseCode,
    pub(crate) name: &'static str,
}

impl Shut {
    pub(crate) const fn of(code: CloseCode) -> Self {
        Self { code, name: code.name() }
    }
}

impl Door {
    /// A door that knows no more than the apps' own `policies`.
    pub(crate) fn new(config: &Config, policies: Policies) -> Self {
        Self {
            keys: ArcSwapOption::empty(),
            reach_ms: AtomicU64::new(0),
            revocations: RwLock::new(Revocations::new(config.revocations_max)),
            replays: Mutex::new(Replays::new(config.replays_max)),
            policies: RwLock::new(policies),
            sdks: ArcSwap::default(),
            knowledge: Mutex::default(),
            age_max: ms(config.control_ms_max),
            refetch: Notify::new(),
        }
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
            | Fact::Lease(_) => self.revocations.write().handle(fact, now),
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

    /// What the pass allows in a room, by the policy in force now.
    pub(crate) fn access(&self, pass: &Pass, room: &RoomId) -> Access {
        let policy = self.policies.read().of_room(pass.app, room);
        let access = access(&policy, pass.flags, pass.caps);
        if pass.may_send() { access } else { access.max(Access::Read) }
    }

    /// Whether what let the pass in without a ticket holds no more, in any of its rooms.
    pub(crate) fn wants_ticket(&self, pass: &Pass) -> bool {
        pass.is_ticketless()
            && pass.rooms.iter().all(|it| self.access(pass, it) == Access::Refuse)
    }

    /// Forgets revocations that do not count any more.
    pub(crate) fn tick(&self, now: Wall) {
        self.revocations.write().tick(now);
    }

    pub(crate) fn is_banned(&self, member: &Member, room: &RoomId, now: Wall) -> bool {
        let rooms = std::slice::from_ref(room);
        self.revocations.read().is_banned(member.app, rooms, &member.viewer, now)
    }

    /// Whether a kick counts against the pass.
    pub(crate) fn is_kicked(&self, pass: &Pass) -> bool {
        let revocations = self.revocations.read();
        revocations.is_kicked(pass.app, &pass.rooms, &pass.viewer, pass.issued())
    }

    /// Checks the credential of a login that came in on the listener `link`.
    pub(crate) fn check(&self, login: &Login, link: LinkId, now: Wall) -> Result<Pass, Shut> {
        let keys = self.keys.load();
        let Some(keys) = keys.as_deref().filter(|it| !it.horizon(now).is_zero()) else {
            return Err(Shut { code: CloseCode::Unavailable, name: "no_keys" });
        };
        let pass = match &login.credential {
            Credential::Token(text) => self.token(text, keys, link, now)?,
            Credential::ResumeTicket(text) => self.ticket(text, keys, now)?,
        };
        match (&pass.device, &login.device) {
            (Some(named), Some(found)) if named != found => {
                Err(Shut { code: CloseCode::TokenInvalid, name: "device" })
            }
            _ => Ok(pass),
        }
    }

    fn token(&self, text: &str, keys: &LinkKeyring, link: LinkId, now: Wall) -> Result<Pass, Shut> {
        let (revocations, policies) = (self.revocations.read(), self.policies.read());
        let scope = Scope { keys, links: &[link], policies: &policies, revocations: &revocations };
        let pass = |it: Verified<'_>| Pass::of(it.claims(), it.selector());
        token::verify_with(text, &scope, &mut self.replays.lock(), now, pass)
            .map_err(|it| Shut { code: it.close_code(), name: it.name() })
    }

    fn ticket(&self, text: &str, keys: &LinkKeyring, now: Wall) -> Result<Pass, Shut> {
        let claims = resume::open(text, keys, &self.revocations.read(), now)
            .map_err(|it| Shut { code: it.close_code(), name: it.name() })?;
        Ok(Pass {
            app: claims.app,
            viewer: claims.account,
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
        let claims = resume::Claims {
            app: pass.app,
            iat_s: pass.iat_s,
            kid: pass.origin.0,
            epoch: pass.origin.1,
            flags: pass.flags,
            caps: pass.caps,
            account: pass.viewer.clone(),
            device: pass.device.clone(),
            rooms: pass.rooms.clone(),
        };
        resume::seal(&claims, key, nonce)
    }
}
