//! The smallest HTTP client: sends a path exactly as it is written.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A response.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Got {
    /// A header's value; empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// GETs `path`.
pub(crate) async fn get(addr: SocketAddr, path: &str) -> Got {
    ask(addr, "GET", path, "").await
}

/// Sends a request with more header lines, each ended by CRLF.
pub(crate) async fn ask(addr: SocketAddr, method: &str, path: &str, headers: &str) -> Got {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Got {
    let split = bytes.windows(4).position(|it| it == b"\r\n\r\n").expect("a head");
    let head = std::str::from_utf8(&bytes[..split]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|it| {
        let (name, value) = it.split_once(": ").unwrap();
        (name.to_ascii_lowercase(), value.to_owned())
    });
    Got { status, headers: headers.collect(), body: bytes[split + 4..].to_vec() }
}
