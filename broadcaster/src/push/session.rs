//! One connection to a live CDN, up to and after it takes the stream (Adobe, "Real Time Messaging
//! Protocol", 1.0, 2012).

use std::io;
use std::time::Duration;

use bytes::Bytes;
use rml_rtmp::handshake::{Handshake, HandshakeProcessResult, PeerType};
use rml_rtmp::sessions::{
    ClientSession, ClientSessionConfig, ClientSessionError, ClientSessionEvent,
    ClientSessionResult, PublishRequestType, StreamMetadata,
};
use rml_rtmp::time::RtmpTimestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::push::measure::{Measure, TooLong};
use crate::push::target::Target;

/// The CDN takes the stream within this time after the first packet.
const OPEN_MAX: Duration = Duration::from_secs(10);
/// A frame is written within this time: the socket takes some minutes of a quiet room at once.
const WRITE_MAX: Duration = Duration::from_secs(5);
/// Bytes that the other side may have said beyond its allowance. It has little to say.
const HEARD_BYTES_MAX: usize = 4096;
/// What it may say in addition for each frame: an acknowledgement now and then.
const HEARD_BYTES_PER_FRAME: usize = 64;
/// Bytes of a code that are shown.
const CODE_BYTES_MAX: usize = 64;
/// Bytes of a message before another may come between: whole frames, usually.
const CHUNK_BYTES: u32 = 4096;

/// Why a connection ended, or was not made. Nothing of the key is in it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// There is nobody at that address.
    #[error("cannot connect")]
    Unreachable(#[source] io::Error),
    /// The CDN says no.
    #[error("refused: {0}")]
    Refused(String),
    /// It did not answer, or take a frame, in time.
    #[error("too slow")]
    Late,
    /// It said what it may not, or too much.
    #[error("not understood")]
    Unclear,
    /// The connection is gone.
    #[error("connection lost")]
    Lost(#[source] io::Error),
}

impl Failure {
    /// The word in the metric.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Refused(_) => "refused",
            Self::Late => "late",
            Self::Unclear => "unclear",
            Self::Lost(_) => "lost",
        }
    }
}

impl From<ClientSessionError> for Failure {
    fn from(error: ClientSessionError) -> Self {
        if matches!(error, ClientSessionError::CreateStreamFailed) {
            return Self::Refused("no stream".to_owned());
        }
        Self::Unclear
    }
}

/// A connection over which the stream is taken.
pub(super) struct Session {
    stream: TcpStream,
    rtmp: ClientSession,
    heard: usize,
    measure: Measure,
}

impl Session {
    /// Connects, and asks that the stream be taken. Cancelling it closes the connection.
    pub(super) async fn open(target: &Target) -> Result<Self, Failure> {
        let opening = async {
            let stream = TcpStream::connect((target.host.as_str(), target.port)).await;
            let stream = stream.map_err(Failure::Unreachable)?;
            stream.set_nodelay(true).map_err(Failure::Lost)?;
            let mut config = ClientSessionConfig::new();
            config.flash_version = "FMLE/3.0 (compatible; barrage)".to_owned();
            config.tc_url = Some(target.url.clone());
            config.chunk_size = CHUNK_BYTES;
            let (rtmp, first) = ClientSession::new(config)?;
            let mut session = Self { stream, rtmp, heard: 0, measure: Measure::new() };
            let rest = session.shake_hands().await?;
            let mut events = session.obey(first).await?;
            let connect = session.rtmp.request_connection(target.app.clone())?;
            session.obey([connect]).await?;
            events.extend(session.hear(&rest).await?);
            session.ask(target, events).await?;
            Ok(session)
        };
        timeout(OPEN_MAX, opening).await.map_err(|_| Failure::Late)?
    }

    /// Gives what was read beyond the handshake.
    async fn shake_hands(&mut self) -> Result<Vec<u8>, Failure> {
        let mut handshake = Handshake::new(PeerType::Client);
        let first = handshake.generate_outbound_p0_and_p1().map_err(|_| Failure::Unclear)?;
        self.write(&first).await?;
        loop {
            let heard = self.read().await?;
            match handshake.process_bytes(&heard).map_err(|_| Failure::Unclear)? {
                HandshakeProcessResult::InProgress { response_bytes } => {
                    self.write(&response_bytes).await?;
                }
                HandshakeProcessResult::Completed { response_bytes, remaining_bytes } => {
                    self.write(&response_bytes).await?;
                    return Ok(remaining_bytes);
                }
            }
        }
    }

    /// Goes on from what was heard until the stream is taken, and says what it is.
    async fn ask(
        &mut self,
        target: &Target,
        mut events: Vec<ClientSessionEvent>,
    ) -> Result<(), Failure> {
        loop {
            for event in std::mem::take(&mut events) {
                if event == ClientSessionEvent::ConnectionRequestAccepted {
                    let key = target.key.expose().to_owned();
                    let publish = self.rtmp.request_publishing(key, PublishRequestType::Live)?;
                    self.obey([publish]).await?;
                } else if event == ClientSessionEvent::PublishRequestAccepted {
                    return self.describe().await;
                } else {
                    refused(event)?;
                }
            }
            let heard = self.read().await?;
            events = self.hear(&heard).await?;
        }
    }

    async fn describe(&mut self) -> Result<(), Failure> {
        let mut metadata = StreamMetadata::new();
        metadata.video_width = Some(16);
        metadata.video_height = Some(16);
        metadata.video_codec_id = Some(7);
        metadata.video_frame_rate = Some(5.0);
        metadata.encoder = Some("barrage".to_owned());
        let described = self.rtmp.publish_metadata(&metadata)?;
        self.obey([described]).await.map(drop)
    }

    /// Sends a frame, or what comes before all of them. Cancelling it may leave half of it sent: then
    /// the connection is of no use any more.
    pub(super) async fn send(&mut self, body: Bytes, stamp: u32) -> Result<(), Failure> {
        self.heard = self.heard.saturating_sub(HEARD_BYTES_PER_FRAME);
        let sent = self.rtmp.publish_video_data(body, RtmpTimestamp::new(stamp), false)?;
        self.obey([sent]).await.map(drop)
    }

    /// Reads what the other side says. Cancelling it loses nothing.
    pub(super) async fn read(&mut self) -> Result<Vec<u8>, Failure> {
        let mut heard = Vec::with_capacity(HEARD_BYTES_MAX);
        match self.stream.read_buf(&mut heard).await {
            Ok(0) => Err(Failure::Lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(heard),
            Err(error) => Err(Failure::Lost(error)),
        }
    }

    /// Takes what was read while the stream is taken.
    pub(super) async fn heed(&mut self, heard: &[u8]) -> Result<(), Failure> {
        self.hear(heard).await?.into_iter().try_for_each(refused)
    }

    /// Ends the stream in order; what cannot be sent at once is left.
    pub(super) async fn close(mut self) {
        if let Ok(results) = self.rtmp.stop_publishing() {
            self.obey(results).await.ok();
        }
        timeout(WRITE_MAX, self.stream.shutdown()).await.ok();
    }

    async fn hear(&mut self, heard: &[u8]) -> Result<Vec<ClientSessionEvent>, Failure> {
        self.heard += heard.len();
        if self.heard > HEARD_BYTES_MAX {
            return Err(Failure::Unclear);
        }
        self.measure.take(heard).map_err(|TooLong| Failure::Unclear)?;
        let results = self.rtmp.handle_input(heard)?;
        self.obey(results).await
    }

    /// Writes what is to be written, in order; gives the events.
    async fn obey(
        &mut self,
        results: impl IntoIterator<Item = ClientSessionResult>,
    ) -> Result<Vec<ClientSessionEvent>, Failure> {
        let mut events = Vec::new();
        for result in results {
            match result {
                ClientSessionResult::OutboundResponse(packet) => self.write(&packet.bytes).await?,
                ClientSessionResult::RaisedEvent(event) => events.push(event),
                ClientSessionResult::UnhandleableMessageReceived(_) => {}
            }
        }
        Ok(events)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = timeout(WRITE_MAX, self.stream.write_all(bytes)).await;
        written.map_err(|_| Failure::Late)?.map_err(Failure::Lost)
    }
}

/// Whether an event is a "no".
fn refused(event: ClientSessionEvent) -> Result<(), Failure> {
    if matches!(event, ClientSessionEvent::ConnectionRequestRejected { .. }) {
        return Err(Failure::Refused("no such app".to_owned()));
    }
    if let ClientSessionEvent::UnhandleableOnStatusCode { code } = event
        && is_no(&code)
    {
        return Err(Failure::Refused(shown(&code)));
    }
    Ok(())
}

/// Codes that end a stream, or do not let it begin.
fn is_no(code: &str) -> bool {
    ["Bad", "Denied", "Failed", "Unauthorized", "Rejected", "Closed", "Unpublish"]
        .iter()
        .any(|it| code.contains(it))
}

/// A code as it may be shown: codes are words and dots, and no more than that is.
fn shown(code: &str) -> String {
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || *it == '.';
    code.chars().filter(is_plain).take(CODE_BYTES_MAX).collect()
}
