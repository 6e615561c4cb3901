//! Bytes on a raw socket, and what comes back.

use bytes::Bytes;
use proto::close::CloseCode;
use proto::frame::{Downlink, Uplink};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Answer, Outcome};
use crate::client::{Client, Pipe};
use crate::world::{PATIENCE, World};

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
/// Asks whether the session goes on.
const LAST: u64 = 0x1a57;

/// How the bytes of a case are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Chop {
    /// All at once.
    Whole,
    /// One write a frame.
    Frames,
    /// So many a write.
    Bytes(usize),
}

/// A session in the room, whose bytes are written by hand.
pub(super) struct Raw {
    client: Client,
}

impl Raw {
    pub(super) async fn enter(world: &World, name: &str) -> Self {
        let viewer = format!("case-{}", name.replace([' ', '.', ','], "-"));
        let viewer = &viewer[..viewer.len().min(64)];
        Self { client: world.enter("ws", viewer, "r").await }
    }

    /// Writes the frames; the link may have hung up before the last.
    pub(super) async fn write(&mut self, frames: &[Vec<u8>], chop: Chop) {
        let pieces: Vec<Vec<u8>> = match chop {
            Chop::Whole => vec![frames.concat()],
            Chop::Frames => frames.to_vec(),
            Chop::Bytes(bytes) => frames.concat().chunks(bytes).map(<[u8]>::to_vec).collect(),
        };
        for piece in pieces {
            self.client.send_raw(&piece).await;
            // What was written is read before the next piece comes, as a rule.
            tokio::task::yield_now().await;
        }
    }

    /// What the link says, until it ends the session or has answered a last question.
    pub(super) async fn outcome(&mut self) -> Outcome {
        self.client.send_raw(&message(&ping(LAST))).await;
        timeout(PATIENCE, self.listen()).await.expect("the link says nothing")
    }

    async fn listen(&mut self) -> Outcome {
        let Pipe::WebSocket(socket) = &mut self.client.pipe else { panic!("no WebSocket") };
        let stream = socket.get_mut();
        let (mut answers, mut told) = (Vec::new(), None);
        loop {
            let mut header = [0; 2];
            if stream.read_exact(&mut header).await.is_err() {
                panic!("the link hung up without a Close frame, after {answers:?}");
            }
            assert_eq!(header[1] & 0x80, 0, "a server masks nothing");
            let length = match header[1] {
                126 => stream.read_u16().await.unwrap().into(),
                127 => stream.read_u64().await.unwrap(),
                length => length.into(),
            };
            let mut content = vec![0; usize::try_from(length).unwrap()];
            stream.read_exact(&mut content).await.unwrap();
            match header[0] {
                0x8a => answers.push(Answer::Pong(content)),
                0x88 => {
                    let code = u16::from_be_bytes(content[..2].try_into().unwrap());
                    let code = CloseCode::from_code(code).expect("a code of the protocol");
                    assert_eq!(Some(code), told, "the Close frame says what the last frame said");
                    let mut rest = Vec::new();
                    stream.read_to_end(&mut rest).await.ok();
                    assert_eq!(rest, b"", "nothing follows a Close frame");
                    return Outcome::Ends(answers, code);
                }
                0x82 => match Downlink::decode(&content).unwrap() {
                    Downlink::Pong { nonce: LAST, .. } => return Outcome::Lives(answers),
                    Downlink::Pong { nonce, .. } => answers.push(Answer::Served(nonce)),
                    Downlink::Close(close) => told = Some(close.code),
                    other => panic!("unexpected {other:?}"),
                },
                first => panic!("a frame that begins with {first:#x}"),
            }
        }
    }
}

/// Sends a request and reads the head of the answer.
pub(super) async fn ask(world: &World, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(world.address("ws").authority()).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let reading = async {
        while !answer.ends_with(b"\r\n\r\n") && stream.read_buf(&mut answer).await.unwrap() > 0 {}
    };
    timeout(PATIENCE, reading).await.expect("no answer");
    String::from_utf8(answer).unwrap()
}

/// A frame of the protocol that is answered, with its number.
pub(super) fn ping(nonce: u64) -> Bytes {
    Uplink::Ping { nonce }.encode()
}

/// The same with bytes behind it, which mean nothing, so that it has just this length.
pub(super) fn ping_of(nonce: u64, bytes: usize) -> Vec<u8> {
    let mut frame = ping(nonce).to_vec();
    assert!(frame.len() <= bytes, "a ping has {} bytes", frame.len());
    frame.resize(bytes, 0);
    frame
}

/// A whole binary message.
pub(super) fn message(content: &[u8]) -> Vec<u8> {
    frame(0x82, content)
}

/// A masked frame with the shortest header; `first` is FIN, reserved bits and opcode.
pub(super) fn frame(first: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match content.len() {
        length @ 0..126 => bytes.push(0x80 | u8::try_from(length).unwrap()),
        length @ 126..=65_535 => {
            bytes.push(0x80 | 126);
            bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes.extend(MASK);
    bytes.extend(content.iter().zip(MASK.iter().cycle()).map(|(byte, key)| byte ^ key));
    bytes
}

/// A Close frame.
pub(super) fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(0x88, &[&code.to_be_bytes(), reason].concat())
}
