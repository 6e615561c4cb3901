//! The chatserver end to end, over a memory bus, a real room store and real HTTP.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "service/world.rs"]
mod world;

#[path = "service/business.rs"]
mod business;
#[path = "service/comments.rs"]
mod comments;
#[path = "service/devices.rs"]
mod devices;
#[path = "service/gifts.rs"]
mod gifts;
#[path = "service/people.rs"]
mod people;
#[path = "service/words.rs"]
mod words;
