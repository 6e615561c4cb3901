//! The application's two ends of a client: one to act with, one to read.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kit::task::Tasks;
use proto::frame::Comment;
use proto::id::{Cid, RoomId};
use proto::item::Style;
use proto::limits::TEXT_BYTES_MAX;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::event::Event;
use crate::options::Options;

/// Why a comment or like was not taken for sending.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SendRefusal {
    /// Too many wait already: the connection is slow or away.
    #[error("too many wait to be sent")]
    Full,
    /// The client has ended.
    #[error("the client has ended")]
    Ended,
    /// More than [`TEXT_BYTES_MAX`] bytes.
    #[error("the text is too long")]
    TooLong,
    /// The client is not for this room.
    #[error("the client is not for this room")]
    NoRoom,
}

/// What the application asks for.
#[derive(Debug)]
pub(crate) enum Command {
    Comment(Comment),
    Like { room: RoomId, count: u32 },
    Catalogue { room: RoomId },
}

/// A handle to act with; clones share the client.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    closed: CancellationToken,
    rooms: Arc<BTreeSet<RoomId>>,
    next_cid: Arc<AtomicU64>,
}

/// What a client tells. Dropping it ends the client.
#[derive(Debug)]
pub struct Events {
    events: mpsc::Receiver<Event>,
    _driver: Tasks,
}

impl Client {
    /// Starts a client. It connects, comes back, and goes on until it is closed, [`Events`] is
    /// dropped, or the server says not to come back.
    #[must_use]
    pub fn start(options: Options) -> (Self, Events) {
        let (commands, from_client) = mpsc::channel(options.bounds.sends_max.max(1));
        let (to_events, events) = mpsc::channel(options.bounds.events_max.max(1));
        let closed = CancellationToken::new();
        let rooms = options.rooms.iter().map(|(room, _)| room.clone()).collect();
        // A later client of the same viewer must not use the numbers of an earlier one again.
        let first_cid = (options.clock.wall().0 << 20) | (options.seed & 0xf_ffff);
        let driver = Driver::new(options, from_client, to_events, closed.clone());
        let mut tasks = Tasks::default();
        tasks.spawn("client", driver.run());
        let client = Self {
            commands,
            closed,
            rooms: Arc::new(rooms),
            next_cid: Arc::new(AtomicU64::new(first_cid)),
        };
        (client, Events { events, _driver: tasks })
    }

    /// Sends a comment, now or when there is a connection; its verdict comes as
    /// [`Event::Ack`]. A comment that was under way when a connection broke is sent again with the
    /// same number.
    ///
    /// # Errors
    /// [`SendRefusal`]; nothing was taken then.
    pub fn send(
        &self,
        room: &RoomId,
        text: &str,
        style: Style,
        media_ms: Option<u64>,
    ) -> Result<Cid, SendRefusal> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(SendRefusal::TooLong);
        }
        let cid = Cid(self.next_cid.fetch_add(1, Ordering::Relaxed));
        let (room, text) = (room.clone(), text.to_owned());
        self.command(
            &room.clone(),
            Command::Comment(Comment { cid, room, text, style, media_ms }),
        )?;
        Ok(cid)
    }

    /// Sends applause. It is not sent again if the connection breaks.
    ///
    /// # Errors
    /// [`SendRefusal`].
    pub fn like(&self, room: &RoomId, count: u32) -> Result<(), SendRefusal> {
        self.command(room, Command::Like { room: room.clone(), count })
    }

    /// Fetches the room's gift catalogue, to have it before the first gift, or when a gift's number
    /// is unknown; it comes as [`Event::Catalogue`], or not at all if it cannot be fetched now. Like
    /// comments, it waits for a connection.
    ///
    /// # Errors
    /// [`SendRefusal`].
    pub fn catalogue(&self, room: &RoomId) -> Result<(), SendRefusal> {
        self.command(room, Command::Catalogue { room: room.clone() })
    }

    /// Ends the client; its last event is [`Event::Ended`].
    pub fn close(&self) {
        self.closed.cancel();
    }

    fn command(&self, room: &RoomId, command: Command) -> Result<(), SendRefusal> {
        if !self.rooms.contains(room) {
            return Err(SendRefusal::NoRoom);
        }
        self.commands.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SendRefusal::Full,
            mpsc::error::TrySendError::Closed(_) => SendRefusal::Ended,
        })
    }
}

impl Events {
    /// The next event; `None` after the last one. Cancelling it loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}
