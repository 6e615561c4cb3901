//! Bytes from a client become frames.
//!
//! A decoder keeps nothing while frames arrive whole; of a partial one it keeps what arrived, and
//! that is never more than a frame may have. It believes no length before checking it.

mod stream;
mod web_socket;

use bytes::Bytes;
use link_core::framing::Framing;

pub(crate) use web_socket::{close_frame, pong_frame};

/// What was found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Found {
    /// A frame: `kind | flags | FlatBuffer`.
    Frame(Bytes),
    /// A WebSocket ping; a pong with the same bytes answers it.
    Ping(Bytes),
    /// A sign of life without content.
    Pong,
    /// The client says goodbye.
    Bye,
    /// A frame that is longer than allowed. Nothing can follow.
    TooLarge,
    /// Bytes that are no frame. Nothing can follow.
    Garbage,
}

/// Turns what was read into frames.
#[derive(Debug)]
pub(crate) struct Decoder {
    framing: Framing,
    frame_bytes_max: u32,
    /// None between frames.
    partial: Option<Box<Partial>>,
}

/// What is there of a frame.
#[derive(Debug, Default)]
struct Partial {
    /// Bytes that are not understood yet.
    pending: Vec<u8>,
    /// The content of fragments.
    message: Vec<u8>,
    in_message: bool,
}

impl Partial {
    const fn is_empty(&self) -> bool {
        self.pending.is_empty() && !self.in_message
    }
}

impl Decoder {
    pub(crate) const fn new(framing: Framing, frame_bytes_max: u32) -> Self {
        Self { framing, frame_bytes_max, partial: None }
    }

    /// Allows longer frames, once the client has shown who it is.
    pub(crate) const fn allow(&mut self, frame_bytes_max: u32) {
        self.frame_bytes_max = frame_bytes_max;
    }

    /// Takes in what was read, and adds what it completes to `found`.
    pub(crate) fn feed(&mut self, bytes: &[u8], found: &mut Vec<Found>) {
        let partial = self.partial.as_mut();
        let mut pending = partial.map_or_else(Vec::new, |it| std::mem::take(&mut it.pending));
        let rest = if pending.is_empty() {
            let passed = self.pass(bytes, found);
            bytes[passed..].to_vec()
        } else {
            pending.extend_from_slice(bytes);
            let passed = self.pass(&pending, found);
            pending.drain(..passed);
            if passed > 0 {
                // What is left may be a byte, in the room of a whole read.
                pending.shrink_to_fit();
            }
            pending
        };
        if !rest.is_empty() {
            self.partial.get_or_insert_default().pending = rest;
        }
        self.partial.take_if(|it| it.is_empty());
    }

    /// Adds what is complete to `found`; returns how many bytes that was.
    fn pass(&mut self, bytes: &[u8], found: &mut Vec<Found>) -> usize {
        let mut passed = 0;
        loop {
            let rest = &bytes[passed..];
            let step = match self.framing {
                Framing::Stream => self.stream(rest),
                Framing::WebSocket => self.web_socket(rest),
            };
            match step {
                Step::More => return passed,
                Step::Passed(length) => passed += length,
                Step::Found(length, one) => {
                    found.push(one);
                    passed += length;
                }
                Step::Over(why) => {
                    found.push(why);
                    return bytes.len();
                }
            }
        }
    }
}

/// One look at the bytes.
enum Step {
    /// Not enough for a frame.
    More,
    /// So many bytes were taken in, and nothing is complete.
    Passed(usize),
    /// So many bytes were a frame.
    Found(usize, Found),
    /// Nothing can follow.
    Over(Found),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME_BYTES_MAX: usize = 64;
    /// The longest WebSocket header from a client, and a control frame's content.
    const AROUND_BYTES_MAX: usize = 14 + 125;

    #[test]
    fn a_byte_that_waits_takes_no_more_than_it_needs() {
        let mut decoder = Decoder::new(Framing::Stream, 64);
        let mut found = Vec::new();
        let frames = [0, 0, 0, 1, 7].repeat(3000);
        let (first, rest) = frames.split_at(1);

        decoder.feed(first, &mut found);
        decoder.feed(&[rest, first].concat(), &mut found);

        assert_eq!(found.len(), 3000);
        let capacity = decoder.partial.map(|it| it.pending.capacity());
        assert!(capacity.is_some_and(|it| it < 64), "{capacity:?}");
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_neither_kept_nor_believed(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
            web_socket: bool,
        ) {
            let framing = if web_socket { Framing::WebSocket } else { Framing::Stream };
            let mut decoder = Decoder::new(framing, 64);
            let none = Partial::default();
            let mut found = Vec::new();

            for piece in pieces {
                decoder.feed(&piece, &mut found);

                let Partial { pending, message, .. } = decoder.partial.as_deref().unwrap_or(&none);
                prop_assert!(pending.len() <= FRAME_BYTES_MAX + AROUND_BYTES_MAX);
                prop_assert!(message.len() <= FRAME_BYTES_MAX);
            }
            for one in found {
                if let Found::Frame(frame) = one {
                    prop_assert!(frame.len() <= FRAME_BYTES_MAX);
                }
            }
        }
    }
}
