//! Domain types to FlatBuffers and back.

use bytes::Bytes;

use crate::decode::DecodeError;
use crate::envelope::{AcceptedBatch, LinkGauges, ReplyBatch, RoomBatch, UplinkBatch};
use crate::frame::{Downlink, Uplink};
use crate::load::{LoadReport, RegionLoads};
use crate::segment::Segment;

macro_rules! codec {
    ($($name:ident)+) => {
        $(impl $name {
            /// The bytes on the wire.
            #[must_use]
            pub fn encode(&self) -> Bytes {
                unimplemented!()
            }

            /// Reads what [`Self::encode`] wrote, and refuses everything else.
            pub fn decode(_bytes: &[u8]) -> Result<Self, DecodeError> {
                unimplemented!()
            }
        })+
    };
}

codec!(Uplink Downlink UplinkBatch ReplyBatch AcceptedBatch RoomBatch LinkGauges LoadReport RegionLoads Segment);

impl Segment {
    /// The JSON that integrators read: the header's fields and `items`, repeats among them marked
    /// by their own `gen`; ids as strings.
    #[must_use]
    pub fn to_json(&self) -> String {
        unimplemented!()
    }
}
