//! How a frame lies on a connection: behind its length, or as one WebSocket message.

use bytes::Bytes;

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

/// One frame in every framing, encoded once and shared by all sessions of a room.
#[derive(Clone, Debug)]
pub struct Frames {
    stream: Bytes,
    web_socket: Bytes,
}

impl Frames {
    /// Encodes `kind | flags | FlatBuffer` for every framing.
    #[must_use]
    pub fn new(frame: &[u8]) -> Self {
        Self { stream: Framing::Stream.wrap(frame), web_socket: Framing::WebSocket.wrap(frame) }
    }

    /// The bytes to write.
    #[must_use]
    pub const fn bytes(&self, framing: Framing) -> &Bytes {
        match framing {
            Framing::Stream => &self.stream,
            Framing::WebSocket => &self.web_socket,
        }
    }

    /// The frame without any header.
    #[must_use]
    pub fn frame(&self) -> &[u8] {
        self.stream.get(4..).unwrap_or_default()
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
        assert_eq!(&frames.bytes(Framing::Stream)[..], b"\0\0\0\x04kind");
    }
}
