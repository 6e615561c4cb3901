//! A session in every state, and frames for it.

use std::sync::Arc;
use std::time::Duration;

use link_core::Now;
use link_core::bucket::Rate;
use link_core::hub::Member;
use link_core::session::{Grant, Input, Limits, Output, Session};
use proto::close::CloseCode;
use proto::frame::{
    Close, Comment, Credential, Downlink, Hello, Join, JoinOutcome, Joined, Login, Path, Resumed,
    Uplink,
};
use proto::heat::Heat;
use proto::id::{AppId, Cid, RoomId, SessionId, ViewerId};
use proto::item::{Role, Style};
use proto::suite::Suite;
use proto::time::{Mono, Wall};

pub(crate) fn close_code(session: &mut Session) -> CloseCode {
    let Some(Output::Send(Downlink::Close(Close { code, .. }))) = session.poll() else {
        panic!("no Close")
    };
    assert_eq!(session.poll(), Some(Output::Close(code)));
    code
}

pub(crate) fn open() -> Session {
    open_with(grant())
}

pub(crate) fn open_with(grant: Grant) -> Session {
    let mut session = session();
    session.handle(frame(&hello()), at(0));
    session.handle(frame(&login(&["r"])), at(0));
    session.handle(Input::Granted(Box::new(grant)), at(0));
    session.handle(Input::Joined(entered("r")), at(0));
    drain(&mut session);
    assert!(session.is_open());
    session
}

pub(crate) fn drain(session: &mut Session) {
    while session.poll().is_some() {}
}

pub(crate) fn session() -> Session {
    Session::new(limits(), Suite::Plain, Mono(0), Mono(0))
}

pub(crate) fn limits() -> Arc<Limits> {
    Arc::new(Limits {
        login: Duration::from_secs(10),
        phase: Duration::from_secs(5),
        silence: Duration::from_secs(60),
        heartbeat: Duration::from_secs(25),
        frames: Rate { burst: 40, per_s: 20 },
        frame_bytes_max: 65_536,
        compress: true,
    })
}

pub(crate) fn member() -> Member {
    Member {
        session: SessionId(1),
        app: AppId(1),
        viewer: ViewerId::parse("viewer").unwrap(),
        role: Role::Viewer,
        may_send: true,
    }
}

pub(crate) fn grant() -> Grant {
    Grant {
        member: Arc::new(member()),
        rooms: vec![room("r")],
        life: Duration::from_secs(3000),
        confirm: None,
        resume_ticket: "ticket".to_owned(),
    }
}

pub(crate) fn at(ms: u64) -> Now {
    Now { mono: Mono(ms), wall: Wall(1_000_000 + ms) }
}

pub(crate) fn frame(uplink: &Uplink) -> Input {
    Input::Frame(uplink.encode())
}

pub(crate) fn hello() -> Uplink {
    Uplink::Hello(Hello {
        sdk: "test".to_owned(),
        sdk_version: "1".to_owned(),
        proto_min: 1,
        proto_max: 1,
        suites: vec!["P".to_owned()],
        codecs: Vec::new(),
        nonce: 9,
    })
}

pub(crate) fn login(rooms: &[&str]) -> Uplink {
    Uplink::Login(Login {
        credential: Credential::Token("token".to_owned()),
        binder: None,
        device: None,
        joins: rooms.iter().map(|it| join(it)).collect(),
    })
}

pub(crate) fn comment(cid: u64, name: &str) -> Uplink {
    Uplink::Comment(Comment {
        cid: Cid(cid),
        room: room(name),
        text: "hi".to_owned(),
        style: Style::default(),
        media_ms: None,
    })
}

pub(crate) fn join(name: &str) -> Join {
    Join { room: room(name), path: Path::Push, resume: None }
}

pub(crate) fn entered(name: &str) -> Joined {
    let outcome = JoinOutcome::In {
        heat: Heat::Cold,
        path: Path::Push,
        resumed: Resumed::Fresh,
        latest: None,
        online: 1,
    };
    Joined { room: room(name), outcome }
}

pub(crate) fn room(name: &str) -> RoomId {
    RoomId::parse(name).unwrap()
}
