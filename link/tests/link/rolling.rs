//! Links are replaced one after the other while a room talks: whoever is sent away goes on at the
//! next link, and gets everything once and in order.

use std::time::Duration;

use futures_util::future::join_all;
use proto::close::CloseCode;
use proto::frame::{Credential, Downlink, JoinOutcome, Path, Place, Resumed};
use proto::id::{Gen, Seq};
use proto::item::Lane;

use crate::client::Client;
use crate::world::{World, flush_of, placed};
use bus::memory::Limits;

const TRANSPORTS: [&str; 4] = ["tcp", "tls", "ws", "wss"];
/// Viewers of each transport.
const VIEWERS: usize = 4;
/// Links that are replaced.
const REPLACED: usize = 2;
/// Flushes while a link is replaced; it drains after a quarter of them.
const FLUSHES: u64 = 120;
/// Between two flushes.
const PAUSE: Duration = Duration::from_millis(5);
/// Over how long sessions are sent away.
const DRAIN_MS: u32 = 200;

#[tokio::test]
async fn a_rolling_restart_under_load_loses_nothing_and_repeats_nothing() {
    let mut world = World::with(Limits::default(), |it| {
        (it.drain_ms, it.drain_addresses_ms_max) = (DRAIN_MS, 0);
    })
    .await;
    let mut viewers = Vec::new();
    for number in 0..VIEWERS * TRANSPORTS.len() {
        viewers.push(Viewer::enter(&world, TRANSPORTS[number % TRANSPORTS.len()], number).await);
    }

    for turn in 0..REPLACED {
        world.move_to_another_link().await;
        let first = turn as u64 * FLUSHES + 1;
        let last = first + FLUSHES - 1;
        let world = &world;
        let talk = async {
            let mut pauses = tokio::time::interval(PAUSE);
            for seq in first..=last {
                pauses.tick().await;
                if seq == first + FLUSHES / 4 {
                    world.drain(turn);
                }
                let lane = if seq % 3 == 0 { Lane::HighGift } else { Lane::Comment };
                world.happen("r", vec![flush_of(seq, vec![placed(seq, lane, "text")])]).await;
            }
        };
        let reading = join_all(viewers.iter_mut().map(|it| it.read_until(world, last)));
        tokio::join!(talk, reading);
    }

    let all: Vec<u64> = (1..=FLUSHES * REPLACED as u64).collect();
    for viewer in &viewers {
        assert_eq!(viewer.shown, all, "over {}", viewer.transport);
        assert_eq!(viewer.moves, REPLACED, "over {}", viewer.transport);
    }
}

/// A viewer who comes back with what it was given.
struct Viewer {
    client: Client,
    transport: &'static str,
    ticket: String,
    shown: Vec<u64>,
    moves: usize,
}

impl Viewer {
    async fn enter(world: &World, transport: &'static str, number: usize) -> Self {
        let mut client = world.connect(transport).await;
        client.path = Path::Push;
        let token = world.token(transport, &format!("viewer-{number}"), "r");
        let ticket = client.login(&token, "r").await.ok().resume_ticket;
        Self { client, transport, ticket, shown: Vec::new(), moves: 0 }
    }

    /// Reads until this item, wherever it is sent.
    async fn read_until(&mut self, world: &World, last: u64) {
        while self.shown.last() != Some(&last) {
            match self.client.receive().await {
                Downlink::Batch(batch) => self.shown.extend(batch.items.iter().map(|it| it.seq.0)),
                Downlink::Close(close) => {
                    assert_eq!(close.code, CloseCode::Draining);
                    self.go_on(world).await;
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    async fn go_on(&mut self, world: &World) {
        let mut client = world.connect(self.transport).await;
        client.path = Path::Push;
        client.resume = self.shown.last().map(|seq| Place { gen_no: Gen(1), seq: Seq(*seq) });
        let ticket = Credential::ResumeTicket(std::mem::take(&mut self.ticket));
        let login_ok = client.login_with(ticket, "r").await.ok();
        let outcome = &login_ok.rooms[0].outcome;
        let is_recovered =
            matches!(outcome, JoinOutcome::In { resumed: Resumed::Recovered { .. }, .. });
        assert!(is_recovered, "{outcome:?}");
        (self.client, self.ticket) = (client, login_ok.resume_ticket);
        self.moves += 1;
    }
}
