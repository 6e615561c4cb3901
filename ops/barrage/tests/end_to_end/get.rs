//! The smallest HTTP client: sends a path exactly as it is written.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::process::WAIT_MAX;

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

    /// The body as JSON, its Content-Encoding undone.
    pub(crate) fn json(&self) -> Value {
        match self.header("content-encoding") {
            "gzip" => unzip(&self.body),
            _ => serde_json::from_slice(&self.body).unwrap(),
        }
    }
}

/// Compressed JSON.
pub(crate) fn unzip(bytes: &[u8]) -> Value {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    serde_json::from_slice(&plain).unwrap()
}

/// GETs `path` of the server with this base URL.
pub(crate) async fn get(base: &str, path: &str) -> Got {
    ask(base, "GET", path, "", "").await
}

/// Sends a request with more header lines, each ended by CRLF, and a body.
pub(crate) async fn ask(base: &str, method: &str, path: &str, headers: &str, body: &str) -> Got {
    let authority = base.strip_prefix("http://").unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\
         content-length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let exchange = async {
        let mut stream = TcpStream::connect(authority).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        std::io::Result::Ok(bytes)
    };
    parse(&timeout(WAIT_MAX, exchange).await.expect("an answer in time").unwrap())
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
