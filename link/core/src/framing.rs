//! How a frame lies on a connection: behind its length, or as one WebSocket message.

use std::sync::OnceLock;

use bytes::Bytes;
use proto::frame::{Codec, deflate};

/// What a listener speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Framing {
    /// `u32 length | frame`: TCP, TLS, QUIC.
    Stream,
    /// One unmasked binary message a frame.
    WebSocket,
}

/// First byte of an unfragmented binary message (RFC 6455 5.2: FIN, opcode 2).
const BINARY: u8 = 0x82;

impl Framing {
    /// The frame with its header, as one block of bytes.
    #[must_use]
    pub fn wrap(self, frame: &[u8]) -> Bytes {
        match self {
            Self::Stream => proto::frame::prefixed(frame),
            Self::WebSocket => message(frame),
        }
    }
}

/// How a session takes frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Form {
    /// What its listener speaks.
    pub framing: Framing,
    /// What was agreed on for the frames of rooms.
    pub codec: Codec,
}

/// Bytes of a frame below which it is not compressed: it would save less than the headers of the
/// packet that carries it.
pub const PACKED_BYTES_MIN: usize = 400;

/// One frame in every form, encoded once and shared by all sessions of a room.
#[derive(Debug)]
pub struct Frames {
    plain: Framed,
    /// Made when the first session asks for it; nothing, if it would be no smaller.
    packed: OnceLock<Option<Framed>>,
}

/// One frame in every framing.
#[derive(Debug)]
struct Framed {
    stream: Bytes,
    web_socket: Bytes,
}

impl Framed {
    fn new(frame: &[u8]) -> Self {
        Self { stream: Framing::Stream.wrap(frame), web_socket: Framing::WebSocket.wrap(frame) }
    }

    const fn bytes(&self, framing: Framing) -> &Bytes {
        match framing {
            Framing::Stream => &self.stream,
            Framing::WebSocket => &self.web_socket,
        }
    }
}

impl Frames {
    /// Encodes `kind | flags | FlatBuffer` for every framing. It is not compressed for anybody.
    #[must_use]
    pub fn new(frame: &[u8]) -> Self {
        Self { plain: Framed::new(frame), packed: OnceLock::from(None) }
    }

    /// The same of a frame with items, which is compressed for those who can expand it.
    #[must_use]
    pub fn with_items(frame: &[u8]) -> Self {
        if frame.len() < PACKED_BYTES_MIN {
            return Self::new(frame);
        }
        Self { plain: Framed::new(frame), packed: OnceLock::new() }
    }

    /// The bytes to write.
    #[must_use]
    pub fn bytes(&self, form: Form) -> &Bytes {
        self.framed(form.codec).bytes(form.framing)
    }

    /// How many bytes compression takes off what is written.
    #[must_use]
    pub fn saved(&self, form: Form) -> usize {
        self.plain.bytes(form.framing).len() - self.bytes(form).len()
    }

    /// The frame without any header, not compressed.
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        self.plain.stream.get(4..).unwrap_or_default()
    }

    fn framed(&self, codec: Codec) -> &Framed {
        let packed = match codec {
            Codec::Identity => None,
            Codec::Deflate => {
                let pack = || deflate(self.frame()).map(|it| Framed::new(&it));
                self.packed.get_or_init(pack).as_ref()
            }
        };
        packed.unwrap_or(&self.plain)
    }
}

fn message(frame: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(frame.len() + 10);
    bytes.push(BINARY);
    match (u8::try_from(frame.len()), u16::try_from(frame.len())) {
        (Ok(length), _) if length < 126 => bytes.push(length),
        (_, Ok(length)) => {
            bytes.push(126);
            bytes.extend_from_slice(&length.to_be_bytes());
        }
        (_, Err(_)) => {
            bytes.push(127);
            bytes.extend_from_slice(&(frame.len() as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(frame);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_shortest_header() {
        let header = |length: usize| {
            let bytes = Framing::WebSocket.wrap(&vec![7; length]);
            bytes[..bytes.len() - length].to_vec()
        };

        assert_eq!(header(0), [0x82, 0]);
        assert_eq!(header(125), [0x82, 125]);
        assert_eq!(header(126), [0x82, 126, 0, 126]);
        assert_eq!(header(200), [0x82, 126, 0, 200]);
        assert_eq!(header(65_535), [0x82, 126, 0xff, 0xff]);
        assert_eq!(header(65_536), [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn the_frame_is_found_again() {
        let frames = Frames::new(b"kind");

        assert_eq!(frames.frame(), b"kind");
        assert_eq!(&frames.bytes(form(Codec::Identity))[..], b"\0\0\0\x04kind");
    }

    #[test]
    fn a_frame_with_items_is_compressed_for_those_who_asked_for_it() {
        let frame = b"items".repeat(100);
        let (frames, news) = (Frames::with_items(&frame), Frames::new(&frame));
        let (plain, packed) = (form(Codec::Identity), form(Codec::Deflate));

        assert_eq!(frames.bytes(plain), &Framing::Stream.wrap(&frame));
        assert_eq!(frames.bytes(packed), &Framing::Stream.wrap(&deflate(&frame).unwrap()));
        assert_eq!(frames.saved(packed), frames.bytes(plain).len() - frames.bytes(packed).len());
        assert_eq!(frames.frame(), frame);
        assert_eq!((news.bytes(packed), news.saved(packed)), (frames.bytes(plain), 0));
    }

    #[test]
    fn a_short_frame_stays_as_it_is() {
        let frames = |bytes| Frames::with_items(&vec![7; bytes]);

        assert_eq!(frames(PACKED_BYTES_MIN - 1).saved(form(Codec::Deflate)), 0);
        assert!(frames(PACKED_BYTES_MIN).saved(form(Codec::Deflate)) > 0);
    }

    fn form(codec: Codec) -> Form {
        Form { framing: Framing::Stream, codec }
    }
}
