//! The measured side: all services, one room, and flushes for it.

use std::sync::Arc;

use anyhow::ensure;
use kit::clock::Clock;
use kit::meter::list;
use kit::task::Tasks;
use proto::address::Transport;
use proto::control::RoomSettings;
use proto::envelope::{RoomEntry, RoomEvent};
use proto::frame::{Batch, Downlink};
use proto::id::{Gen, ItemId, RoomId, SenderRef, Seq, SlotNo, UnitId, ViewerId};
use proto::item::{Body, Item, Lane, Placed, Role, Style};
use proto::time::Wall;
use stack::{Business, Config, Shared, Stack, crowd, identity};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{Orders, Report};

/// Text of an item: with its place, id, sender and style it takes 200 bytes of a frame.
const TEXT_BYTES: usize = 187;
/// Ahead of every gen that the broadcaster opens meanwhile.
const GEN: Gen = Gen(1_000_000);
/// The room's own seals come seldom.
const INTERVAL_MS: u32 = 10_000;
/// Sessions are silent longer than viewers would be.
const SILENCE_MS_MAX: u32 = 600_000;

/// The measured side.
pub(crate) struct Site {
    orders: Orders,
    business: Business,
    shared: Shared,
    unit: UnitId,
    room: RoomId,
    clock: Clock,
    seq: u64,
    part: u32,
    pushed: Sent,
    services: Tasks,
    stop: CancellationToken,
    _data: TempDir,
}

/// What every session must have in the end.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    frames: u64,
    bytes: u64,
    items: u64,
}

impl Site {
    /// Starts all services, with a room and tickets for so many accounts.
    pub(crate) async fn open(clock: &Clock, accounts: usize) -> anyhow::Result<Self> {
        Box::pin(Self::open_with(clock, accounts, |_| {})).await
    }

    /// The same, with what `change` does to the configuration.
    pub(crate) async fn open_with(
        clock: &Clock,
        accounts: usize,
        change: impl FnOnce(&mut Config),
    ) -> anyhow::Result<Self> {
        let data = tempfile::tempdir()?;
        let mut config = Config::demo(data.path());
        config.gslb.rate.enabled = false;
        config.link.silence_ms_max = SILENCE_MS_MAX;
        change(&mut config);
        let unit = config.link.unit;
        let stack = Box::pin(Stack::bind(config, clock.clone(), 1)).await?;
        let room = RoomId::parse("fanout")?;
        let (addrs, identity, trust) = (stack.addrs(), stack.identity(), stack.trust());
        let app = identity.app();
        let signer = Arc::new(crowd::signer(&app)?);
        let tickets = (0..accounts).map(|number| {
            let account = ViewerId::parse(&format!("viewer-{number}"))?;
            Ok(crowd::ticket_source(&signer, &app, &account, &room, clock)())
        });
        let orders = Orders {
            sessions: 0,
            transport: Transport::Tcp,
            enter_url: addrs.enter.clone(),
            ca_pem: trust.ca_pem.clone(),
            room: room.clone(),
            tickets: tickets.collect::<anyhow::Result<_>>()?,
        };
        let http = sdk::http::client(&trust.tls)?;
        let business = Business::new(http, addrs.api.clone(), identity.api_key.clone());
        let shared = stack.shared().clone();
        let (mut services, stop) = (Tasks::default(), CancellationToken::new());
        services.spawn("stack", Box::pin(stack.run(stop.clone())));
        let settings = RoomSettings { interval_ms: INTERVAL_MS, ..RoomSettings::default() };
        business.create_room(&room, &settings).await?;
        Ok(Self {
            orders,
            business,
            shared,
            unit,
            room,
            clock: clock.clone(),
            seq: 0,
            part: 0,
            pushed: Sent::default(),
            services,
            stop,
            _data: data,
        })
    }

    /// Sessions that are logged in.
    pub(crate) fn sessions(&self) -> usize {
        let gauge = self.shared.meter.gauge(list::LINK_SESSIONS, &[]);
        gauge.get().try_into().unwrap_or(0)
    }

    /// People in the room, as the business server is told.
    pub(crate) async fn people(&self) -> anyhow::Result<u64> {
        self.business.people(&self.room).await
    }

    /// What the receivers are told.
    pub(crate) fn orders(&self, sessions: usize, transport: Transport) -> Orders {
        Orders { sessions, transport, ..self.orders.clone() }
    }

    /// Puts a flush on the bus.
    pub(super) async fn flush(&mut self, items: usize) -> anyhow::Result<()> {
        let batch = self.batch(items);
        self.pushed.add(items, Downlink::Batch(batch.clone()).encode().len());
        let Batch { room, gen_no, slot, part, items } = batch;
        let event = RoomEvent::Flush { gen_no, slot, part, at: self.clock.wall(), items };
        self.shared.tell_links(self.unit, RoomEntry { app: identity::APP, room, event }).await?;
        Ok(())
    }

    /// Whether every session has every item.
    pub(super) fn check(&self, report: &Report) -> anyhow::Result<()> {
        self.pushed.check(report)
    }

    /// Ends all services.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.services.join().await
    }

    fn batch(&mut self, items: usize) -> Batch {
        let items = (0..items).map(|_| self.next()).collect();
        self.part += 1;
        Batch { room: self.room.clone(), gen_no: GEN, slot: SlotNo(0), part: self.part, items }
    }

    fn next(&mut self) -> Placed {
        self.seq += 1;
        placed(self.seq, self.clock.wall())
    }
}

fn placed(number: u64, at: Wall) -> Placed {
    let text = "x".repeat(TEXT_BYTES).into();
    let item = Item {
        id: ItemId::compose(at.0, 1, u16::try_from(number % 4096).unwrap_or(0)),
        lane: Lane::Comment,
        sender: SenderRef(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        role: Role::Viewer,
        at,
        body: Body::Comment { text, style: Style::default(), media_ms: None, count: 1 },
    };
    Placed { seq: Seq(number), item }
}

impl Sent {
    fn add(&mut self, items: usize, bytes: usize) {
        self.frames += 1;
        self.bytes += bytes as u64;
        self.items += items as u64;
    }

    fn check(self, report: &Report) -> anyhow::Result<()> {
        let Self { frames, bytes, items } = self;
        let all = Report { frames: [frames; 2], bytes: [bytes; 2], items };
        ensure!(*report == all, "every session should have {all:?}, but they have {report:?}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_takes_200_bytes_of_a_frame() {
        let bytes = |items: u64| {
            let items = (0..items).map(|it| placed(it, Wall(1_800_000_000_000))).collect();
            let room = RoomId::parse("fanout").unwrap();
            let batch = Batch { room, gen_no: GEN, slot: SlotNo(0), part: 1, items };
            Downlink::Batch(batch).encode().len()
        };

        let item = (bytes(50) - bytes(10)) / 40;

        assert!((198..=202).contains(&item), "{item}");
    }
}
