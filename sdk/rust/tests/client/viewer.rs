//! The client under test, with shorthands for what tests look at.

use std::sync::Arc;

use kit::clock::Clock;
use proto::address::Transport;
use proto::frame::Path;
use proto::id::SlotNo;
use sdk::{Client, Event, Events, Options};
use tokio::time::timeout;

use crate::link::STEP;
use crate::rooms::room;
use crate::site::Site;

/// The client under test.
pub(crate) struct Viewer {
    pub(crate) client: Client,
    events: Events,
}

/// Certificates for 127.0.0.1.
pub(crate) fn certificates() -> channel::DevCerts {
    let folder = tempfile::tempdir().expect("a folder");
    channel::DevCerts::load_or_create(folder.path(), &["127.0.0.1"]).expect("certificates")
}

/// The same for the national suites.
pub(crate) fn national_certificates() -> channel::DevCerts {
    let folder = tempfile::tempdir().expect("a folder");
    channel::DevCerts::load_or_create_national(folder.path(), &[]).expect("certificates")
}

pub(crate) fn options(site: &Site, path: Path) -> Options {
    let tls = certificates().client().expect("an authority");
    let http = sdk::http::client(&tls).expect("an HTTP client");
    let ticket = Arc::new("ticket-1".to_owned());
    let mut options = Options::new(site.enter_url(), ticket, http, Clock::system(), 7);
    options.rooms = vec![(room(), path)];
    options.transports = vec![Transport::Tcp];
    options
}

impl Viewer {
    pub(crate) fn start(options: Options) -> Self {
        let (client, events) = Client::start(options);
        Self { client, events }
    }

    pub(crate) async fn next(&mut self) -> Event {
        let event = timeout(STEP, self.events.next()).await.expect("an event in time");
        event.expect("it has not ended")
    }

    /// The next event that `wanted` takes; others are passed over.
    pub(crate) async fn until<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(&self.next().await) {
                return found;
            }
        }
    }

    pub(crate) async fn connected(&mut self) -> u16 {
        self.until(|it| match it {
            Event::Connected { address, .. } => Some(address.port),
            _ => None,
        })
        .await
    }

    /// The seqs of the next items; nothing may be missing between them.
    pub(crate) async fn shown(&mut self, count: usize) -> Vec<u64> {
        let mut seqs = Vec::new();
        while seqs.len() < count {
            match self.next().await {
                Event::Show { place, .. } => seqs.push(place.seq.0),
                Event::Gap { from, to, .. } => panic!("a gap from {from:?} to {to:?}"),
                _ => {}
            }
        }
        seqs
    }

    pub(crate) async fn ended(mut self) -> Event {
        let last = self.until(|it| matches!(it, Event::Ended(_)).then(|| it.clone())).await;
        assert!(timeout(STEP, self.events.next()).await.expect("an end").is_none());
        last
    }
}

/// The end of a slot's path.
pub(crate) fn file(slot: u64) -> String {
    format!("/1/full/{}.bin", SlotNo(slot))
}
