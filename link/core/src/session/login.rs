//! From Hello to LoginOk.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use auth_core::policy::SdkPolicy;
use bytes::Bytes;
use proto::close::CloseCode;
use proto::envelope::Act;
use proto::frame::{
    Codec, Downlink, Hello, Join, JoinOutcome, Joined, Login, LoginOk, PROTO_VERSION, Refused,
    Welcome,
};
use proto::limits::ROOMS_PER_SESSION_MAX;
use proto::policy::SdkAct;
use proto::time::{Mono, millis};

use super::open::Open;
use super::{Claim, Denial, Grant, Output, Phase, Session};
use crate::Now;

/// Versions spoken here.
const PROTO_VERSIONS: RangeInclusive<u16> = PROTO_VERSION..=PROTO_VERSION;

/// Before Hello.
#[derive(Debug)]
pub(super) struct Greeting {
    /// When the connection was accepted.
    pub(super) started: Mono,
    /// When the handshake was over.
    pub(super) since: Mono,
    /// What is asked of SDKs; nothing, if it is none.
    pub(super) sdks: Option<Arc<SdkPolicy>>,
}

/// Before Login.
#[derive(Debug)]
pub(super) struct Welcomed {
    pub(super) started: Mono,
    /// When Hello came.
    pub(super) since: Mono,
    hello: Bytes,
    welcome: Bytes,
}

/// A login on its way.
#[derive(Debug)]
pub(super) struct Entering {
    pub(super) started: Mono,
    joins: VecDeque<Join>,
    grant: Option<Grant>,
    answers: Vec<Joined>,
}

impl Entering {
    pub(super) const fn grant(&self) -> Option<&Grant> {
        self.grant.as_ref()
    }
}

impl Session {
    pub(super) fn hello(&mut self, hello: &Hello, frame: &Bytes, now: Now) {
        let Phase::Hello(greeting) = &self.phase else {
            return;
        };
        let (started, sdks) = (greeting.started, greeting.sdks.as_ref());
        let act = sdks.map_or(SdkAct::Allow, |it| it.act(&hello.sdk, &hello.sdk_version));
        if act == SdkAct::Refuse {
            self.refuse(CloseCode::UpgradeRequired, 0, now);
            return;
        }
        let proto = highest_common(hello.proto_min..=hello.proto_max, PROTO_VERSIONS);
        let is_offered = hello.suites.iter().any(|it| it == self.suite.name());
        let Some(proto) = proto.filter(|_| is_offered) else {
            self.refuse(CloseCode::NoCommonVersion, 0, now);
            return;
        };
        if self.limits.compress {
            self.codec = Codec::first_of(&hello.codecs);
        }
        let ms = |duration| u32::try_from(millis(duration)).unwrap_or(u32::MAX);
        let welcome = Downlink::Welcome(Welcome {
            proto,
            suite: self.suite.name().to_owned(),
            codec: self.codec.name().to_owned(),
            heartbeat_ms: ms(self.limits.heartbeat),
            silence_ms: ms(self.limits.silence),
            frame_bytes_max: self.limits.frame_bytes_max,
            upgrade: act == SdkAct::Warn,
            server_ms: now.wall,
            nonce: hello.nonce,
        });
        let (hello, welcome_frame) = (frame.clone(), welcome.encode());
        let welcomed = Welcomed { started, since: now.mono, hello, welcome: welcome_frame };
        self.phase = Phase::Login(Box::new(welcomed));
        self.outputs.push(Output::Send(welcome));
    }

    pub(super) fn login(&mut self, mut login: Login) {
        if login.joins.len() > ROOMS_PER_SESSION_MAX {
            self.close(CloseCode::BadFrame);
            return;
        }
        let joins = std::mem::take(&mut login.joins);
        let rooms = joins.iter().map(|it| it.room.clone()).collect();
        let Phase::Login(welcomed) = std::mem::replace(&mut self.phase, Phase::Closed) else {
            return;
        };
        let Welcomed { started, hello, welcome, .. } = *welcomed;
        let entering = Entering { started, joins: joins.into(), grant: None, answers: Vec::new() };
        self.phase = Phase::Entering(Box::new(entering));
        let claim = Claim { hello, welcome, login, rooms, refresh: false };
        self.outputs.push(Output::Verify(Box::new(claim)));
    }

    pub(super) fn granted(&mut self, grant: Grant, now: Now) {
        match &mut self.phase {
            Phase::Entering(entering) => {
                entering.grant = Some(grant);
                self.enter_next(now);
            }
            Phase::Open(_) => self.refreshed(grant, now),
            Phase::Hello(_) | Phase::Login(_) | Phase::Closed => {}
        }
    }

    pub(super) fn denied(&mut self, denial: Denial, now: Now) {
        match &self.phase {
            Phase::Entering(_) => self.refuse(denial.code, denial.retry_after_ms, now),
            // What may go better later costs nobody a session that still lives.
            Phase::Open(_) if denial.code.comes_back() => {
                self.outputs.push(Output::Send(refused(denial, now)));
            }
            Phase::Open(_) => self.close(denial.code),
            Phase::Hello(_) | Phase::Login(_) | Phase::Closed => {}
        }
    }

    pub(super) fn joined(&mut self, joined: Joined, now: Now) {
        match &mut self.phase {
            Phase::Entering(entering) => {
                entering.answers.push(joined);
                self.enter_next(now);
            }
            Phase::Open(_) => self.joined_later(joined, now),
            Phase::Hello(_) | Phase::Login(_) | Phase::Closed => {}
        }
    }

    /// Asks for the next room of the login, or ends the login when there is none.
    fn enter_next(&mut self, now: Now) {
        let Phase::Entering(entering) = &mut self.phase else {
            return;
        };
        let Some(grant) = &entering.grant else {
            return;
        };
        while let Some(join) = entering.joins.pop_front() {
            if grant.rooms.contains(&join.room) {
                self.outputs.push(Output::Join(join));
                return;
            }
            entering.answers.push(not_allowed(join));
        }
        let answers = std::mem::take(&mut entering.answers);
        if let Some(grant) = entering.grant.take() {
            self.begin(grant, answers, now);
        }
    }

    fn begin(&mut self, grant: Grant, rooms: Vec<Joined>, now: Now) {
        let mut open = Open::new(&grant, &self.limits, now);
        let login_ok = LoginOk {
            session: grant.member.session,
            role: grant.member.role,
            confirm: grant.confirm,
            expires: now.wall + grant.life,
            resume_ticket: grant.resume_ticket,
            rooms: Vec::new(),
        };
        let entered = rooms.iter().filter(|it| matches!(it.outcome, JoinOutcome::In { .. }));
        for joined in entered {
            if open.enter(&joined.room, now) {
                let entry = open.entry(&joined.room, Act::Join { age_ms: 0 }, now);
                self.outputs.push(Output::Publish(entry));
            }
        }
        self.phase = Phase::Open(Box::new(open));
        self.outputs.push(Output::Send(Downlink::LoginOk(LoginOk { rooms, ..login_ok })));
    }
}

/// The answer to a credential that is not taken.
pub(super) fn refused(Denial { code, retry_after_ms }: Denial, now: Now) -> Downlink {
    let reason = code.name().to_owned();
    Downlink::Refused(Refused { code, reason, retry_after_ms, server_ms: now.wall })
}

pub(super) fn not_allowed(join: Join) -> Joined {
    let outcome = JoinOutcome::Refused { code: CloseCode::NoRoom, retry_after_ms: 0 };
    Joined { room: join.room, outcome }
}

/// The highest version in both ranges.
fn highest_common(theirs: RangeInclusive<u16>, ours: RangeInclusive<u16>) -> Option<u16> {
    let highest = *theirs.end().min(ours.end());
    (theirs.contains(&highest) && ours.contains(&highest)).then_some(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_that_both_speak_is_chosen() {
        assert_eq!(highest_common(1..=1, 1..=1), Some(1));
        assert_eq!(highest_common(1..=9, 2..=3), Some(3));
        assert_eq!(highest_common(1..=2, 2..=3), Some(2));
        assert_eq!(highest_common(4..=9, 2..=3), None);
        assert_eq!(highest_common(0..=1, 2..=3), None);
    }

    #[test]
    fn a_range_that_is_none_has_nothing_in_common() {
        assert_eq!(highest_common(RangeInclusive::new(3, 1), 1..=3), None);
    }
}
