//! A session's bytes: read through a buffer that sessions share, written straight from the rooms'
//! blocks. What the system does not take at once is kept; otherwise nothing is.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::node::Node;
use crate::pump::Scratch;
use crate::socket::Socket;
use crate::wire::Decoder;

/// Blocks of one vectored write.
const SLICES_MAX: usize = 64;

/// The bytes of one session.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) socket: Socket,
    pub(crate) decoder: Decoder,
    /// None while nothing waits.
    unsent: Option<Box<Unsent>>,
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Unsent {
    blocks: VecDeque<Bytes>,
    bytes: usize,
    /// Whether the first block is partly written.
    torn: bool,
}

impl Io {
    pub(crate) const fn new(socket: Socket, decoder: Decoder) -> Self {
        Self { socket, decoder, unsent: None }
    }

    /// Adds a block to what waits.
    pub(crate) fn send(&mut self, block: Bytes, node: &Node) {
        node.counts.outbox_bytes.add(signed(block.len()));
        self.unsent.get_or_insert_default().push(block);
    }

    /// Gives up what is not yet begun.
    pub(crate) fn give_up(&mut self, node: &Node) {
        let Some(unsent) = self.unsent.take() else {
            return;
        };
        node.counts.outbox_bytes.sub(signed(unsent.bytes));
        if unsent.torn {
            unsent.blocks.into_iter().take(1).for_each(|it| self.send(it, node));
            self.unsent.get_or_insert_default().torn = true;
        }
    }

    /// Gives up everything.
    pub(crate) fn give_up_all(&mut self, node: &Node) {
        if let Some(unsent) = self.unsent.take() {
            node.counts.outbox_bytes.sub(signed(unsent.bytes));
        }
    }

    /// Bytes that wait until the system takes them.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent.as_ref().map_or(0, |it| it.bytes) + self.socket.unsent_bytes()
    }

    /// Writes what waits. Ready when all is with the system.
    pub(crate) fn poll_unsent(
        &mut self,
        cx: &mut Context<'_>,
        node: &Node,
    ) -> Poll<io::Result<()>> {
        while let Some(unsent) = &mut self.unsent {
            let blocks = unsent.blocks.iter();
            let bytes = ready!(write(&mut self.socket, cx, blocks, node))?;
            node.counts.outbox_bytes.sub(signed(bytes));
            if unsent.advance(bytes) {
                self.unsent = None;
            }
        }
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    /// Writes blocks while nothing waits; keeps what the system does not take at once.
    pub(crate) fn poll_blocks(
        &mut self,
        cx: &mut Context<'_>,
        node: &Node,
        blocks: &mut Vec<Bytes>,
    ) -> Poll<io::Result<()>> {
        let mut written = match write(&mut self.socket, cx, blocks.iter(), node) {
            Poll::Ready(written) => written?,
            Poll::Pending => 0,
        };
        for block in blocks.drain(..) {
            if written >= block.len() && written > 0 {
                written -= block.len();
            } else {
                let torn = written > 0;
                let mut block = block;
                block.advance(written);
                written = 0;
                self.send(block, node);
                if torn {
                    self.unsent.get_or_insert_default().torn = true;
                }
            }
        }
        self.poll_unsent(cx, node)
    }

    /// Reads what has come, and decodes it.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut scratch.read);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
        let bytes = buffer.filled();
        self.decoder.feed(bytes, &mut scratch.found);
        Poll::Ready(Ok(bytes.len()))
    }

    /// Reads what has come, and lets it fall.
    pub(crate) fn poll_rest(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(&mut scratch.read);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Says that nothing more will be sent.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl Unsent {
    fn push(&mut self, block: Bytes) {
        self.bytes += block.len();
        self.blocks.push_back(block);
    }

    /// So many bytes are written. Says whether none is left.
    fn advance(&mut self, mut bytes: usize) -> bool {
        self.bytes -= bytes;
        while let Some(block) = self.blocks.front_mut() {
            if bytes < block.len() {
                self.torn |= bytes > 0;
                block.advance(bytes);
                return false;
            }
            bytes -= block.len();
            self.blocks.pop_front();
            self.torn = false;
        }
        true
    }
}

/// One write.
fn write<'a>(
    socket: &mut Socket,
    cx: &mut Context<'_>,
    blocks: impl Iterator<Item = &'a Bytes>,
    node: &Node,
) -> Poll<io::Result<usize>> {
    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
    let mut filled = 0;
    for (slice, block) in slices.iter_mut().zip(blocks) {
        *slice = IoSlice::new(block);
        filled += 1;
    }
    let socket = Pin::new(socket);
    let written = match &slices[..filled] {
        [one] => ready!(socket.poll_write(cx, one))?,
        slices => ready!(socket.poll_write_vectored(cx, slices))?,
    };
    if written == 0 {
        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
    }
    node.counts.writes.inc();
    node.counts.bytes_out.inc_by(written as u64);
    node.traffic.bytes_out.fetch_add(written as u64, Ordering::Relaxed);
    Poll::Ready(Ok(written))
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
