//! WebSocket by the rules (RFC 6455), case by case as in the Autobahn test suite, and what this
//! link's contract adds: binary messages only, one frame of the protocol in each.
//!
//! What is malformed goes over a raw socket; the rest also through another's client (npm `ws`).
//! A rule that is broken is answered with a Close frame of code 3504 (`bad_frame`), where a client
//! would expect 1002, 1003 or 1007: every end of a session has a code of the protocol.

mod cases;
mod other;
mod wire;

use proto::close::CloseCode;

use cases::CASES;
use wire::{Chop, Raw};

use crate::world::World;

/// What a case must come to.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Outcome {
    /// The session goes on, and these came before it was seen to.
    Lives(Vec<Answer>),
    /// The link ends the session with this code, after these.
    Ends(Vec<Answer>, CloseCode),
}

/// What the link says.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Answer {
    /// To a ping, with its content.
    Pong(Vec<u8>),
    /// To a message that asks for it, with its number.
    Served(u64),
}

#[tokio::test]
async fn each_case_comes_to_what_the_rules_say_however_its_bytes_are_chopped() {
    let world = World::new().await;
    let mut wrong = Vec::new();

    for case in CASES {
        for chop in [Chop::Whole, Chop::Frames, Chop::Bytes(997), Chop::Bytes(1)] {
            let frames = (case.frames)();
            if chop == Chop::Bytes(1) && frames.iter().map(Vec::len).sum::<usize>() > 4_096 {
                continue;
            }
            let mut raw = Raw::enter(&world, case.name).await;
            raw.write(&frames, chop).await;
            let outcome = raw.outcome().await;
            if outcome != (case.outcome)() {
                wrong.push(format!("{}, {chop:?}: {outcome:?}", case.name));
            }
        }
    }

    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn an_upgrade_that_is_none_is_refused_in_http() {
    let world = World::new().await;
    let good = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let variants = [
        ("good", good.to_owned(), 101),
        ("another case of names", good.replace("Upgrade: websocket", "UPGRADE: WebSocket"), 101),
        ("several tokens", good.replace("Connection: Upgrade", "Connection: a, upgrade"), 101),
        ("an extension that is not spoken", offered(good), 101),
        ("no key", without(good, "Sec-WebSocket-Key"), 400),
        ("no version", without(good, "Sec-WebSocket-Version"), 400),
        ("another version", good.replace("Version: 13", "Version: 8"), 400),
        ("no upgrade", without(good, "Upgrade: websocket"), 400),
        ("no connection", without(good, "Connection: Upgrade"), 400),
        ("another method", good.replace("GET", "POST"), 400),
        ("an old version of HTTP", good.replace("HTTP/1.1", "HTTP/1.0"), 400),
        ("no HTTP", "hello\r\n\r\n".to_owned(), 400),
        ("a long head", good.replace("Host: x", &format!("Host: {}", "x".repeat(9_000))), 431),
    ];

    for (name, request, status) in variants {
        let answer = wire::ask(&world, request.as_bytes()).await;

        let line = answer.lines().next().unwrap_or_default();
        assert!(line.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        assert!(!answer.to_lowercase().contains("sec-websocket-extensions"), "{name}: {answer}");
        if status == 101 {
            let accept = "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=";
            assert!(answer.to_lowercase().contains(accept), "{name}: {answer}");
        }
    }
}

fn without(request: &str, line: &str) -> String {
    request.split_inclusive("\r\n").filter(|it| !it.starts_with(line)).collect()
}

fn offered(request: &str) -> String {
    request.replace("Host: x", "Host: x\r\nSec-WebSocket-Extensions: permessage-deflate")
}
