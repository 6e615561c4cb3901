//! Whose network an address is on, and which region it is in.
//!
//! [`Place`] is one immutable table: the files of the configuration, laid over each other when they
//! are loaded, so that a look-up is a search in one sorted list and allocates nothing. What cannot
//! be an address of the public internet is on BGP and in no region, whatever a file says of it;
//! IPv4 that IPv6 carries (mapped, NAT64, 6to4) is looked up as IPv4.

mod carriers;
mod code;
mod config;
mod csv_file;
mod file;
mod keep;
mod mmdb_file;
mod regions;
mod rows;
mod survey;
mod systems;
mod table;

pub use carriers::Carriers;
pub use config::{Config, Network, Region};
pub use file::{Why, Wrong};
pub use rows::Misplaced;
pub use survey::{Evidence, Finding, Survey};
pub use table::{Place, Whereabouts};

pub(crate) use keep::Keeper;
pub(crate) use table::plain;
