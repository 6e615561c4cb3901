//! HTTP/1.1: connections that are kept, with one question at a time on each.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use futures_util::stream::{FuturesUnordered, TryStreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Order, Orders, part};

/// Bytes of an answer: three addresses with tokens are 1 KiB; a hundred times that, 100 KiB.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Everybody who asks, by server.
pub(super) struct Callers(Vec<Vec<Caller>>);

/// One connection and its question.
struct Caller {
    stream: TcpStream,
    question: Vec<u8>,
    buffer: Vec<u8>,
    /// Bytes of the last answer, and of these the head.
    answer: (usize, usize),
}

impl Callers {
    pub(super) async fn connect(orders: &Orders) -> anyhow::Result<Self> {
        let mut servers = Vec::new();
        for &server in &orders.servers {
            let mut callers = Vec::new();
            for body in &orders.questions {
                callers.push(Caller::connect(orders, server, body).await?);
            }
            servers.push(callers);
        }
        Ok(Self(servers))
    }

    /// Asks, and gives back somebody's last answer.
    pub(super) async fn ask(&mut self, order: Order) -> anyhow::Result<String> {
        let callers = self.0.get_mut(order.server).context("there is no such server")?;
        let count = callers.len();
        let asking = callers.iter_mut().enumerate();
        let asking = asking.map(|(at, it)| it.ask(part(order.questions, at, count)));
        asking.collect::<FuturesUnordered<_>>().try_collect::<()>().await?;
        callers[0].last()
    }
}

impl Caller {
    async fn connect(orders: &Orders, server: SocketAddr, body: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let key = orders.api_key.as_ref().map(|it| format!("Authorization: Bearer {it}\r\n"));
        let question = format!(
            "POST {} HTTP/1.1\r\nHost: {server}\r\n{}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            orders.path,
            key.unwrap_or_default(),
            body.len()
        );
        let buffer = vec![0; ANSWER_BYTES_MAX];
        Ok(Self { stream, question: question.into(), buffer, answer: (0, 0) })
    }

    async fn ask(&mut self, times: u32) -> anyhow::Result<()> {
        for _ in 0..times {
            self.stream.write_all(&self.question).await?;
            self.answer = self.receive().await?;
        }
        Ok(())
    }

    /// One answer.
    async fn receive(&mut self) -> anyhow::Result<(usize, usize)> {
        let (mut received, mut lengths) = (0, None);
        loop {
            let read = self.stream.read(&mut self.buffer[received..]).await?;
            ensure!(read > 0, "a connection ended, or an answer is too long");
            received += read;
            if lengths.is_none() {
                lengths = lengths_of(&self.buffer[..received])?;
            }
            match lengths {
                Some((head, body)) if received == head + body => return Ok((received, head)),
                Some((head, body)) if received > head + body => bail!("an answer has no end"),
                Some(_) | None => {}
            }
        }
    }

    fn last(&self) -> anyhow::Result<String> {
        let (all, head) = self.answer;
        Ok(String::from_utf8(self.buffer[head..all].to_vec())?)
    }
}

/// Bytes of the head and of the body, when the head is all there.
fn lengths_of(bytes: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    const LENGTH: &[u8] = b"content-length:";
    let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = &bytes[..end];
    ensure!(head.starts_with(b"HTTP/1.1 200 "), "no answer: {}", String::from_utf8_lossy(bytes));
    let lines = head.split(|it| *it == b'\n');
    let length = lines.into_iter().find_map(|it| {
        let (name, value) = it.split_at_checked(LENGTH.len())?;
        name.eq_ignore_ascii_case(LENGTH).then(|| value.trim_ascii())
    });
    let length = length.context("an answer does not say how long it is")?;
    Ok(Some((end + 4, std::str::from_utf8(length)?.parse()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_of_an_answer_are_read_when_its_head_is_there() {
        let answer = b"HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 12\r\n\r\n{";

        assert_eq!(lengths_of(answer).unwrap(), Some((answer.len() - 1, 12)));
        assert_eq!(lengths_of(&answer[..30]).unwrap(), None);
    }

    #[test]
    fn what_is_no_success_or_says_no_length_is_no_answer() {
        assert!(lengths_of(b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(lengths_of(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
    }
}
