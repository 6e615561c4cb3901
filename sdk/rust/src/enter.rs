//! `POST /v1/enter`, once.

use std::time::Duration;

use proto::enter::{EnterRequest, EnterResponse, Problem};

use crate::http::{HttpError, body};

/// Bytes of an answer: three addresses with tokens of 1 KiB, and the bases, are 5 KiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Why there are no addresses.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// The server said no, and why.
    #[error("refused: {}", .0.code)]
    Refused(Problem),
    /// There was no answer.
    #[error("enter could not be asked")]
    Http(#[from] HttpError),
    /// The answer is not what it should be.
    #[error("the answer cannot be read")]
    Malformed(#[from] serde_json::Error),
}

/// Asks once.
///
/// # Errors
/// [`EnterError`]; nothing is tried again.
pub async fn enter(
    http: &reqwest::Client,
    url: &str,
    request: &EnterRequest,
    deadline: Duration,
) -> Result<EnterResponse, EnterError> {
    let question = http.post(url).json(request).timeout(deadline);
    let response = question.send().await.map_err(HttpError::from)?;
    let status = response.status();
    let bytes = body(response, ANSWER_BYTES_MAX).await?;
    if status.is_success() {
        return Ok(serde_json::from_slice(&bytes)?);
    }
    // A proxy on the way answers without our problem document.
    let problem = serde_json::from_slice(&bytes).unwrap_or_else(|_| Problem {
        status: status.as_u16(),
        code: "http".to_owned(),
        title: String::new(),
        retry_after_ms: 0,
        server_ms: proto::time::Wall(0),
    });
    Err(EnterError::Refused(problem))
}

/// Whether asking again makes no sense: the ticket is refused, not the moment.
pub(crate) const fn is_final(problem: &Problem) -> bool {
    let is_refused = problem.status >= 400 && problem.status < 500;
    is_refused && problem.status != 408 && problem.status != 429 && problem.retry_after_ms == 0
}
