//! HTTP as the client uses it: bounded bodies, deadlines, one pool for many clients.

use std::time::Duration;

use channel::ClientTls;

/// An HTTP client that believes whom `tls` believes. Share one among all clients of a process.
///
/// # Errors
/// When the client cannot be set up.
pub fn client(tls: &ClientTls) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls.config())
        .connect_timeout(Duration::from_secs(3))
        .build()
}

/// Why there is no body.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// No connection, no answer in time, or an answer cut off.
    #[error("the server did not answer")]
    Transport(#[from] reqwest::Error),
    /// More bytes than are allowed here.
    #[error("the answer is longer than {max} bytes")]
    TooLarge {
        /// Bytes allowed.
        max: usize,
    },
}

/// Reads a body up to a bound that counts after decompression.
pub(crate) async fn body(
    mut response: reqwest::Response,
    max: usize,
) -> Result<Vec<u8>, HttpError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > max {
            return Err(HttpError::TooLarge { max });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
