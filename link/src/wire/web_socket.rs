//! WebSocket frames (RFC 6455) from a client: masked, possibly in fragments.

use std::io::Cursor;

use bytes::Bytes;
use proto::close::CloseCode;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::{Decoder, Found, Step};

/// Most bytes of a control frame's content.
const CONTROL_BYTES_MAX: usize = 125;

/// The close frame that carries one of our codes.
pub(crate) fn close_frame(code: CloseCode) -> [u8; 4] {
    let [high, low] = code.code().to_be_bytes();
    [0x88, 2, high, low]
}

/// The pong that answers a ping.
pub(crate) fn pong_frame(content: &[u8]) -> Bytes {
    let mut bytes = vec![0x8a, u8::try_from(content.len()).unwrap_or(0)];
    bytes.extend_from_slice(content);
    bytes.into()
}

impl Decoder {
    pub(super) fn web_socket(&mut self, bytes: &[u8]) -> Step {
        let mut cursor = Cursor::new(bytes);
        let (header, length) = match FrameHeader::parse(&mut cursor) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return Step::More,
            Err(_) => return Step::Over(Found::Garbage),
        };
        let Some(mask) = header.mask.filter(|_| !(header.rsv1 || header.rsv2 || header.rsv3))
        else {
            return Step::Over(Found::Garbage);
        };
        let room = match header.opcode {
            OpCode::Data(_) => {
                let begun = self.partial.as_ref().map_or(0, |it| it.message.len());
                (self.frame_bytes_max as usize).saturating_sub(begun)
            }
            OpCode::Control(_) if !header.is_final => return Step::Over(Found::Garbage),
            OpCode::Control(_) => CONTROL_BYTES_MAX,
        };
        let Some(length) = usize::try_from(length).ok().filter(|&it| it <= room) else {
            return Step::Over(match header.opcode {
                OpCode::Data(_) => Found::TooLarge,
                OpCode::Control(_) => Found::Garbage,
            });
        };
        let start = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
        let Some(content) = bytes.get(start..).and_then(|it| it.get(..length)) else {
            return Step::More;
        };
        let content = unmasked(content, mask);
        match header.opcode {
            OpCode::Data(data) => self.data(data, header.is_final, content, start + length),
            OpCode::Control(control) => controlled(control, content, start + length),
        }
    }

    /// A piece of a message. Pieces of one message come in order, with only control frames between
    /// them.
    fn data(&mut self, data: Data, is_final: bool, content: Vec<u8>, passed: usize) -> Step {
        let in_message = self.partial.as_ref().is_some_and(|it| it.in_message);
        let fits = match data {
            Data::Binary => !in_message,
            Data::Continue => in_message,
            Data::Text | Data::Reserved(_) => false,
        };
        if !fits {
            return Step::Over(Found::Garbage);
        }
        if is_final && !in_message {
            return Step::Found(passed, Found::Frame(content.into()));
        }
        let partial = self.partial.get_or_insert_default();
        partial.message.extend_from_slice(&content);
        partial.in_message = !is_final;
        if is_final {
            let message = std::mem::take(&mut partial.message);
            return Step::Found(passed, Found::Frame(message.into()));
        }
        Step::Passed(passed)
    }
}

fn controlled(control: Control, content: Vec<u8>, passed: usize) -> Step {
    match control {
        Control::Ping => Step::Found(passed, Found::Ping(content.into())),
        Control::Pong => Step::Found(passed, Found::Pong),
        Control::Close if is_goodbye(&content) => Step::Over(Found::Bye),
        Control::Close | Control::Reserved(_) => Step::Over(Found::Garbage),
    }
}

/// Whether a Close frame says nothing, or a code that may be sent and a reason in UTF-8 (RFC 6455
/// 5.5.1 and 7.4; codes of IANA's registry that were assigned later included).
fn is_goodbye(content: &[u8]) -> bool {
    let Some((code, reason)) = content.split_first_chunk() else {
        return content.is_empty();
    };
    matches!(u16::from_be_bytes(*code), 1000..=1003 | 1007..=1014 | 3000..=4999)
        && std::str::from_utf8(reason).is_ok()
}

fn unmasked(content: &[u8], mask: [u8; 4]) -> Vec<u8> {
    content.iter().zip(mask.iter().cycle()).map(|(byte, key)| byte ^ key).collect()
}

#[cfg(test)]
mod tests {
    use link_core::framing::Framing;

    use super::*;

    const MASK: [u8; 4] = [1, 2, 3, 4];

    #[test]
    fn fragments_make_one_frame_even_inside_a_letter_and_around_a_ping() {
        let text = "弹幕".as_bytes();
        let bytes = [
            frame(0x02, &text[..1]),
            frame(0x89, b"still here"),
            frame(0x00, &text[1..4]),
            frame(0x80, &text[4..]),
            frame(0x82, b"next"),
        ]
        .concat();
        for cut in 0..bytes.len() {
            let mut decoder = Decoder::new(Framing::WebSocket, 64);
            let mut found = Vec::new();

            decoder.feed(&bytes[..cut], &mut found);
            decoder.feed(&bytes[cut..], &mut found);

            let expected = [
                Found::Ping(Bytes::from_static(b"still here")),
                Found::Frame(Bytes::copy_from_slice(text)),
                Found::Frame(Bytes::from_static(b"next")),
            ];
            assert_eq!(found, expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_message_over_the_limit_is_refused_in_one_piece_or_many() {
        check(&frame(0x82, &[0; 65]), Found::TooLarge);
        check(&[frame(0x02, &[0; 40]), frame(0x80, &[0; 25])].concat(), Found::TooLarge);
        check(&[0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4], Found::TooLarge);
    }

    #[test]
    fn what_breaks_the_rules_is_garbage() {
        check(&[0x82, 1, b'x'], Found::Garbage); // no mask
        check(&frame(0x81, b"text"), Found::Garbage);
        check(&frame(0xc2, b"reserved bit"), Found::Garbage);
        check(&frame(0x83, b"reserved opcode"), Found::Garbage);
        check(&frame(0x80, b"continues nothing"), Found::Garbage);
        check(&[frame(0x02, b"begun"), frame(0x82, b"again")].concat(), Found::Garbage);
        check(&frame(0x09, b"ping in pieces"), Found::Garbage);
    }

    #[test]
    fn goodbye_is_heard() {
        check(&frame(0x88, &1000_u16.to_be_bytes()), Found::Bye);
        check(&frame(0x88, b""), Found::Bye);
        check(&frame(0x88, b"\x03"), Found::Garbage);
        check(&frame(0x88, &1005_u16.to_be_bytes()), Found::Garbage);
        check(&frame(0x88, b"\x03\xe8\xff"), Found::Garbage);
    }

    fn check(bytes: &[u8], expected: Found) {
        let mut decoder = Decoder::new(Framing::WebSocket, 64);
        let mut found = Vec::new();

        decoder.feed(bytes, &mut found);

        assert_eq!(found, [expected], "{bytes:?}");
    }

    fn frame(first: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first, 0x80 | u8::try_from(content.len()).unwrap()];
        bytes.extend_from_slice(&MASK);
        bytes.extend(content.iter().zip(MASK.iter().cycle()).map(|(byte, key)| byte ^ key));
        bytes
    }
}
