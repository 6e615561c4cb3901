//! Whether a credential opens a session: keys, revocations, used tokens.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use auth_core::derive::LinkId;
use auth_core::keyring::LinkKeyring;
use auth_core::replay::Replays;
use auth_core::resume::{self, NONCE_BYTES};
use auth_core::revocation::Revocations;
use auth_core::token::{self, Rooms, Scope, cap, flag};
use link_core::hub::Member;
use parking_lot::{Mutex, RwLock};
use proto::close::CloseCode;
use proto::control::Fact;
use proto::frame::{Credential, Login};
use proto::id::{AppId, DeviceId, RoomId, ViewerId};
use proto::item::Role;
use proto::time::Wall;
use tokio::sync::Notify;

/// Decides who may come in.
#[derive(Debug)]
pub(crate) struct Door {
    keys: ArcSwapOption<LinkKeyring>,
    revocations: RwLock<Revocations>,
    replays: Mutex<Replays>,
    /// Rung when there may be keys of another epoch.
    pub(crate) refetch: Notify,
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
}

impl Pass {
    pub(crate) const fn role(&self) -> Role {
        token::role(self.flags, self.caps)
    }

    pub(crate) const fn may_send(&self) -> bool {
        self.flags & flag::MAY_SEND != 0
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
    pub(crate) fn new(replays_max: usize, revocations_max: usize) -> Self {
        Self {
            keys: ArcSwapOption::empty(),
            revocations: RwLock::new(Revocations::new(revocations_max)),
            replays: Mutex::new(Replays::new(replays_max)),
            refetch: Notify::new(),
        }
    }

    /// Takes a new answer of the auth service in place of the last one.
    pub(crate) fn replace_keys(&self, keys: LinkKeyring) {
        self.keys.store(Some(Arc::new(keys)));
    }

    /// How long logins survive without another answer, in seconds.
    pub(crate) fn horizon_s(&self, now: Wall) -> u64 {
        self.keys.load().as_ref().map_or(0, |it| it.horizon(now).as_secs())
    }

    /// Takes note of a fact about kicks, bans and void epochs.
    pub(crate) fn learn(&self, fact: &Fact, now: Wall) {
        self.revocations.write().handle(fact, now);
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
        let Some(keys) = keys.as_deref() else {
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
        let revocations = self.revocations.read();
        let scope = Scope { keys, links: &[link], revocations: &revocations };
        let claims = token::verify(text, &scope, &mut self.replays.lock(), now)
            .map_err(|it| Shut { code: it.close_code(), name: it.name() })?;
        Ok(Pass {
            app: claims.app,
            viewer: claims.account,
            device: claims.device,
            rooms: claims.rooms,
            flags: claims.flags,
            caps: claims.caps,
            iat_s: claims.iat_s,
        })
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
            flags: pass.flags,
            caps: pass.caps,
            account: pass.viewer.clone(),
            device: pass.device.clone(),
            rooms: pass.rooms.clone(),
        };
        resume::seal(&claims, key, nonce)
    }
}
