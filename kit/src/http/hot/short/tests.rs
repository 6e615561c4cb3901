//! A peer has no say in how much memory its connection takes.

use tokio::io::duplex;

use super::super::tests::{BODY_BYTES_MAX, Reader, run};
use super::*;

/// Bytes of an answer of the reader, and more.
const ANSWER_BYTES_MAX: usize = 256;

#[test]
fn whoever_asks_without_reading_gets_no_more_than_a_few_answers_ahead() {
    let mut short = short();
    // Each read ends where a request does.
    let read = "POST /hot HTTP/1.1\r\n\r\n".repeat(185) + "POST /hot HTTP/1.1\r\na:\r\n\r\n";
    assert_eq!(read.len(), READ_BYTES);

    let left = serve(&mut short, read.repeat(16).as_bytes());

    assert_eq!(left, None);
    let Speech { input, output, .. } = &short.speech;
    assert!(input.capacity() <= READ_BYTES + BODY_BYTES_MAX, "{}", input.capacity());
    assert!(!output.is_empty());
    let bytes_max = KEPT_BYTES_MAX + ANSWER_BYTES_MAX;
    assert!(output.len() <= bytes_max, "{}", output.len());
    assert!(output.capacity() <= 2 * bytes_max, "{}", output.capacity());
}

#[test]
fn requests_that_fill_what_is_there_do_not_make_it_grow() {
    let mut short = short();
    // Each pair begins with what a read into so many bytes takes but for a part of a body.
    let pairs = [4, 8].map(|it| it * 1024);
    let pairs = pairs.map(|it| request(it + 4, "0123456789") + &request(it - 4, ""));

    let left = serve(&mut short, pairs.concat().as_bytes());

    assert_eq!(left, Some(Left::Other));
    let bytes = short.into_rest().capacity();
    assert!(bytes <= READ_BYTES + BODY_BYTES_MAX, "{bytes}");
}

#[test]
fn a_head_that_one_read_does_not_bring_is_hypers() {
    let fits = serve(&mut short(), request(READ_BYTES, "").as_bytes());
    let exceeds = serve(&mut short(), request(READ_BYTES + 1, "").as_bytes());

    assert_eq!((fits, exceeds), (None, Some(Left::Other)));
}

/// A request of so many bytes.
fn request(bytes: usize, body: &str) -> String {
    let length = body.len();
    let fields = format!("POST /hot HTTP/1.1\r\ncontent-length: {length}\r\na: ");
    let end = format!("\r\n\r\n{body}");
    let more = "b".repeat(bytes - fields.len() - end.len());
    [fields, more, end].concat()
}

fn short() -> Short {
    let activity = Arc::new(Activity::new());
    let hot = Arc::new(Reader::default());
    Short::new(hot, "192.0.2.1:999".parse().unwrap(), activity, Duration::from_secs(9))
}

/// Answers these bytes as far as it goes while nobody reads. The pipe takes as many of the answers.
fn serve(short: &mut Short, bytes: &[u8]) -> Option<Left> {
    let (mut peer, mut io) = duplex(bytes.len());
    let shutdown = CancellationToken::new();
    run(pin!(peer.write_all(bytes))).unwrap().unwrap();
    run(pin!(short.serve(&mut io, &shutdown)))
}
