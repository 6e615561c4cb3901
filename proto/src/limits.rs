//! Sizes that both ends of a wire agree on. A larger value is refused, never cut.

/// Bytes of a room's name.
pub const ROOM_BYTES_MAX: usize = 64;
/// Bytes of an account's name.
pub const ACCOUNT_BYTES_MAX: usize = 64;
/// Bytes of a device's name.
pub const DEVICE_BYTES_MAX: usize = 32;
/// Bytes of the name of a room's attribute.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 32;
/// Bytes of the name of an app's own kind of item.
pub const KIND_NAME_BYTES_MAX: usize = 32;
/// Bytes of an attribute's text: with 100 of them, and a notice, 40 KiB are said to who comes in.
pub const ATTRIBUTE_BYTES_MAX: usize = 256;

/// Bytes of one frame from a client, kind and flags included.
pub const UPLINK_FRAME_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one frame from a server: a flush of [`FLUSH_ITEMS_MAX`] long items fits.
pub const DOWNLINK_FRAME_BYTES_MAX: usize = 512 * 1024;
/// Bytes of one record on the bus (Kafka's default `max.message.bytes` is 1 MiB).
pub const RECORD_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of one segment before compression.
pub const SEGMENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a dictionary for segments: zstd's own default for one.
pub const DICTIONARY_BYTES_MAX: usize = 112_640;
/// Bytes of an app's gift catalogue: a thousand gifts.
pub const CATALOGUE_BYTES_MAX: usize = 128 * 1024;
/// Bytes of a part of one; JSON within JSON takes up to twice that, and must fit a fact.
pub const CATALOGUE_PART_BYTES: usize = 7 * 1024;
/// Bytes of one load report; with its 32 bytes of MAC it fits the smallest IPv6 datagram.
pub const REPORT_BYTES_MAX: usize = 1200;
/// Bytes of one control fact.
pub const FACT_BYTES_MAX: usize = 16 * 1024;

/// Nesting that the FlatBuffers verifier follows.
pub const VERIFIER_DEPTH_MAX: usize = 8;
/// Tables that the FlatBuffers verifier visits.
pub const VERIFIER_TABLES_MAX: usize = 4096;
/// How much larger than its bytes a buffer may claim to be (shared vectors count each time).
pub const VERIFIER_APPARENT_FACTOR: usize = 4;

/// Items of one flush.
pub const FLUSH_ITEMS_MAX: usize = 1000;
/// Items of one segment, repeats not counted.
pub const SEGMENT_ITEMS_MAX: usize = 4000;
/// Repeated items and tombstones of one segment.
pub const SEGMENT_REPEATS_MAX: usize = 1000;
/// Bytes of one text; graphemes are limited per room besides.
pub const TEXT_BYTES_MAX: usize = 2048;
/// Longest time for which a room holds a comment back before it is shown, in milliseconds.
pub const HOLD_MS_MAX: u32 = 30_000;
/// Rooms that one session may be in.
pub const ROOMS_PER_SESSION_MAX: usize = 8;
/// Bytes of a token's or resume ticket's text.
pub const TOKEN_BYTES_MAX: usize = 1024;
/// Entries of one envelope.
pub const ENVELOPE_ENTRIES_MAX: usize = 1000;
/// Names in a Hello's lists (suites, codecs).
pub const HELLO_NAMES_MAX: usize = 16;
/// Bytes of a short word: an SDK's name or version, a suite, a codec, a region, a machine room.
pub const WORD_BYTES_MAX: usize = 64;
/// Bytes of a reason in words.
pub const REASON_BYTES_MAX: usize = 512;
/// Bytes of a host name or IP address.
pub const HOST_BYTES_MAX: usize = 255;
/// Bytes of a segment base.
pub const BASE_BYTES_MAX: usize = 512;
/// Segment bases of one answer.
pub const BASES_MAX: usize = 16;
/// Addresses of one node, or in one answer.
pub const ADDRESSES_MAX: usize = 16;
/// Addresses that a node's sessions are told to move to: at most 13 KiB of a fact.
pub const MOVE_ADDRESSES_MAX: usize = 32;
/// Nodes of one region.
pub const REGION_NODES_MAX: usize = 1000;
/// Largest position in the picture: the largest whole number that every JSON reader keeps.
pub const MEDIA_MS_MAX: u64 = (1 << 53) - 1;
