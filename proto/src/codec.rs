//! Domain types to FlatBuffers and back.
//!
//! Encoding cannot fail and does not check. Decoding checks everything: the length, the structure
//! (the verifier), then each value; what it holds meanwhile is at most a small multiple of the
//! bytes given.

mod columns;
mod envelope;
mod frame;
mod json;
mod load;
mod segment;
mod varint;
mod word;

use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, Follow, Verifiable, VerifierOptions, WIPOffset};

use crate::decode::DecodeError;
use crate::envelope::{AcceptedBatch, LinkGauges, ReplyBatch, RoomBatch, UplinkBatch};
use crate::frame::{Downlink, Uplink};
use crate::limits;
use crate::load::{LoadReport, RegionLoads};
use crate::quality::BaseGauges;
use crate::segment::Segment;

pub use json::{Line, Moment};
pub use load::{KnownRegion, KnownReport, Numbers, RegionView, ReportView};

type Builder = FlatBufferBuilder<'static>;

macro_rules! codec {
    ($($name:ident: $write:path, $read:path;)+) => {
        $(impl $name {
            /// The bytes on the wire. A value beyond [`crate::limits`] gives bytes that
            /// [`Self::decode`] refuses.
            #[must_use]
            pub fn encode(&self) -> Bytes {
                $write(self)
            }

            /// Reads what [`Self::encode`] wrote.
            ///
            /// # Errors
            ///
            /// Whatever is too long, is not of this structure, or holds a value beyond
            /// [`crate::limits`] or outside its grammar.
            pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
                $read(bytes)
            }
        })+
    };
}

codec! {
    Uplink: frame::uplink::write, frame::uplink::read;
    Downlink: frame::downlink::write, frame::downlink::read;
    UplinkBatch: envelope::uplink::write, envelope::uplink::read;
    ReplyBatch: envelope::reply::write, envelope::reply::read;
    AcceptedBatch: envelope::accepted::write, envelope::accepted::read;
    RoomBatch: envelope::room::write, envelope::room::read;
    LinkGauges: envelope::gauges::write, envelope::gauges::read;
    BaseGauges: envelope::bases::write, envelope::bases::read;
    LoadReport: load::write_report, load::read_report;
    RegionLoads: load::write_region, load::read_region;
    Segment: segment::write, segment::read;
}

impl Segment {
    /// The JSON that integrators read: the header's fields, `items`, and `repeats` with their own
    /// `gen`; 64-bit ids and refs as strings.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::segment(self)
    }
}

/// A value outside its grammar or range.
fn refused<T>(field: &'static str) -> Result<T, DecodeError> {
    Err(DecodeError::Value { field })
}

/// At least `min` and at most `max` bytes.
fn check_length(bytes: &[u8], min: usize, max: usize) -> Result<(), DecodeError> {
    if bytes.len() > max {
        return Err(DecodeError::TooLarge { bytes: bytes.len(), max });
    }
    if bytes.len() < min {
        return Err(DecodeError::TooShort { bytes: bytes.len() });
    }
    Ok(())
}

/// The root table of a FlatBuffer, verified as a whole.
fn root<'a, T: Follow<'a> + Verifiable + 'a>(bytes: &'a [u8]) -> Result<T::Inner, DecodeError> {
    let options = VerifierOptions {
        max_depth: limits::VERIFIER_DEPTH_MAX,
        max_tables: limits::VERIFIER_TABLES_MAX,
        max_apparent_size: bytes.len().saturating_mul(limits::VERIFIER_APPARENT_FACTOR),
        ignore_missing_null_terminator: false,
    };
    flatbuffers::root_with_opts::<T>(&options, bytes).map_err(|_| DecodeError::Malformed)
}

/// The root table of a record on the bus.
fn record<'a, T: Follow<'a> + Verifiable + 'a>(bytes: &'a [u8]) -> Result<T::Inner, DecodeError> {
    check_length(bytes, 1, limits::RECORD_BYTES_MAX)?;
    root::<T>(bytes)
}

/// One FlatBuffer, expected to have about `bytes` bytes.
fn build<T>(bytes: usize, write: impl FnOnce(&mut Builder) -> WIPOffset<T>) -> Bytes {
    let mut builder = Builder::with_capacity(bytes);
    let root = write(&mut builder);
    builder.finish_minimal(root);
    Bytes::copy_from_slice(builder.finished_data())
}
