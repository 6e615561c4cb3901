//! The files in `vectors/`: `name.json` says what `name.bin` means.
#![expect(clippy::unwrap_used, reason = "a damaged vector fails the test that reads it")]

use std::path::PathBuf;

use bytes::Bytes;
use proto::decode::DecodeError;
use proto::envelope::{AcceptedBatch, LinkGauges, ReplyBatch, RoomBatch, UplinkBatch};
use proto::frame::{Downlink, Uplink};
use proto::load::{LoadReport, RegionLoads};
use proto::quality::BaseGauges;
use proto::segment::Segment;
use serde::Deserialize;

/// One vector.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) value: serde_json::Value,
    pub(crate) bytes: Vec<u8>,
}

/// What a `name.json` holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    r#type: Kind,
    #[serde(rename = "about")]
    _about: String,
    value: serde_json::Value,
}

macro_rules! kinds {
    ($($name:ident)+) => {
        /// Which type a vector has.
        #[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
        pub(crate) enum Kind {
            $($name,)+
            /// A token's text, which auth reads.
            Token,
        }

        /// A value of any of the types.
        #[derive(Debug, PartialEq)]
        pub(crate) enum Value {
            $($name(Box<$name>),)+
        }

        impl Kind {
            pub(crate) fn decode(self, bytes: &[u8]) -> Result<Value, DecodeError> {
                match self {
                    $(Self::$name => $name::decode(bytes).map(|it| Value::$name(Box::new(it))),)+
                    Self::Token => panic!("a token is not for this codec"),
                }
            }

            fn encode(self, value: &serde_json::Value) -> Bytes {
                match self {
                    $(Self::$name => $name::deserialize(value).unwrap().encode(),)+
                    Self::Token => panic!("a token is not for this codec"),
                }
            }
        }

        impl Value {
            pub(crate) fn encode(&self) -> Bytes {
                match self { $(Self::$name(it) => it.encode(),)+ }
            }

            pub(crate) fn to_json(&self) -> serde_json::Value {
                match self { $(Self::$name(it) => serde_json::to_value(it),)+ }.unwrap()
            }
        }
    };
}

kinds! {
    Uplink Downlink UplinkBatch ReplyBatch AcceptedBatch RoomBatch LinkGauges BaseGauges
    LoadReport RegionLoads Segment
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// The names of all vectors, sorted.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path());
    let descriptions = files.filter(|it| it.extension().is_some_and(|it| it == "json"));
    let mut names: Vec<String> =
        descriptions.map(|it| it.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

/// Every vector of this codec.
pub(crate) fn all() -> Vec<Vector> {
    names().iter().map(|it| read(it)).filter(|it| it.kind != Kind::Token).collect()
}

/// One vector by name.
pub(crate) fn read(name: &str) -> Vector {
    let description = std::fs::read(folder().join(format!("{name}.json"))).unwrap();
    let Description { r#type: kind, value, .. } =
        serde_json::from_slice(&description).unwrap_or_else(|why| panic!("{name}: {why}"));
    let file = folder().join(format!("{name}.bin"));
    if !file.exists() && std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, kind.encode(&value)).unwrap();
    }
    let bytes = std::fs::read(&file).unwrap_or_else(|why| panic!("{name}.bin: {why}"));
    Vector { name: name.to_owned(), kind, value, bytes }
}
