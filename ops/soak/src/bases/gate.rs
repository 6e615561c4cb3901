//! A segment base that can be made slow: a proxy in front of the origin that counts who asks.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kit::clock::Clock;
use kit::task::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Connections through one gate at a time: a slow base has one for each of its pollers.
const CONNECTIONS_MAX: usize = 8_192;
/// Bytes of a question: a request line and a few headers.
const QUESTION_BYTES_MAX: usize = 4 * 1024;

/// One base.
#[derive(Debug)]
pub(super) struct Gate {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _tasks: Tasks,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    origin: watch::Sender<Option<SocketAddr>>,
    delay_ms: AtomicU64,
    asked: Asked,
}

/// Questions so far, each counted when it arrives.
#[derive(Debug, Default)]
struct Asked {
    /// Of viewers with a session.
    full: AtomicU64,
    /// Of viewers without one: in this run they ask for the lite tier.
    lite: AtomicU64,
}

impl Gate {
    /// Listens; questions wait until there is an origin.
    pub(super) async fn open(clock: Clock) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let shared = Arc::new(Shared {
            clock,
            origin: watch::Sender::new(None),
            delay_ms: AtomicU64::new(0),
            asked: Asked::default(),
        });
        let mut tasks = Tasks::default();
        tasks.spawn("gate", serve(listener, Arc::clone(&shared)));
        Ok(Self { addr, shared, _tasks: tasks })
    }

    /// What is handed out.
    pub(super) fn base(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Where the answers come from.
    pub(super) fn lead_to(&self, origin: SocketAddr) {
        self.shared.origin.send_replace(Some(origin));
    }

    /// Every question from now on waits so long.
    pub(super) fn slow(&self, delay: Duration) {
        self.shared.delay_ms.store(proto::time::millis(delay), Ordering::Relaxed);
    }

    /// Segments asked for so far: by viewers with a session, and by those without.
    pub(super) fn asked(&self) -> (u64, u64) {
        let Asked { full, lite } = &self.shared.asked;
        (full.load(Ordering::Relaxed), lite.load(Ordering::Relaxed))
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) -> anyhow::Result<()> {
    let mut tasks = Tasks::default();
    loop {
        let (viewer, _) = listener.accept().await?;
        tasks.reap()?;
        if tasks.len() < CONNECTIONS_MAX {
            let shared = Arc::clone(&shared);
            tasks.spawn("gate connection", async move {
                if let Err(error) = shared.carry(viewer).await {
                    tracing::debug!(%error, "a connection through a gate broke");
                }
                Ok(())
            });
        }
    }
}

impl Shared {
    /// Carries questions to the origin, late if they must be, and answers back, until one end is
    /// gone.
    async fn carry(&self, mut viewer: TcpStream) -> anyhow::Result<()> {
        let origin = *self.origin.subscribe().wait_for(Option::is_some).await?;
        let Some(origin) = origin else { return Ok(()) };
        let mut origin = TcpStream::connect(origin).await?;
        viewer.set_nodelay(true)?;
        origin.set_nodelay(true)?;
        let (mut asks, mut hears) = viewer.split();
        let (mut answers, mut takes) = origin.split();
        let asking = async {
            let mut question = vec![0; QUESTION_BYTES_MAX];
            loop {
                let bytes = asks.read(&mut question).await?;
                if bytes == 0 {
                    return Ok(());
                }
                self.asked.note(&question[..bytes]);
                let delay = Duration::from_millis(self.delay_ms.load(Ordering::Relaxed));
                if !delay.is_zero() {
                    self.clock.sleep(delay).await;
                }
                takes.write_all(&question[..bytes]).await?;
            }
        };
        tokio::select! {
            asked = asking => asked,
            answered = copy(&mut answers, &mut hears) => Ok(answered.map(|_| ())?),
        }
    }
}

impl Asked {
    /// Counts the question that these bytes begin; a client waits for an answer before the next.
    fn note(&self, question: &[u8]) {
        let line = question.split(|it| *it == b'\r').next().unwrap_or_default();
        let has = |part: &[u8]| line.windows(part.len()).any(|it| it == part);
        if has(b"/full/") {
            self.full.fetch_add(1, Ordering::Relaxed);
        } else if has(b"/lite/") {
            self.lite.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_counted_by_tier_and_heads_not_at_all() {
        let asked = Asked::default();

        asked.note(b"GET /dm/1/stage/1/full/7.bin HTTP/1.1\r\nhost: /lite/\r\n\r\n");
        asked.note(b"GET /dm/1/stage/1/lite/7.bin HTTP/1.1\r\n\r\n");
        asked.note(b"GET /dm/1/stage/head.json HTTP/1.1\r\n\r\n");

        assert_eq!(asked.full.into_inner(), 1);
        assert_eq!(asked.lite.into_inner(), 1);
    }

    #[tokio::test]
    async fn an_answer_comes_through_and_a_slow_gate_holds_the_question() {
        let origin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let clock = Clock::system();
        let gate = Gate::open(clock.clone()).await.unwrap();
        gate.lead_to(origin.local_addr().unwrap());
        let delay = Duration::from_millis(50);
        gate.slow(delay);

        let asked = clock.mono();
        let mut viewer = TcpStream::connect(gate.addr).await.unwrap();
        viewer.write_all(b"GET /dm/1/stage/1/full/7.bin HTTP/1.1\r\n\r\n").await.unwrap();
        let (mut session, _) = origin.accept().await.unwrap();
        let mut question = [0; 64];
        assert!(session.read(&mut question).await.unwrap() > 0);
        assert!(clock.mono().since(asked) >= delay);
        session.write_all(b"answer").await.unwrap();
        let mut answer = [0; 6];
        viewer.read_exact(&mut answer).await.unwrap();

        assert_eq!(&answer, b"answer");
        assert_eq!(gate.asked(), (1, 0));
    }
}
