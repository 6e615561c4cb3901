//! Calls to business servers: signed, bounded, and to no address that they may not have.
//!
//! A name is resolved for each connection, every address that it has is checked, and what was
//! checked is connected to: nothing resolves it a second time. Redirects are not followed and
//! proxies of the environment not used. An answer's body is bounded, and the deadline holds for
//! the whole call; only the making of a connection may outlast it, for the next call.

mod config;
#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use auth_core::secret::Secret;
use channel::ClientTls;
use chatserver_core::reach::{Forbidden, Reach};
use chatserver_core::sign;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kit::clock::Clock;
use kit::task::Tasks;
use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use tokio::sync::{Semaphore, oneshot};

pub use self::config::OutwardConfig;

/// Bytes of an answer: a verdict with the longest text, escaped, fits.
pub(crate) const ANSWER_BYTES_MAX: usize = 32 * 1024;
/// Longest time for a connection, however long the call may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Calls to one target that go on behind their deadline, so that a connection that takes longer
/// comes into being and is there for the next one.
const LATE_MAX: usize = 4;
/// How long an unused connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// How names become addresses.
type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct Outward {
    clock: Clock,
    reach: Arc<Reach>,
    http: Client,
    /// As many as callers have under way, and [`LATE_MAX`] of each target.
    calls: Arc<Mutex<Tasks>>,
}

/// Who is called, and the secret that both know.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    url: Url,
    secret: Secret,
    late: Arc<Semaphore>,
}

/// Why a call brought nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// Its name leads to an address that is not called.
    Forbidden,
    /// No connection, or one that broke off.
    Unreachable,
    /// It did not answer in time.
    Deadline,
    /// It sends the caller elsewhere.
    Redirect,
    /// Another status than one of success.
    Status,
    /// More than [`ANSWER_BYTES_MAX`].
    TooLarge,
    /// An answer that cannot be understood.
    Answer,
}

impl Fault {
    /// The word in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Unreachable => "unreachable",
            Self::Deadline => "deadline",
            Self::Redirect => "redirect",
            Self::Status => "status",
            Self::TooLarge => "too_large",
            Self::Answer => "answer",
        }
    }
}

impl Target {
    /// Reads a URL as it is configured. An address in the place of a name is checked here, once:
    /// nobody can change it.
    ///
    /// # Errors
    /// Says what is wrong with the URL or the secret.
    pub(crate) fn new(url: &str, secret: &Secret, reach: &Reach) -> anyhow::Result<Self> {
        let url: Url = url.parse().context("url is no URL")?;
        ensure!(matches!(url.scheme(), "https" | "http"), "a URL must begin with https or http");
        ensure!(
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none(),
            "a URL may hold neither a password nor a fragment"
        );
        let bytes = sign::SECRET_BYTES_MIN;
        ensure!(secret.expose().len() >= bytes, "secret must have at least {bytes} bytes");
        let host = url.host_str().context("a URL must name a host")?;
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            reach.check(address).with_context(|| format!("{host} cannot be called"))?;
        }
        Ok(Self { url, secret: secret.clone(), late: Arc::new(Semaphore::new(LATE_MAX)) })
    }
}

impl Outward {
    /// # Errors
    /// When the authorities cannot be read.
    pub(crate) fn new(config: &OutwardConfig, clock: Clock) -> anyhow::Result<Self> {
        Self::with_lookup(config, clock, Arc::new(|name| system(name).boxed()))
    }

    fn with_lookup(config: &OutwardConfig, clock: Clock, lookup: Lookup) -> anyhow::Result<Self> {
        let ca = &config.ca;
        let pem = std::fs::read_to_string(ca)
            .with_context(|| format!("outward.ca, {}, cannot be read", ca.display()))?;
        let tls = ClientTls::trusting(&pem)
            .with_context(|| format!("outward.ca, {}, holds no authority", ca.display()))?;
        let reach = Arc::new(config.networks.clone());
        let http = Client::builder()
            .tls_backend_preconfigured(tls.config())
            .dns_resolver(Arc::new(Checked { reach: Arc::clone(&reach), lookup }))
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .no_gzip()
            .connect_timeout(CONNECT_MAX)
            .pool_idle_timeout(IDLE_MAX)
            .build()
            .context("the client of business servers could not be made")?;
        Ok(Self { clock, reach, http, calls: Arc::default() })
    }

    /// Where it calls.
    pub(crate) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Posts a JSON body within `deadline`; gives the body of a successful answer.
    ///
    /// Cancelling it leaves the call made and its answer unread, and so does the deadline: the call
    /// may go on for [`CONNECT_MAX`].
    pub(crate) async fn post(
        &self,
        target: &Target,
        body: Vec<u8>,
        deadline: Duration,
    ) -> Result<Vec<u8>, Fault> {
        let at_s = self.clock.wall().0 / 1000;
        let signature = sign::sign(target.secret.expose(), at_s, &body);
        let request = self
            .http
            .post(target.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(sign::TIME_HEADER, at_s)
            .header(sign::SIGNATURE_HEADER, format!("{}={}", sign::SCHEME, hex::encode(signature)))
            .body(body);
        let (answer, answered) = oneshot::channel();
        let late = Arc::clone(&target.late);
        self.spawn(async move {
            let called = async { read(request.send().await.map_err(|it| fault(&it))?).await };
            let mut called = pin!(called);
            let in_time = tokio::time::timeout(deadline, &mut called).await;
            let is_late = in_time.is_err();
            // Whoever called may be gone.
            answer.send(in_time.unwrap_or(Err(Fault::Deadline))).ok();
            // To give the call up would be to give up its connection.
            if is_late && let Ok(_turn) = late.try_acquire() {
                tokio::time::timeout(CONNECT_MAX, called).await.ok();
            }
        });
        answered.await.unwrap_or(Err(Fault::Unreachable))
    }

    fn spawn(&self, call: impl Future<Output = ()> + Send + 'static) {
        let mut calls = self.calls.lock();
        while let Err(error) = calls.reap() {
            tracing::error!(error = format!("{error:#}"), "a call broke off");
        }
        calls.spawn("chatserver call", call.map(Ok));
    }
}

async fn read(mut response: Response) -> Result<Vec<u8>, Fault> {
    if response.status().is_redirection() {
        return Err(Fault::Redirect);
    }
    if !response.status().is_success() {
        return Err(Fault::Status);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|it| fault(&it))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(Fault::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// What an error was: a forbidden address lies deep in it.
fn fault(error: &reqwest::Error) -> Fault {
    let mut cause = error.source();
    while let Some(it) = cause {
        if it.is::<Forbidden>() {
            return Fault::Forbidden;
        }
        cause = it.source();
    }
    if error.is_timeout() { Fault::Deadline } else { Fault::Unreachable }
}

/// Resolves names, and gives no address that was not checked.
struct Checked {
    reach: Arc<Reach>,
    lookup: Lookup,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let found = (self.lookup)(name.as_str().to_owned());
        let reach = Arc::clone(&self.reach);
        Box::pin(async move {
            let found = found.await?;
            // One that leads inside condemns the name: whoever wrote it meant to be let in.
            found.iter().try_for_each(|it| reach.check(*it))?;
            // The URL's port takes the place of 0.
            let found = found.into_iter().map(|it| SocketAddr::new(it, 0));
            Ok(Box::new(found) as Addrs)
        })
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").field("reach", &self.reach).finish_non_exhaustive()
    }
}

async fn system(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|it| it.ip()).collect())
}
