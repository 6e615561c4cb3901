//! A link that serves viewers, and strangers who send it spoiled frames before and after login.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use drill::{Line, Probe, Stage, stage};
use kit::meter::list;
use kit::seed::derive;
use kit::task::Tasks;
use parking_lot::Mutex;
use proto::address::Transport;
use proto::enter::Offer;
use proto::frame::{Credential, Join, Path, prefixed};
use proto::id::ViewerId;
use proto::time::Mono;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use sdk::raw::Raw;
use sdk::wire::WireError;

use super::spoil::spoiled;

/// Viewers who are served meanwhile.
const VIEWERS: usize = 8;
/// Strangers at a time.
const STRANGERS: u64 = 8;
/// Comments a second, over all viewers.
const COMMENTS_PER_S: u64 = 10;
/// Frames of one stranger.
const FRAMES_MAX: u32 = 4;
/// One in so many strangers has a token.
const GUESTS: u32 = 4;
/// How long a stranger waits for the link to say or do something.
const WAIT: Duration = Duration::from_millis(200);
/// The viewers are served within this time when all is over.
const SERVED_MAX: Duration = Duration::from_secs(10);
/// Everything of the strangers is gone within this time: a login may take ten seconds.
const GONE_MAX: Duration = Duration::from_secs(20);

/// Attacks a link for so long.
pub(super) async fn run(
    vectors: Vec<Vec<u8>>,
    length: Duration,
    line: &mut Line,
) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::open(folder.path(), line.seed(), &stage::settings(), |_| {}).await?;
    let stage = Arc::new(stage);
    let crowd = stage.crowd(VIEWERS).await?;
    let mut probe = Probe::enter(&stage, "probe", Path::Push).await?;

    let end = stage.clock.mono() + length;
    let done = Arc::new(Mutex::new(Done::default()));
    let vectors: Arc<[Vec<u8>]> = vectors.into();
    let mut strangers = Tasks::default();
    for number in 0..STRANGERS {
        let stranger = Stranger {
            account: ViewerId::parse(&format!("stranger-{number}"))?,
            stage: Arc::clone(&stage),
            vectors: Arc::clone(&vectors),
            done: Arc::clone(&done),
            rng: SmallRng::seed_from_u64(derive(line.seed(), &format!("stranger {number}"))),
        };
        strangers.spawn("stranger", stranger.until(end));
    }
    let script = stage::steady(COMMENTS_PER_S, length, 8);
    let (ended, ()) = tokio::join!(strangers.join(), crowd.play(&script, 1.0, None));
    ended?;

    let served_ms = probe.is_served(SERVED_MAX).await?;
    let handshakes = stage.meter.gauge(list::LINK_HANDSHAKES, &[]);
    let is_calm = || stage.sessions() == VIEWERS + 1 && handshakes.get() == 0;
    let gone = stage.wait(GONE_MAX, "the strangers to be gone", is_calm).await;
    let summary = crowd.end(0).await?;
    let done = *done.lock();
    line.figure("connections", done.connections);
    line.figure("logins", done.logins);
    line.figure("frames", done.frames);
    line.figure("closed_by_link", done.closed);
    line.figure("served_ms", served_ms);
    line.audit(&summary);
    line.check(done.frames > 0 && done.closed > 0, || "no frame was refused".to_owned());
    line.check(done.unreached == 0, || format!("{} connections were not made", done.unreached));
    line.check(gone.is_ok(), || {
        format!("{} sessions and {} handshakes are left", stage.sessions(), handshakes.get())
    });
    probe.leave().await?;
    match Arc::try_unwrap(stage) {
        Ok(stage) => stage.close().await,
        Err(_) => anyhow::bail!("a stranger is still there"),
    }
}

/// What strangers did.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    connections: u64,
    unreached: u64,
    logins: u64,
    frames: u64,
    closed: u64,
}

struct Stranger {
    account: ViewerId,
    stage: Arc<Stage>,
    vectors: Arc<[Vec<u8>]>,
    done: Arc<Mutex<Done>>,
    rng: SmallRng,
}

impl Stranger {
    async fn until(mut self, end: Mono) -> anyhow::Result<()> {
        while self.stage.clock.mono() < end {
            self.attack().await?;
        }
        Ok(())
    }

    /// One connection: perhaps a login, some frames, and then the link's answer or a hasty leave.
    async fn attack(&mut self) -> anyhow::Result<()> {
        let addresses = &self.stage.addrs.link;
        let address = addresses[self.rng.random_range(0..addresses.len())].clone();
        let tls = Some(self.stage.trust.of(address.transport));
        self.done.lock().connections += 1;
        let Ok(mut raw) = sdk::raw::connect(&address, tls, 10 * WAIT).await else {
            self.done.lock().unreached += 1;
            return Ok(());
        };
        if self.rng.random_ratio(1, GUESTS) {
            self.log_in(&mut raw, address.transport).await?;
        }
        for _ in 0..self.rng.random_range(1..=FRAMES_MAX) {
            let sent = self.send(&mut raw).await;
            self.done.lock().frames += 1;
            if sent.is_err() {
                self.done.lock().closed += 1;
                return Ok(());
            }
        }
        if self.rng.random() {
            self.listen(&mut raw).await;
        }
        Ok(())
    }

    async fn log_in(&self, raw: &mut Raw, transport: Transport) -> anyhow::Result<()> {
        let Offer { token, .. } = self.stage.offer(&self.account, transport).await?;
        let join = Join { room: self.stage.room.clone(), path: Path::Push, resume: None };
        self.done.lock().logins += 1;
        // The link may have closed already; the next frame finds out.
        let _said = raw.login(Credential::Token(token), None, vec![join]).await;
        Ok(())
    }

    /// A spoiled frame; on a stream now and then with a length that lies.
    async fn send(&mut self, raw: &mut Raw) -> Result<(), WireError> {
        let frame = spoiled(&self.vectors, &mut self.rng);
        if self.rng.random_ratio(1, 4) {
            let mut bytes = prefixed(&frame).to_vec();
            let lie: u32 = if self.rng.random() { self.rng.random() } else { 70_000 };
            bytes[..4].copy_from_slice(&lie.to_be_bytes());
            return raw.send_bytes(bytes.into()).await;
        }
        raw.send_frame(Bytes::from(frame)).await
    }

    /// Reads until the link closes, or is silent.
    async fn listen(&self, raw: &mut Raw) {
        loop {
            match tokio::time::timeout(WAIT, raw.recv()).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) => {
                    self.done.lock().closed += 1;
                    return;
                }
                Err(_) => return,
            }
        }
    }
}
