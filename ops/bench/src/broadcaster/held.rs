//! What a held request costs: viewers of the next slot, who all wait at the origin.

use std::time::Duration;

use anyhow::{Context, ensure};
use kit::clock::Clock;
use kit::meter::list;
use kit::process::resident_bytes;
use kit::task::Tasks;
use proto::control::{RoomSettings, Segments};
use proto::head::Head;
use proto::id::RoomId;
use stack::{Business, Config, Stack};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::line::Line;

/// The line's name, and the benchmark's.
pub(crate) const NAME: &str = "origin.held_bytes";
/// Requests held at once. Both ends of their connections are in this process.
const HELD: usize = 5_000;
/// The longest slot there is: what is asked for in its first seconds is held for the rest of it.
const INTERVAL_MS: u32 = 10_000;
const LOOK: Duration = Duration::from_millis(20);
/// For everything that one waits for.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// `origin.held_bytes`: resident memory of one held request with its connection. Clients are bare
/// sockets, which have none beside the kernel's.
pub(crate) async fn run() -> anyhow::Result<Vec<Line>> {
    let folder = tempfile::tempdir()?;
    let clock = Clock::system();
    let stack = Stack::bind(Config::demo(folder.path()), clock.clone(), 1).await?;
    let (addrs, shared) = (stack.addrs().clone(), stack.shared().clone());
    let http = sdk::http::client(&stack.trust().tls)?;
    let business = Business::new(http.clone(), addrs.api.clone(), stack.identity().api_key.clone());
    let mut services = Tasks::default();
    let shutdown = CancellationToken::new();
    services.spawn("stack", Box::pin(stack.run(shutdown.clone())));

    let room = RoomId::parse("held")?;
    let settings = RoomSettings {
        segments: Segments::Always,
        interval_ms: INTERVAL_MS,
        ..RoomSettings::default()
    };
    business.create_room(&room, &settings).await?;
    let scene = Scene { clock, origin: addrs.origin, http };
    // Right after a slot begins a whole one, in which nothing else happens.
    let head = scene.first_head().await?;
    let before = resident_bytes();
    let held = scene.hold(&head).await?;
    let meter = &shared.meter;
    scene.until(|| meter.gauge(list::BROADCASTER_HELD_REQUESTS, &[]).get() >= HELD as i64).await?;
    let after = resident_bytes();

    drop(held);
    shutdown.cancel();
    services.join().await?;
    let bytes = after.saturating_sub(before) as f64 / HELD as f64;
    Ok(vec![Line::alone(NAME, bytes, "bytes")])
}

struct Scene {
    clock: Clock,
    origin: String,
    http: reqwest::Client,
}

impl Scene {
    /// The head, once there is one.
    async fn first_head(&self) -> anyhow::Result<Head> {
        let start = self.clock.mono();
        loop {
            let url = format!("{}/dm/1/held/head.json", self.origin);
            let got = self.http.get(url).send().await?;
            if got.status().is_success() {
                return Ok(got.json().await?);
            }
            ensure!(self.clock.mono().since(start) < WAIT_MAX, "the room has no slots");
            self.clock.sleep(LOOK).await;
        }
    }

    /// Asks for the next slot on connections of their own.
    async fn hold(&self, head: &Head) -> anyhow::Result<Vec<TcpStream>> {
        let authority = self.origin.strip_prefix("http://").context("the origin is plain")?;
        let path = format!("/dm/1/held/{}/full/{}.bin", head.gen_no, head.slot.0 + 1);
        let request = format!("GET {path} HTTP/1.1\r\nhost: {authority}\r\n\r\n");
        let mut held = Vec::with_capacity(HELD);
        for _ in 0..HELD {
            let mut stream = TcpStream::connect(authority).await?;
            stream.write_all(request.as_bytes()).await?;
            held.push(stream);
        }
        Ok(held)
    }

    async fn until(&self, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
        let start = self.clock.mono();
        while !is_so() {
            ensure!(self.clock.mono().since(start) < WAIT_MAX, "not every request is held");
            self.clock.sleep(LOOK).await;
        }
        Ok(())
    }
}
