//! Items in the clothes of a video, for networks that carry nothing else: what HLS and FLV players
//! and live CDNs take for a stream of 16 × 16 grey pixels brings the room's items along.

pub mod avc;
pub mod flv;
pub mod fragment;
pub mod frame;
mod id3;
pub mod nal;
pub mod reel;
pub mod sei;
