//! What a room lets through, decided: shape, rates, verdicts, item ids, the journal.
//!
//! [`shard::Shard`] is the machine that a chatserver drives with the bus's records;
//! [`judge::judge`] is the fixed order of checks inside it. [`journal::Journal`] decides which
//! gifts and notices are published again; [`device::Place`] which of a viewer's sessions stays. No I/O, no clock, no randomness.
#![deny(missing_docs)]

pub mod asker;
pub mod breaker;
pub mod device;
pub mod flow;
pub mod fold;
pub mod gift;
pub mod hold;
pub mod id;
pub mod journal;
pub mod judge;
pub mod keep;
pub mod lately;
pub mod ledger;
pub mod links;
pub mod people;
pub mod rank;
pub mod rate;
pub mod reach;
pub mod repeats;
pub mod review;
pub mod room;
pub mod said;
pub mod sender;
pub mod settings;
pub mod shape;
pub mod shard;
pub mod sign;
pub mod sweep;
pub mod text;
pub mod webhook;
pub mod words;
