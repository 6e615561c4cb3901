//! Hostile frames for a session, before and after its login: what a fuzzer feeds, and what it looks
//! at to find that an input showed something new.
//!
//! An input is a conversation: frames, each behind its length in two bytes, little-endian; what is
//! cut off at the end is a frame too. Time passes between frames.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use link_core::Now;
use link_core::bucket::Rate;
use link_core::hub::Member;
use link_core::session::{Claim, Denial, Grant, Input, Limits, Output, Session};
use proto::close::CloseCode;
use proto::envelope::Act;
use proto::frame::{
    Credential, Downlink, Hello, Join, JoinOutcome, Joined, Login, PROTO_VERSION, Path, Resumed,
    Uplink,
};
use proto::heat::Heat;
use proto::id::{AppId, RoomId, SessionId, ViewerId};
use proto::item::Role;
use proto::limits::{ROOMS_PER_SESSION_MAX, TEXT_BYTES_MAX, UPLINK_FRAME_BYTES_MAX};
use proto::suite::Suite;
use proto::time::{Mono, Wall};

/// Frames of one conversation.
pub const FRAMES_MAX: usize = 64;
/// What one frame may lead to: a refresh tells of every room, and takes out of as many.
const OUTPUTS_MAX: usize = 2 * ROOMS_PER_SESSION_MAX + 4;
/// The token that opens a session; others are refused, for one reason or another.
const TOKEN: &str = "good";
const SESSION: SessionId = SessionId(1);

/// Where a conversation begins.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Phase {
    /// With a connection.
    Login,
    /// In a room.
    Open,
}

impl Phase {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Login, Self::Open];

    /// The name of its folder in a corpus.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Login => "before_login",
            Self::Open => "after_login",
        }
    }
}

/// What an input showed, as numbers: the same behaviour has the same number.
pub type Features = BTreeSet<u64>;

/// Feeds a conversation to a session.
///
/// # Errors
/// What the session did that it must never do.
pub fn feed(phase: Phase, input: &[u8]) -> Result<Features, String> {
    let mut talk = Talk::new();
    if phase == Phase::Open {
        for frame in opening() {
            talk.hear(frame)?;
        }
        talk.features.clear();
    }
    for frame in frames(input).into_iter().take(FRAMES_MAX) {
        talk.hear(Bytes::copy_from_slice(frame))?;
    }
    Ok(talk.features)
}

/// A conversation of these frames.
#[must_use]
pub fn conversation(frames: &[&[u8]]) -> Vec<u8> {
    let mut input = Vec::new();
    for frame in frames {
        let length = u16::try_from(frame.len()).unwrap_or(u16::MAX);
        input.extend(length.to_le_bytes());
        input.extend(&frame[..usize::from(length)]);
    }
    input
}

/// The frames that lead into a room.
#[must_use]
pub fn opening() -> [Bytes; 2] {
    let hello = Hello {
        sdk: "fuzz".to_owned(),
        sdk_version: "1".to_owned(),
        proto_min: PROTO_VERSION,
        proto_max: PROTO_VERSION,
        suites: vec![Suite::Plain.name().to_owned()],
        codecs: Vec::new(),
        nonce: 1,
    };
    let join = Join { room: room(), path: Path::Push, resume: None };
    let credential = Credential::Token(TOKEN.to_owned());
    let login = Login { credential, binder: None, device: None, joins: vec![join] };
    [Uplink::Hello(hello).encode(), Uplink::Login(login).encode()]
}

fn frames(mut input: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (frame, behind) = rest.split_at(length);
        frames.push(frame);
        input = behind;
    }
    frames
}

struct Talk {
    session: Session,
    rooms: BTreeSet<RoomId>,
    now: u64,
    features: Features,
}

impl Talk {
    fn new() -> Self {
        let limits = Limits {
            login: Duration::from_secs(10),
            phase: Duration::from_secs(5),
            silence: Duration::from_secs(60),
            heartbeat: Duration::from_secs(25),
            frames: Rate { burst: 20, per_s: 10 },
            frame_bytes_max: u32::try_from(UPLINK_FRAME_BYTES_MAX).unwrap_or(u32::MAX),
            compress: true,
        };
        let session = Session::new(Arc::new(limits), Suite::Plain, Mono(0), Mono(0));
        Self { session, rooms: BTreeSet::new(), now: 0, features: Features::new() }
    }

    fn hear(&mut self, frame: Bytes) -> Result<(), String> {
        // Its length says how long it took: sometimes longer than a session waits.
        self.now += frame.len() as u64 % 512;
        let decoded = match Uplink::decode(&frame) {
            Ok(uplink) => hash(discriminant(&uplink)),
            Err(error) => hash(discriminant(&error)),
        };
        let was_open = self.session.is_open();
        self.session.tick(self.moment());
        self.session.handle(Input::Frame(frame), self.moment());
        let mut outputs = 0;
        while let Some(output) = self.session.poll() {
            outputs += 1;
            if outputs > OUTPUTS_MAX {
                return Err("one frame has no end of consequences".to_owned());
            }
            self.features.insert(hash((was_open, decoded, shape(&output))));
            self.act(output)?;
        }
        self.features.insert(hash((was_open, decoded, outputs.min(4))));
        if self.session.is_closed() != self.session.deadline().is_none() {
            return Err("a session that is not closed has no deadline, or one that is, has".into());
        }
        Ok(())
    }

    fn moment(&self) -> Now {
        Now { mono: Mono(self.now), wall: Wall(1_000_000 + self.now) }
    }

    fn act(&mut self, output: Output) -> Result<(), String> {
        let now = self.moment();
        match output {
            Output::Send(frame) => {
                if Downlink::decode(&frame.encode()).as_ref() != Ok(&frame) {
                    return Err(format!("{frame:?} cannot be read"));
                }
            }
            Output::Verify(claim) => {
                self.session.handle(verdict(&claim), now);
            }
            Output::Join(join) => {
                if join.room != room() {
                    return Err(format!("{} was not granted", join.room));
                }
                let outcome = JoinOutcome::In {
                    heat: Heat::Cold,
                    path: Path::Push,
                    resumed: Resumed::Fresh,
                    latest: None,
                    online: 1,
                };
                self.rooms.insert(join.room.clone());
                self.session.handle(Input::Joined(Joined { room: join.room, outcome }), now);
            }
            Output::Leave(room) => {
                if !self.rooms.remove(&room) {
                    return Err(format!("left {room} without being there"));
                }
            }
            Output::Publish(entry) => {
                if !self.rooms.contains(&entry.room) || entry.viewer != viewer() {
                    return Err(format!("{entry:?} is of nobody in the room"));
                }
                if let Act::Comment { text, .. } = &entry.act
                    && text.len() > TEXT_BYTES_MAX
                {
                    return Err(format!("a text of {} bytes", text.len()));
                }
            }
            Output::Pong(_) | Output::Report(_) => {}
            Output::Close(_) => {
                if !self.session.is_closed() || self.session.poll().is_some() {
                    return Err("a closed session goes on".to_owned());
                }
            }
        }
        Ok(())
    }
}

/// Good for one token; each other one is refused in a way of its own.
fn verdict(claim: &Claim) -> Input {
    let (Credential::Token(text) | Credential::ResumeTicket(text)) = &claim.login.credential;
    if text == TOKEN {
        return Input::Granted(Box::new(Grant {
            member: Arc::new(Member {
                session: SESSION,
                app: AppId(1),
                viewer: viewer(),
                role: Role::Viewer,
                may_send: true,
            }),
            rooms: vec![room()],
            life: Duration::from_secs(30),
            confirm: None,
            resume_ticket: String::new(),
        }));
    }
    let code = CloseCode::ALL[text.len() % CloseCode::ALL.len()];
    Input::Denied(Denial { code, retry_after_ms: 0 })
}

/// What kind of output it is.
fn shape(output: &Output) -> u64 {
    if let Output::Publish(entry) = output {
        return hash(discriminant(&entry.act));
    }
    let Output::Send(frame) = output else {
        return hash(discriminant(output));
    };
    let code = match frame {
        Downlink::Refused(refused) => refused.code.code(),
        Downlink::Close(close) => close.code.code(),
        Downlink::Welcome(_)
        | Downlink::LoginOk(_)
        | Downlink::Batch(_)
        | Downlink::Seal(_)
        | Downlink::Skipped { .. }
        | Downlink::Ack(_)
        | Downlink::Control(_)
        | Downlink::Joined(_)
        | Downlink::Pong { .. } => 0,
    };
    hash((discriminant(frame), code))
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn room() -> RoomId {
    RoomId::parse("r").expect("a letter is a name")
}

fn viewer() -> ViewerId {
    ViewerId::parse("viewer").expect("letters are a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_leads_into_a_room_and_other_frames_elsewhere() {
        let [hello, login] = opening();
        let good = feed(Phase::Login, &conversation(&[&hello, &login])).unwrap();
        let early = feed(Phase::Login, &conversation(&[&login])).unwrap();
        let again = feed(Phase::Open, &conversation(&[&hello])).unwrap();

        assert!(good.len() > 3);
        assert!(good != early && early != again && !again.is_empty());
    }

    #[test]
    fn what_is_cut_off_is_a_frame_too() {
        assert_eq!(frames(b"\x02\0ab\xff\xffcde"), [&b"ab"[..], b"cde"]);
        assert_eq!(frames(b"\x01"), Vec::<&[u8]>::new());
    }
}
