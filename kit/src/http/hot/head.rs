//! Whether the next bytes of a connection are a plain hot request.
//!
//! Plain is what leaves no doubt where the request ends: HTTP/1.1 with one length or none, in one
//! piece, whose connection goes on as it is. The bytes are read by the parser that hyper has, so
//! that both agree about every line; all that is not plain is hyper's (RFC 9112, section 6.3).

use std::mem::MaybeUninit;

use httparse::{Header, Request, Status};

use super::{Fields, Hot};

/// Header fields of a plain request. Browsers send about 20.
pub(super) const FIELDS_MAX: usize = 48;

/// Room for header fields.
pub(super) type Space<'b> = [MaybeUninit<Header<'b>>; FIELDS_MAX];

/// Room for header fields, empty.
pub(super) const fn space<'b>() -> Space<'b> {
    [const { MaybeUninit::uninit() }; FIELDS_MAX]
}

/// What the next bytes are.
#[derive(Debug)]
pub(super) enum Next<'h, 'b> {
    /// A plain hot request.
    Hot(Head<'h, 'b>),
    /// Something for hyper.
    Other,
}

/// The head of a plain hot request.
#[derive(Debug)]
pub(super) struct Head<'h, 'b> {
    pub(super) path: &'b str,
    pub(super) fields: &'h [Header<'b>],
    /// Bytes of the head.
    pub(super) head_bytes: usize,
    /// Bytes of the body behind it.
    pub(super) body_bytes: usize,
    /// Bytes that it might have.
    pub(super) body_bytes_max: usize,
}

/// Looks at the next bytes.
pub(super) fn next<'h, 'b>(
    bytes: &'b [u8],
    space: &'h mut Space<'b>,
    hot: &dyn Hot,
) -> Next<'h, 'b> {
    let mut request = Request::new(&mut []);
    let Ok(Status::Complete(head_bytes)) = request.parse_with_uninit_headers(bytes, space) else {
        return Next::Other;
    };
    let (Some(method), Some(path), Some(1)) = (request.method, request.path, request.version)
    else {
        return Next::Other;
    };
    let fields: &[Header<'_>] = request.headers;
    let Some(body_bytes_max) = hot.body_bytes_max(method, path, Fields(fields)) else {
        return Next::Other;
    };
    match body_bytes(fields) {
        Some(body_bytes) if body_bytes <= body_bytes_max => {
            Next::Hot(Head { path, fields, head_bytes, body_bytes, body_bytes_max })
        }
        Some(_) | None => Next::Other,
    }
}

/// Bytes of the body, if the fields leave no doubt.
fn body_bytes(fields: &[Header<'_>]) -> Option<usize> {
    let mut length = None;
    for Header { name, value } in fields {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("content-length") {
            if length.is_some() {
                return None;
            }
            length = Some(number(value)?);
        } else if is("connection") {
            if !value.eq_ignore_ascii_case(b"keep-alive") {
                return None;
            }
        } else if is("transfer-encoding") || is("expect") || is("upgrade") {
            return None;
        }
    }
    Some(length.unwrap_or(0))
}

/// Digits alone; no sign, no list.
fn number(digits: &[u8]) -> Option<usize> {
    let are_digits = digits.iter().all(u8::is_ascii_digit);
    are_digits.then(|| str::from_utf8(digits).ok()?.parse().ok())?
}
