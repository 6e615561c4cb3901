//! What the driver needs.

use std::sync::Arc;
use std::time::Duration;

use broadcaster_core::settings::House;
use bus::Bus;
use kit::clock::Clock;
use kit::health::Part;
use proto::id::NodeId;
use tokio::sync::mpsc;

use crate::counts::Counts;
use crate::downlink::Downlink;
use crate::live::Live;
use crate::opener::Opener;
use crate::press::{Job, Ticket};
use crate::push::Pushes;
use crate::room_keys::RoomKeys;

/// What the driver needs.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) node: NodeId,
    pub(crate) house: House,
    pub(crate) clock: Clock,
    pub(crate) counts: Counts,
    pub(crate) health: Part,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) opener: Opener,
    pub(crate) downlink: Downlink,
    pub(crate) live: Arc<Live>,
    pub(crate) keys: Arc<RoomKeys>,
    pub(crate) pushes: Pushes,
    pub(crate) jobs: mpsc::Sender<Job>,
    pub(crate) stored: mpsc::Receiver<Ticket>,
    pub(crate) gauge_max: Duration,
    pub(crate) drain_max: Duration,
}
