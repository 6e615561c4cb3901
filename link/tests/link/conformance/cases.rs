//! The cases; their numbers are those of the Autobahn test suite, where it has them.
//!
//! Cases on text (6, and half of 1 and 5) fall together: no text is taken at all. Cases on
//! `permessage-deflate` (12, 13) fall away: it is never agreed on.

use proto::close::CloseCode::{self, BadFrame, Bye, FrameTooLarge};

use super::wire::{close, frame, message, ping, ping_of};
use super::{Answer, Outcome};

/// A case.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) frames: fn() -> Vec<Vec<u8>>,
    pub(super) outcome: fn() -> Outcome,
}

const CONTINUE: u8 = 0x00;
const BINARY: u8 = 0x02;
const FIN: u8 = 0x80;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

fn lives() -> Outcome {
    Outcome::Lives(Vec::new())
}

fn served(numbers: &[u64]) -> Outcome {
    Outcome::Lives(numbers.iter().map(|it| Answer::Served(*it)).collect())
}

fn pongs(contents: &[&[u8]]) -> Outcome {
    Outcome::Lives(contents.iter().map(|it| Answer::Pong(it.to_vec())).collect())
}

fn ends(code: CloseCode) -> Outcome {
    Outcome::Ends(Vec::new(), code)
}

fn served_then(code: CloseCode) -> Outcome {
    Outcome::Ends(vec![Answer::Served(1)], code)
}

fn ponged_then(code: CloseCode) -> Outcome {
    Outcome::Ends(vec![Answer::Pong(b"ping".to_vec())], code)
}

/// A message in two pieces, with something between them.
fn around(between: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let content = ping(1);
    let (first, rest) = content.split_at(5);
    let mut frames = vec![frame(BINARY, first)];
    frames.extend_from_slice(between);
    frames.push(frame(FIN | CONTINUE, rest));
    frames
}

/// A message in pieces of so many bytes.
fn pieces(content: &[u8], bytes: usize) -> Vec<Vec<u8>> {
    let last = content.len().div_ceil(bytes) - 1;
    let piece = |(number, piece): (usize, &[u8])| {
        let opcode = if number == 0 { BINARY } else { CONTINUE };
        frame(if number == last { FIN | opcode } else { opcode }, piece)
    };
    content.chunks(bytes).enumerate().map(piece).collect()
}

macro_rules! cases {
    ($($name:literal: $frames:expr => $outcome:expr;)+) => {
        pub(super) const CASES: &[Case] =
            &[$(Case { name: $name, frames: || $frames, outcome: || $outcome },)+];
    };
}

cases! {
    "1.1.1 empty text": vec![frame(0x81, b"")] => ends(BadFrame);
    "1.1.2 text": vec![frame(0x81, &[b'*'; 125])] => ends(BadFrame);
    "1.2.1 empty message": vec![message(b"")] => ends(BadFrame);
    "1.2.2 125 bytes": vec![message(&ping_of(1, 125))] => served(&[1]);
    "1.2.3 126 bytes": vec![message(&ping_of(1, 126))] => served(&[1]);
    "1.2.4 127 bytes": vec![message(&ping_of(1, 127))] => served(&[1]);
    "1.2.5 128 bytes": vec![message(&ping_of(1, 128))] => served(&[1]);
    "1.2.6 65,535 bytes": vec![message(&ping_of(1, 65_535))] => served(&[1]);
    "1.2.7 65,536 bytes": vec![message(&ping_of(1, 65_536))] => served(&[1]);
    "1.2.9 65,537 bytes": vec![message(&ping_of(1, 65_537))] => ends(FrameTooLarge);

    "2.1 empty ping": vec![frame(PING, b"")] => pongs(&[b""]);
    "2.2 ping": vec![frame(PING, b"Hello, world!")] => pongs(&[b"Hello, world!"]);
    "2.3 ping that is no text": vec![frame(PING, b"\x00\xff\xfe\xfd\xfc")]
        => pongs(&[b"\x00\xff\xfe\xfd\xfc"]);
    "2.4 ping of 125 bytes": vec![frame(PING, &[0xfe; 125])] => pongs(&[&[0xfe; 125]]);
    "2.5 ping of 126 bytes": vec![frame(PING, &[0xfe; 126])] => ends(BadFrame);
    "2.7 empty pong": vec![frame(PONG, b"")] => lives();
    "2.8 pong": vec![frame(PONG, b"unsolicited")] => lives();
    "2.9 pong and ping": vec![frame(PONG, b"unsolicited"), frame(PING, b"ping")]
        => pongs(&[b"ping"]);
    "2.10 ten pings": (0..10).map(|it| frame(PING, &[it])).collect()
        => pongs(&[&[0], &[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[9]]);

    "3.1 reserved bit 3": vec![frame(0x92, &ping(1))] => ends(BadFrame);
    "3.2 reserved bit 2, behind a message": vec![message(&ping(1)), frame(0xa2, &ping(2))]
        => served_then(BadFrame);
    "3.3 reserved bits 2 and 3": vec![message(&ping(1)), frame(0xb2, &ping(2)), frame(PING, b"")]
        => served_then(BadFrame);
    "3.4 reserved bit 1": vec![message(&ping(1)), frame(0xc2, &ping(2))] => served_then(BadFrame);
    "3.5 reserved bits 1 and 3": vec![frame(0xd2, b"\x00\xff")] => ends(BadFrame);
    "3.6 reserved bits in a ping": vec![frame(0xe9, b"Hello")] => ends(BadFrame);
    "3.7 reserved bits in a close": vec![frame(0xf8, b"")] => ends(BadFrame);

    "4.1.1 opcode 3": vec![frame(0x83, b"")] => ends(BadFrame);
    "4.1.2 opcode 4": vec![frame(0x84, b"reserved")] => ends(BadFrame);
    "4.1.3 opcode 5": vec![message(&ping(1)), frame(0x85, b"")] => served_then(BadFrame);
    "4.1.4 opcode 6": vec![message(&ping(1)), frame(0x86, b"reserved"), frame(PING, b"")]
        => served_then(BadFrame);
    "4.1.5 opcode 7": vec![message(&ping(1)), frame(0x87, b"reserved")] => served_then(BadFrame);
    "4.2.1 opcode 11": vec![frame(0x8b, b"")] => ends(BadFrame);
    "4.2.2 opcode 12": vec![frame(0x8c, b"reserved")] => ends(BadFrame);
    "4.2.3 opcode 13": vec![message(&ping(1)), frame(0x8d, b"")] => served_then(BadFrame);
    "4.2.4 opcode 14": vec![message(&ping(1)), frame(0x8e, b"reserved"), frame(PING, b"")]
        => served_then(BadFrame);
    "4.2.5 opcode 15": vec![message(&ping(1)), frame(0x8f, b"reserved")] => served_then(BadFrame);

    "5.1 ping in two pieces": vec![frame(0x09, b"frag"), frame(FIN, b"ment")] => ends(BadFrame);
    "5.2 pong in two pieces": vec![frame(0x0a, b"frag"), frame(FIN, b"ment")] => ends(BadFrame);
    "5.3 two pieces": around(&[]) => served(&[1]);
    "5.6 a ping between": around(&[frame(PING, b"ping")])
        => Outcome::Lives(vec![Answer::Pong(b"ping".to_vec()), Answer::Served(1)]);
    "5.7 a pong between": around(&[frame(PONG, b"pong")]) => served(&[1]);
    "5.9 continues nothing": vec![frame(FIN, b"nothing"), message(&ping(1))] => ends(BadFrame);
    "5.11 continues nothing, behind a message": vec![message(&ping(1)), frame(FIN, b"nothing")]
        => served_then(BadFrame);
    "5.12 continues nothing, and goes on": vec![frame(CONTINUE, b"nothing"), message(&ping(1))]
        => ends(BadFrame);
    "5.15 continues what has ended": {
        let mut frames = around(&[]);
        frames.push(frame(CONTINUE, b"nothing"));
        frames
    } => served_then(BadFrame);
    "5.16 begins, continues, never ends": vec![
        frame(CONTINUE, b"a"), frame(BINARY, b"b"), frame(FIN, b"c"),
    ] => ends(BadFrame);
    "5.18 begins twice": vec![frame(BINARY, b"one"), frame(FIN | BINARY, b"two")]
        => ends(BadFrame);
    "5.19 pings between many pieces": {
        let mut frames = vec![];
        for piece in pieces(&ping_of(1, 200), 40) {
            frames.extend([frame(PING, b"ping"), piece]);
        }
        frames
    } => {
        let mut answers = vec![Answer::Pong(b"ping".to_vec()); 5];
        answers.push(Answer::Served(1));
        Outcome::Lives(answers)
    };
    "5.20 empty pieces": around(&[frame(CONTINUE, b""), frame(CONTINUE, b"")]) => served(&[1]);
    "5.21 text begins, binary goes on": vec![frame(0x01, b"text"), frame(FIN, b"")]
        => ends(BadFrame);

    "6.1 empty text in pieces": vec![frame(0x01, b""), frame(CONTINUE, b""), frame(FIN, b"")]
        => ends(BadFrame);
    "6.2 text in UTF-8": vec![frame(0x81, "κόσμε".as_bytes())] => ends(BadFrame);
    "6.3 text that is no UTF-8": vec![frame(0x81, b"\xce\xba\xed\xa0\x80edited")]
        => ends(BadFrame);
    "6.4 binary that is no frame": vec![message(b"\xce\xba\xed\xa0\x80edited")] => ends(BadFrame);

    "7.1.1 message and close": vec![message(&ping(1)), close(1000, b"")] => served_then(Bye);
    "7.1.2 close twice": vec![close(1000, b""), close(1000, b"")] => ends(Bye);
    "7.1.3 ping behind a close": vec![close(1000, b""), frame(PING, b"ping")] => ends(Bye);
    "7.1.4 message behind a close": vec![close(1000, b""), message(&ping(1))] => ends(Bye);
    "7.1.5 close between two pieces": around(&[close(1000, b"")]) => ends(Bye);
    "7.1.7 ping and close": vec![frame(PING, b"ping"), close(1000, b"")] => ponged_then(Bye);
    "7.3.1 close with nothing": vec![frame(0x88, b"")] => ends(Bye);
    "7.3.2 close with half a code": vec![frame(0x88, b"\x03")] => ends(BadFrame);
    "7.3.3 close with a code": vec![close(1000, b"")] => ends(Bye);
    "7.3.4 close with a reason": vec![close(1000, b"Hello World!")] => ends(Bye);
    "7.3.5 close with a long reason": vec![close(1000, &[b'*'; 123])] => ends(Bye);
    "7.3.6 close with too long a reason": vec![close(1000, &[b'*'; 124])] => ends(BadFrame);
    "7.5.1 close with a reason that is no text":
        vec![close(1000, b"\xce\xba\xed\xa0\x80edited")] => ends(BadFrame);
    "7.7.1 close 1001": vec![close(1001, b"")] => ends(Bye);
    "7.7.5 close 1007": vec![close(1007, b"")] => ends(Bye);
    "7.7.9 close 1011": vec![close(1011, b"")] => ends(Bye);
    "7.7.10 close 3000": vec![close(3000, b"")] => ends(Bye);
    "7.7.11 close 3999": vec![close(3999, b"")] => ends(Bye);
    "7.7.12 close 4000": vec![close(4000, b"")] => ends(Bye);
    "7.7.13 close 4999": vec![close(4999, b"")] => ends(Bye);
    "7.9.1 close 0": vec![close(0, b"")] => ends(BadFrame);
    "7.9.2 close 999": vec![close(999, b"")] => ends(BadFrame);
    "7.9.3 close 1004": vec![close(1004, b"")] => ends(BadFrame);
    "7.9.4 close 1005": vec![close(1005, b"")] => ends(BadFrame);
    "7.9.5 close 1006": vec![close(1006, b"")] => ends(BadFrame);
    "7.9.7 close 1100": vec![close(1100, b"")] => ends(BadFrame);
    "7.9.9 close 2999": vec![close(2999, b"")] => ends(BadFrame);
    "7.13.1 close 5000": vec![close(5000, b"")] => ends(BadFrame);
    "7.13.2 close 65535": vec![close(65_535, b"")] => ends(BadFrame);

    "9.3 65,536 bytes in pieces of 64": pieces(&ping_of(1, 65_536), 64) => served(&[1]);
    "9.4 too many bytes in pieces": pieces(&ping_of(1, 65_600), 4_096) => ends(FrameTooLarge);
    "9.5 a length beyond all": vec![[&[0x82, 0xff][..], &[0xff; 8], &[0; 4]].concat()]
        => ends(FrameTooLarge);

    "no mask": vec![[&[0x82, 16][..], &[0; 16]].concat()] => ends(BadFrame);
    "a ping without a mask": vec![vec![PING, 0]] => ends(BadFrame);
    "a mask of zeros": vec![{
        let content = ping(1);
        let length = 0x80 | u8::try_from(content.len()).unwrap();
        [&[0x82, length, 0, 0, 0, 0][..], &content].concat()
    }] => served(&[1]);
    "two messages": vec![message(&ping(1)), message(&ping(2))] => served(&[1, 2]);
}
