//! How much one read does, and what an error of the socket leaves.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};

use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;

use super::*;
use crate::lean::Rest;
use crate::lean::keys::{Cipher, Keys};
use crate::lean::records::Records;

/// Gives what a test has laid into it, and then says that nothing came.
#[derive(Debug)]
struct Script(VecDeque<io::Result<Vec<u8>>>);

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.0.pop_front() {
            Some(read) => Poll::Ready(read.map(|it| buffer.put_slice(&it))),
            None => Poll::Pending,
        }
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn one_read_opens_a_bounded_number_of_records_and_loses_none() {
    let (server, mut client) = mirrored();
    let bytes: Vec<_> = (0..=u8::MAX).cycle().take(300).collect();
    let said = bytes.iter().flat_map(|it| sealed(&mut client, &[*it])).collect();
    let mut stream = lean(server, [Ok(said)]);

    let reads: Vec<_> = std::iter::from_fn(|| read(&mut stream)).map(Result::unwrap).collect();

    let lengths: Vec<_> = reads.iter().map(Vec::len).collect();
    assert_eq!(
        lengths,
        [RECORDS_MAX, RECORDS_MAX, RECORDS_MAX, RECORDS_MAX, 300 - 4 * RECORDS_MAX]
    );
    assert_eq!(reads.concat(), bytes);
}

#[test]
fn after_an_error_of_the_socket_nothing_is_heard_or_said() {
    let (server, mut client) = mirrored();
    let record = sealed(&mut client, b"whole");
    let (first, second) = record.split_at(9);
    let reads = [Ok(first.to_vec()), Err(ErrorKind::ConnectionReset.into()), Ok(second.to_vec())];
    let mut stream = lean(server, reads);

    let errors = [(); 2].map(|()| read(&mut stream).unwrap().unwrap_err().kind());
    let said = Pin::new(&mut stream).poll_write(&mut waiting(), b"x");

    assert_eq!(errors, [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof]);
    assert!(matches!(said, Poll::Ready(Err(it)) if it.kind() == ErrorKind::BrokenPipe));
}

/// One read, or none when nothing came.
fn read(stream: &mut Lean<Script>) -> Option<io::Result<Vec<u8>>> {
    let mut bytes = [0; 4_096];
    let mut buffer = ReadBuf::new(&mut bytes);
    match Pin::new(stream).poll_read(&mut waiting(), &mut buffer) {
        Poll::Ready(read) => Some(read.map(|()| buffer.filled().to_vec())),
        Poll::Pending => None,
    }
}

fn waiting() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn lean(records: Records, reads: impl Into<VecDeque<io::Result<Vec<u8>>>>) -> Lean<Script> {
    Lean::new(Script(reads.into()), records, Rest::default())
}

/// A server's records, and those of its client.
fn mirrored() -> (Records, Records) {
    let cipher = Cipher::of(TLS13_AES_128_GCM_SHA256).unwrap();
    let keys = |byte| Keys::new(cipher, &[byte; 32], 0).unwrap();
    (Records::new(cipher, keys(8), keys(7)), Records::new(cipher, keys(7), keys(8)))
}

fn sealed(end: &mut Records, content: &[u8]) -> Vec<u8> {
    let mut out = Outbound::default();
    end.seal(&[IoSlice::new(content)], &mut out).unwrap();
    out.filled().to_vec()
}
