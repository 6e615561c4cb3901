//! From nothing to logged in: the resume ticket first, then tokens for the addresses that a link
//! told, then `enter` and its addresses in order.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use proto::address::Address;
use proto::close::CloseCode;
use proto::decode::DecodeError;
use proto::enter::{Client, EnterRequest, EnterResponse, Problem};
use proto::frame::{Close, Credential, Downlink, Join, LoginOk, Refused, Uplink, Welcome};
use proto::time::{Mono, Wall};
use tokio::time::timeout;

use crate::enter::{EnterError, enter, is_final};
use crate::hello::{self, Disagreement};
use crate::options::{Entry, Options};
use crate::raw;
use crate::wire::{Wire, WireError};

/// Addresses tried with a resume ticket, and as many with tokens for them, before `enter` is asked
/// for others.
const RESUME_ADDRESSES_MAX: usize = 2;
/// Times that `enter` is asked in one attempt, if links find its tokens too old or used.
const ENTERS_MAX: usize = 2;
/// How long a resume ticket is worth trying; links take it for 10 minutes.
const RESUME_AGE_MAX: Duration = Duration::from_secs(590);

/// What is to be connected.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) joins: Vec<Join>,
    pub(crate) resume: Option<Resume>,
    pub(crate) nonce: u64,
}

/// Proof of an earlier session, and where it may go on.
#[derive(Clone, Debug)]
pub(crate) struct Resume {
    pub(crate) ticket: String,
    pub(crate) received: Mono,
    pub(crate) addresses: Vec<Address>,
    /// A link told the addresses: `enter` gives tokens for them, but does not name them.
    pub(crate) is_told: bool,
}

/// What came of it, and what was learned on the way.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    pub(crate) entered: Option<EnterResponse>,
    /// Server's times and when they were received.
    pub(crate) samples: Vec<(Wall, Mono)>,
}

/// A session that begins.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) wire: Wire,
    pub(crate) address: Address,
    pub(crate) welcome: Welcome,
    pub(crate) login_ok: LoginOk,
}

/// Why there is no session.
#[derive(Debug, Default)]
pub(crate) struct Setback {
    /// What a link said last.
    pub(crate) code: Option<CloseCode>,
    pub(crate) retry_after: Duration,
    /// `enter` refused for good.
    pub(crate) problem: Option<Problem>,
    /// `enter` gave no address, only segments.
    pub(crate) is_read_only: bool,
}

/// Why one login failed.
#[derive(Debug, thiserror::Error)]
enum LoginError {
    #[error("refused")]
    Refused(Refused),
    #[error("closed")]
    Closed(Close),
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("the link did not answer within {0:?}")]
    Deadline(Duration),
    #[error("a frame cannot be read")]
    Decode(#[from] DecodeError),
    #[error("a frame came at the wrong time")]
    Unexpected,
    #[error("the answer to Hello does not keep to it")]
    Disagreement(#[from] Disagreement),
    #[error("the link did not prove that it saw the same offer")]
    Confirm,
}

impl LoginError {
    /// Whether the other end is not what it claims, though its certificate may be good.
    const fn is_suspicious(&self) -> bool {
        matches!(self, Self::Wire(WireError::Unpinned(_)) | Self::Disagreement(_) | Self::Confirm)
    }
}

/// Connects and logs in.
pub(crate) async fn establish(
    options: Arc<Options>,
    plan: Plan,
) -> (Learned, Result<Established, Setback>) {
    let mut learned = Learned::default();
    let established = Box::pin(attempt_all(&options, plan, &mut learned)).await;
    (learned, established)
}

async fn attempt_all(
    options: &Options,
    mut plan: Plan,
    learned: &mut Learned,
) -> Result<Established, Setback> {
    if let Some(resume) = plan.resume.take()
        && let Some(established) = go_on(options, &plan, &resume, learned).await?
    {
        return Ok(established);
    }
    let mut setback = Setback::default();
    for _ in 0..ENTERS_MAX {
        setback = match enter_once(options, &plan, learned).await {
            Ok(established) => return Ok(established),
            Err(setback) => setback,
        };
        // Tokens that were too old, as after a device slept, are no reason to wait for new ones.
        let is_stale = setback.code.is_some_and(is_about_credential) && !setback.is_final();
        if !is_stale || !setback.retry_after.is_zero() {
            break;
        }
    }
    Err(setback)
}

/// Goes on where the session before may; nothing if `enter` is to say where instead.
async fn go_on(
    options: &Options,
    plan: &Plan,
    resume: &Resume,
    learned: &mut Learned,
) -> Result<Option<Established>, Setback> {
    let age = options.clock.mono().since(resume.received);
    let mut is_live = !resume.ticket.is_empty() && age < RESUME_AGE_MAX;
    let addresses = resume.addresses.iter().take(RESUME_ADDRESSES_MAX);
    let mut setback = Setback::default();
    for address in addresses.clone() {
        if !is_live {
            break;
        }
        let credential = Credential::ResumeTicket(resume.ticket.clone());
        match log_in(options, plan, address, credential, learned).await {
            Ok(established) => return Ok(Some(established)),
            Err(error) => setback.note(address, &error),
        }
        is_live = !setback.code.is_some_and(is_about_credential);
        if is_live && setback.is_final() {
            return Err(setback);
        }
    }
    // Without a ticket nothing proves whose session it is: such a viewer enters anew.
    if is_live || !resume.is_told || matches!(options.entry, Entry::NoTicket { .. }) {
        return Ok(None);
    }
    for address in addresses {
        match renew(options, plan, address, learned).await {
            Ok(established) => return Ok(Some(established)),
            Err(setback) if setback.is_final() => return Err(setback),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// Asks `enter` for a token for this address alone, and tries it.
async fn renew(
    options: &Options,
    plan: &Plan,
    address: &Address,
    learned: &mut Learned,
) -> Result<Established, Setback> {
    let authority = address.authority();
    let entered = ask(options, Some(authority.clone()), learned).await?;
    let mut offers = entered.addresses.into_iter();
    let Some(offer) = offers.find(|it| it.address.authority() == authority) else {
        return Err(Setback::default());
    };
    // A token is for a host and a port, at which more than one transport may be spoken.
    let logged_in = log_in(options, plan, address, Credential::Token(offer.token), learned);
    logged_in.await.map_err(|error| {
        let mut setback = Setback::default();
        setback.note(address, &error);
        setback
    })
}

/// Asks `enter`, and tries its addresses in order.
async fn enter_once(
    options: &Options,
    plan: &Plan,
    learned: &mut Learned,
) -> Result<Established, Setback> {
    let entered = ask(options, None, learned).await?;
    let mut setback = Setback {
        is_read_only: entered.addresses.is_empty(),
        retry_after: Duration::from_millis(entered.retry_after_ms.into()),
        ..Setback::default()
    };
    let offers = entered.addresses.clone();
    learned.entered = Some(entered);
    for offer in offers.into_iter().filter(|it| options.speaks(it.address.transport)) {
        let credential = Credential::Token(offer.token);
        match log_in(options, plan, &offer.address, credential, learned).await {
            Ok(established) => return Ok(established),
            Err(error) => setback.note(&offer.address, &error),
        }
        if setback.is_final() {
            break;
        }
    }
    Err(setback)
}

impl Setback {
    fn note(&mut self, address: &Address, error: &LoginError) {
        tracing::debug!(address = address.authority(), error = format!("{error:#}"), "no session");
        if error.is_suspicious() {
            tracing::warn!(%error, "somebody may be between this client and a link");
        }
        let (code, retry_after_ms) = match error {
            LoginError::Refused(refused) => (Some(refused.code), refused.retry_after_ms),
            LoginError::Closed(close) => (Some(close.code), close.retry_after_ms),
            LoginError::Wire(WireError::Closed(code)) => (*code, 0),
            LoginError::Wire(_)
            | LoginError::Deadline(_)
            | LoginError::Decode(_)
            | LoginError::Unexpected
            | LoginError::Disagreement(_)
            | LoginError::Confirm => (None, 0),
        };
        self.code = code.or(self.code);
        self.retry_after = self.retry_after.max(Duration::from_millis(retry_after_ms.into()));
    }

    fn is_final(&self) -> bool {
        self.code.is_some_and(|it| !it.comes_back())
    }
}

/// Whether a refusal speaks of this ticket only, so that a new token may pass.
const fn is_about_credential(code: CloseCode) -> bool {
    matches!(
        code,
        CloseCode::TokenExpired
            | CloseCode::TokenEpoch
            | CloseCode::TokenElsewhere
            | CloseCode::TokenReplayed
            | CloseCode::TokenInvalid
            | CloseCode::KickedLately
            | CloseCode::Expired
    )
}

/// The question to `enter`.
///
/// # Errors
/// When the source of tickets gives none.
pub(crate) async fn request(
    options: &Options,
    renew: Option<String>,
) -> anyhow::Result<EnterRequest> {
    let client = Client {
        device: options.device.as_ref().map(ToString::to_string),
        class: options.class,
        transports: options.transports.clone(),
        ip: None,
    };
    let request = EnterRequest { client, renew, ..EnterRequest::default() };
    match &options.entry {
        Entry::Ticket(source) => {
            let asked = timeout(options.waits.enter, source.ticket()).await;
            let ticket = asked.context("no ticket in time")?.context("no ticket")?;
            Ok(EnterRequest { ticket, ..request })
        }
        Entry::NoTicket { app, room } => {
            Ok(EnterRequest { app: Some(*app), room: Some(room.clone()), ..request })
        }
    }
}

async fn ask(
    options: &Options,
    renew: Option<String>,
    learned: &mut Learned,
) -> Result<EnterResponse, Setback> {
    let request = request(options, renew).await.map_err(|error| {
        tracing::warn!(error = format!("{error:#}"), "there is no ticket to enter with");
        Setback::default()
    })?;
    let asked = enter(&options.http, &options.enter_url, &request, options.waits.enter).await;
    let received = options.clock.mono();
    match asked {
        Ok(response) => {
            learned.samples.push((response.server_ms, received));
            Ok(response)
        }
        Err(EnterError::Refused(problem)) => {
            if problem.server_ms > Wall(0) {
                learned.samples.push((problem.server_ms, received));
            }
            let retry_after = Duration::from_millis(problem.retry_after_ms.into());
            let problem = is_final(&problem).then_some(problem);
            Err(Setback { retry_after, problem, ..Setback::default() })
        }
        Err(error @ (EnterError::Http(_) | EnterError::Malformed(_))) => {
            tracing::debug!(error = format!("{error:#}"), "enter did not answer");
            Err(Setback::default())
        }
    }
}

async fn log_in(
    options: &Options,
    plan: &Plan,
    address: &Address,
    credential: Credential,
    learned: &mut Learned,
) -> Result<Established, LoginError> {
    let waits = options.waits;
    let tls = options.tls(address.transport);
    let udp = options.udp.as_ref();
    let mut wire = Wire::connect_over(udp, address, tls, waits.connect).await?;
    let offer = hello::hello(wire.suites(), plan.nonce);
    let hello = Uplink::Hello(offer.clone()).encode();
    let joins = plan.joins.clone();
    let login = raw::login(&wire, &hello, credential, options.device.clone(), joins);
    wire.send(hello.clone(), waits.write).await?;
    wire.send(login, waits.write).await?;
    let heard_before = learned.samples.len();
    let answered = timeout(waits.login, async {
        let welcome_frame = wire.recv().await?;
        let received = options.clock.mono();
        let frame = Downlink::decode(&welcome_frame)?;
        let Downlink::Welcome(welcome) = frame else {
            return Err(refused(frame, received, learned));
        };
        hello::check(&offer, &welcome)?;
        learned.samples.push((welcome.server_ms, received));
        let frame = Downlink::decode(&wire.recv().await?)?;
        let Downlink::LoginOk(login_ok) = frame else {
            return Err(refused(frame, options.clock.mono(), learned));
        };
        Ok((welcome_frame, welcome, login_ok))
    });
    let answered = answered.await.map_err(|_| LoginError::Deadline(waits.login))?;
    if let Err(LoginError::Refused(Refused { code: CloseCode::TokenExpired, .. })) = answered {
        // Either its clock or that of `enter` is wrong, and tokens are made by the latter's. If
        // time passed unnoticed here, the next answer of `enter` says so.
        learned.samples.truncate(heard_before);
    }
    let (welcome_frame, welcome, login_ok) = answered?;
    if let Some(exporter) = wire.bound() {
        let expected = channel::confirm(&exporter, &hello, &welcome_frame);
        if login_ok.confirm != Some(expected) {
            return Err(LoginError::Confirm);
        }
    }
    Ok(Established { wire, address: address.clone(), welcome, login_ok })
}

/// What it means when another frame comes than the login waits for.
fn refused(frame: Downlink, received: Mono, learned: &mut Learned) -> LoginError {
    match frame {
        Downlink::Refused(refused) => {
            learned.samples.push((refused.server_ms, received));
            LoginError::Refused(refused)
        }
        Downlink::Close(close) => LoginError::Closed(close),
        Downlink::Welcome(_)
        | Downlink::LoginOk(_)
        | Downlink::Batch(_)
        | Downlink::Seal(_)
        | Downlink::Skipped { .. }
        | Downlink::Ack(_)
        | Downlink::Control(_)
        | Downlink::Joined(_)
        | Downlink::Pong { .. } => LoginError::Unexpected,
    }
}
