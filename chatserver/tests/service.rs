//! The chatserver end to end, over a memory bus, a real room store and real HTTP.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "service/faults.rs"]
mod faults;
#[path = "service/world.rs"]
mod world;

#[path = "service/board.rs"]
mod board;
#[path = "service/business.rs"]
mod business;
#[path = "service/catalogue.rs"]
mod catalogue;
#[path = "service/comments.rs"]
mod comments;
#[path = "service/devices.rs"]
mod devices;
#[path = "service/evidence.rs"]
mod evidence;
#[path = "service/flow.rs"]
mod flow;
#[path = "service/gifts.rs"]
mod gifts;
#[path = "service/hold.rs"]
mod hold;
#[path = "service/hook.rs"]
mod hook;
#[path = "service/openapi.rs"]
mod openapi;
#[path = "service/people.rs"]
mod people;
#[path = "service/recall.rs"]
mod recall;
#[path = "service/review.rs"]
mod review;
#[path = "service/roles.rs"]
mod roles;
#[path = "service/shown.rs"]
mod shown;
#[path = "service/sweep.rs"]
mod sweep;
#[path = "service/webhook.rs"]
mod webhook;
#[path = "service/words.rs"]
mod words;
