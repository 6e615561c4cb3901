//! What crosses a wire: the words, their bytes, and the limits both ends keep.
//!
//! `schema/*.fbs` is the source of truth for bytes, `vectors/` holds golden examples, and
//! everything is decoded through the FlatBuffers verifier with the bounds of [`limits`].
//! Types that travel as FlatBuffers can also be read and written with serde: that is for vectors,
//! tools and logs, never for a wire.
#![deny(missing_docs)]

pub mod address;
pub mod attribute;
pub mod close;
pub mod control;
pub mod decode;
pub mod dictionary;
pub mod encoding;
pub mod enter;
pub mod envelope;
pub mod frame;
pub mod head;
pub mod heat;
pub mod id;
pub mod item;
pub mod json;
pub mod keys;
pub mod limits;
pub mod load;
pub mod network;
pub mod policy;
pub mod quality;
pub mod sealed;
pub mod segment;
pub mod suite;
pub mod time;
pub mod verdict;

mod codec;
mod generated;
