//! From an HTTP request to a WebSocket.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, create_response, write_response};
use tungstenite::http::header::ORIGIN;

use crate::socket::Socket;

/// Bytes of a request's head; browsers with many cookies send some KiB.
const HEAD_BYTES_MAX: usize = 8 * 1024;

const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const FORBIDDEN: &[u8] =
    b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Reads the request, and what came behind it.
///
/// The caller sets the deadline.
pub(super) async fn read(socket: &mut Socket) -> anyhow::Result<(Request, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        if socket.read_buf(&mut head).await.context("the request was not read")? == 0 {
            bail!("the client left during the handshake");
        }
        match Request::try_parse(&head) {
            Ok(None) if head.len() < HEAD_BYTES_MAX => {}
            Ok(None) => return refuse(socket, TOO_LARGE, "the head is too long").await,
            Ok(Some((length, request))) => {
                return Ok((request, head.split_off(length)));
            }
            Err(_) => return refuse(socket, BAD_REQUEST, "the request is not HTTP").await,
        }
    }
}

/// Answers the request of a page that may connect; refuses others.
pub(super) async fn answer(
    socket: &mut Socket,
    request: &Request,
    origins: &[String],
) -> anyhow::Result<()> {
    let origin = request.headers().get(ORIGIN).map(|it| it.to_str().unwrap_or("?"));
    if !origin.is_none_or(|it| is_allowed(it, origins)) {
        return refuse(socket, FORBIDDEN, "the origin is not allowed").await;
    }
    let Ok(response) = create_response(request) else {
        return refuse(socket, BAD_REQUEST, "the request is no upgrade").await;
    };
    let mut bytes = Vec::new();
    write_response(&mut bytes, &response)?;
    socket.write_all(&bytes).await.context("the answer was not written")?;
    socket.flush().await.context("the answer was not written")
}

async fn refuse<T>(socket: &mut Socket, answer: &[u8], why: &'static str) -> anyhow::Result<T> {
    socket.write_all(answer).await?;
    socket.shutdown().await?;
    bail!(why)
}

/// Whether a page of this origin may connect.
fn is_allowed(origin: &str, origins: &[String]) -> bool {
    if origins.is_empty() { is_loopback(origin) } else { origins.iter().any(|it| it == origin) }
}

fn is_loopback(origin: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    let address = authority.parse::<SocketAddr>().map(|it| it.ip());
    let address = address.or_else(|_| authority.trim_matches(['[', ']']).parse::<IpAddr>());
    let host = authority.split_once(':').map_or(authority, |(host, _)| host);
    matches!(scheme, "http" | "https")
        && (host == "localhost" || address.is_ok_and(|it| it.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allow_list_is_exact() {
        let origins = ["https://example.com".to_owned()];

        assert!(is_allowed("https://example.com", &origins));
        for foreign in [
            "https://evil-example.com",
            "https://example.com.evil",
            "http://example.com",
            "https://example.com:444",
            "https://EXAMPLE.com",
            "null",
            "",
            "http://localhost",
        ] {
            assert!(!is_allowed(foreign, &origins), "{foreign}");
        }
    }

    #[test]
    fn without_a_list_pages_on_loopback_may_connect() {
        for local in
            ["http://localhost", "http://localhost:8080", "https://127.0.0.1:1", "http://[::1]:80"]
        {
            assert!(is_allowed(local, &[]), "{local}");
        }
        for foreign in [
            "null",
            "?",
            "http://localhost.evil",
            "http://10.0.0.1",
            "ftp://localhost",
            "localhost",
        ] {
            assert!(!is_allowed(foreign, &[]), "{foreign}");
        }
    }
}
