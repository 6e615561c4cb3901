//! Whether a conversation's credential is taken, and when to come back if it is not.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use auth_core::token::Unverified;
use link_core::session::{Claim, Denial, Grant, Input};
use proto::close::CloseCode;
use proto::frame::Credential;
use proto::id::{AppId, ViewerId};
use proto::time::millis;
use subtle::ConstantTimeEq;

use super::Conversation;
use crate::config::ms;
use crate::door::{Pass, Shut};

/// Proof that both ends saw the same Hello and Welcome, where there is a TLS connection.
type Confirm = Option<[u8; 32]>;

impl Conversation {
    pub(super) fn verify(&mut self, claim: &Claim) {
        let input = match self.check(claim) {
            Ok(grant) => {
                self.node().counts.login(if claim.refresh { "refreshed" } else { "ok" });
                Input::Granted(Box::new(grant))
            }
            Err(shut) => {
                self.node().counts.login(shut.name);
                let retry_after_ms = self.retry_after_ms(&shut);
                Input::Denied(Denial { code: shut.code, retry_after_ms })
            }
        };
        self.session.handle(input, self.node().now());
    }

    fn check(&mut self, claim: &Claim) -> Result<Grant, Shut> {
        let node = Arc::clone(&self.presence.node);
        if !claim.refresh {
            if node.is_draining() {
                return Err(Shut::of(CloseCode::Draining));
            }
            if node.traffic.sessions.load(Ordering::Relaxed) >= node.config.sessions_max {
                return Err(Shut::of(CloseCode::Full));
            }
            // A refresh goes on: what is learned later still finds the session.
            if !node.door.is_current(node.clock.mono()) {
                return Err(Shut::named(CloseCode::Unavailable, "control_behind"));
            }
            node.look(claim).inspect_err(|_| self.presence.excuse())?;
        }
        let (pass, confirm) = self.check_credential(claim)?;
        if node.door.wants_ticket(&pass.permit) {
            return Err(Shut::of(CloseCode::TicketRequired));
        }
        let grant = self.grant(&pass, confirm);
        if claim.refresh {
            self.presence.renew(pass.permit)?;
        } else {
            // From here on a kick finds the session; one that came before is found now.
            self.presence.arrive(pass.permit);
            self.presence.check_kicks()?;
        }
        Ok(grant)
    }

    /// Checks the binder and what it binds, unless too many logins failed lately that named the
    /// same account and came from here.
    fn check_credential(&self, claim: &Claim) -> Result<(Pass, Confirm), Shut> {
        let node = self.node();
        let named = self.named(claim);
        if let Some((app, account, site)) = &named {
            let admitted = node.failures.lock().admit(*app, account, *site, node.clock.mono());
            admitted.map_err(|wait| Shut {
                wait,
                ..Shut::named(CloseCode::RateLimited, "account_limited")
            })?;
        }
        let confirm = if claim.refresh { Ok(None) } else { self.check_binder(claim) };
        let checked = confirm.and_then(|confirm| {
            let (link, session) = (self.listener.link, self.presence.session());
            let pass = node.door.check(&claim.login, link, session, node.clock.wall())?;
            Ok((pass, confirm))
        });
        if let Some((app, account, site)) = named {
            match &checked {
                Ok(_) => node.failures.lock().forget(app, account, site),
                Err(shut) if is_fault_of_credential(shut.code) => {
                    node.failures.lock().failed(app, account, site, node.clock.mono());
                }
                Err(_) => {}
            }
        }
        checked
    }

    /// The account that a login says it is of, and where it comes from.
    ///
    /// Over a plain connection nobody asks, unless it says whose it is: terminators stand behind
    /// those, and one address is everybody's. What a resume ticket names cannot be read before its
    /// seal is checked.
    fn named(&self, claim: &Claim) -> Option<(AppId, ViewerId, IpAddr)> {
        let Credential::Token(text) = &claim.login.credential else {
            return None;
        };
        if claim.refresh || self.presence.exporter().is_none() && !self.presence.is_named() {
            return None;
        }
        let claims = Unverified::read(text).ok()?.claims;
        Some((claims.app, claims.account, self.presence.address()?))
    }

    fn grant(&self, pass: &Pass, confirm: Confirm) -> Grant {
        let config = &self.node().config;
        Grant {
            member: Arc::clone(&pass.permit.member),
            rooms: pass.permit.rooms.to_vec(),
            life: ms(self.node().draw_ms(config.life_ms_min, config.life_ms_max)),
            confirm,
            resume_ticket: self.node().door.resume_ticket(pass, self.node().clock.wall()),
        }
    }

    /// Whether the login belongs to this TLS connection; returns the proof that we saw the same
    /// offer and answer.
    fn check_binder(&self, claim: &Claim) -> Result<Confirm, Shut> {
        let bad = Shut::of(CloseCode::BadBinder);
        let credential = match &claim.login.credential {
            Credential::Token(text) | Credential::ResumeTicket(text) => text.as_bytes(),
        };
        match (claim.login.binder, self.presence.exporter()) {
            (Some(found), Some(exporter)) => {
                let expected = channel::binder(exporter, &claim.hello, credential);
                if bool::from(expected.ct_eq(&found)) {
                    Ok(Some(channel::confirm(exporter, &claim.hello, &claim.welcome)))
                } else {
                    Err(bad)
                }
            }
            (Some(_), None) => Err(bad),
            (None, _) if self.listener.must_bind => Err(bad),
            (None, _) => Ok(None),
        }
    }

    /// When to come back: drawn, so that many do not come at once.
    pub(super) fn retry_after_ms(&self, shut: &Shut) -> u32 {
        let later = [
            CloseCode::TokenInvalid,
            CloseCode::TokenEpoch,
            CloseCode::Unavailable,
            CloseCode::RateLimited,
            CloseCode::KickedLately,
        ];
        let drawn = if shut.code == CloseCode::Draining {
            self.node().draw_ms(0, self.node().config.drain_ms)
        } else if shut.code == CloseCode::Full {
            self.node().draw_ms(1_000, 5_000)
        } else if later.contains(&shut.code) {
            self.node().draw_ms(500, 2_000)
        } else {
            0
        };
        let wait = u32::try_from(millis(shut.wait)).unwrap_or(u32::MAX);
        wait.saturating_add(drawn)
    }
}

/// Whether it is the token that is wrong, and not what this node knows or has room for.
fn is_fault_of_credential(code: CloseCode) -> bool {
    let faults = [
        CloseCode::TokenInvalid,
        CloseCode::TokenExpired,
        CloseCode::TokenElsewhere,
        CloseCode::TokenReplayed,
        CloseCode::BadBinder,
    ];
    faults.contains(&code)
}
