//! How long messages are that the other side of a push sends.
//!
//! The library reads a message of any length, and goes as deep into it as it nests: 5 bytes a level,
//! each some hundred bytes of stack. So a message is measured before the library sees its end.

use rml_rtmp::chunk_io::ChunkDeserializer;
use rml_rtmp::messages::RtmpMessage;

/// Bytes of one message with its chunks' headers: it nests less than a thousand times.
const MESSAGE_BYTES_MAX: usize = 4096;
/// The type of a message that says how long chunks are from then on.
const CHUNK_SIZE: u8 = 1;

/// A message is longer than any that has to be said, or none at all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooLong;

/// Follows what one connection says.
pub(super) struct Measure {
    chunks: ChunkDeserializer,
    /// Bytes since the last whole message.
    open: usize,
}

impl Measure {
    pub(super) fn new() -> Self {
        Self { chunks: ChunkDeserializer::new(), open: 0 }
    }

    /// Takes what was heard; fails before what is too long may be read as a message.
    pub(super) fn take(&mut self, mut heard: &[u8]) -> Result<(), TooLong> {
        self.open += heard.len();
        while let Some(message) = self.chunks.get_next_message(heard).map_err(|_| TooLong)? {
            if message.data.len() > MESSAGE_BYTES_MAX {
                return Err(TooLong);
            }
            (self.open, heard) = (0, &[]);
            if message.type_id == CHUNK_SIZE
                && let Ok(RtmpMessage::SetChunkSize { size }) = message.to_rtmp_message()
            {
                let size = usize::try_from(size).map_err(|_| TooLong)?;
                self.chunks.set_max_chunk_size(size).map_err(|_| TooLong)?;
            }
        }
        if self.open > MESSAGE_BYTES_MAX { Err(TooLong) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rml_rtmp::chunk_io::ChunkSerializer;
    use rml_rtmp::messages::MessagePayload;
    use rml_rtmp::time::RtmpTimestamp;

    use super::*;

    /// What is sent for a message of a type, with chunks of 64 KiB.
    fn said(messages: impl IntoIterator<Item = (u8, Vec<u8>)>) -> Vec<u8> {
        let mut serializer = ChunkSerializer::new();
        let time = RtmpTimestamp::new(0);
        let mut bytes = serializer.set_max_chunk_size(0xFFFF, time).unwrap().bytes;
        for (type_id, data) in messages {
            let data = Bytes::from(data);
            let message = MessagePayload { timestamp: time, type_id, message_stream_id: 0, data };
            bytes.extend(serializer.serialize(&message, false, false).unwrap().bytes);
        }
        bytes
    }

    /// How much of it is taken, so many bytes at a time.
    fn taken(said: &[u8], step: usize) -> usize {
        let mut measure = Measure::new();
        said.chunks(step).take_while(|it| measure.take(it).is_ok()).map(<[u8]>::len).sum()
    }

    #[test]
    fn a_message_that_comes_in_small_pieces_is_found_too_long_before_its_end() {
        // An AMF 0 array of one array of one array: a level every 5 bytes.
        let nested = [0x0A, 0, 0, 0, 1].repeat(10_000);
        let said = said([(20, nested)]);

        for step in [1, 64, 4000] {
            assert!(taken(&said, step) < 2 * MESSAGE_BYTES_MAX, "{step} bytes at a time");
        }
        assert_eq!(taken(&said, said.len()), 0);
    }

    #[test]
    fn any_number_of_short_messages_may_come() {
        let acknowledgement = |_| (3, vec![0, 0, 1, 0]);
        let said = said((0..5_000).map(acknowledgement).chain([(20, vec![5; 4_000])]));

        for step in [1, 64, 4_000] {
            assert_eq!(taken(&said, step), said.len(), "{step} bytes at a time");
        }
    }
}
