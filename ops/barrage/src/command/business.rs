//! Calls to a running business API: rooms, people, words.

pub(crate) mod backup;
pub(crate) mod people;
pub(crate) mod room;
pub(crate) mod words;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use auth_core::secret::Secret;
use channel::ClientTls;
use clap::Args;
use proto::enter::Problem;
use reqwest::{Method, Url};
use serde_json::Value;

use crate::cli;
use crate::command::secret;
use crate::run_file::RunFile;

/// Where the key of an API that is named with `--url` is looked for.
const KEY_VARIABLE: &str = "BARRAGE_API_KEY";
/// Time for one call: a list of 100,000 words takes some seconds.
const CALL_MAX: Duration = Duration::from_secs(60);
/// Bytes of an answer: the largest list of words.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Which business API to call.
///
/// The address and the key of a running `up` are found in its data folder, and belong together. For
/// one that `--url` names, set `BARRAGE_API_KEY`, or name a file with `--key-file`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// Data folder of a running `barrage up`, which holds its address and its key
    #[arg(long, value_name = "DIR", default_value = stack::DATA, conflicts_with = "url")]
    data: PathBuf,
    /// Another business API, such as `https://api.example`; its key comes from BARRAGE_API_KEY or
    /// --key-file
    #[arg(long, value_name = "URL", requires = "ca")]
    url: Option<String>,
    /// The authority that signed its certificate, or several, PEM
    #[arg(long, value_name = "FILE", requires = "url")]
    ca: Option<PathBuf>,
    /// With --url: file with an app's API key in it, mode 600
    #[arg(long, value_name = "FILE", requires = "url")]
    key_file: Option<PathBuf>,
}

/// In whose name, and why.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Signed {
    /// Moderator or host of the room who does it; without one, the business server
    #[arg(long, value_name = "VIEWER")]
    by: Option<String>,
    /// Why; it is kept in the room's record
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

/// A business API that can be called.
pub(crate) struct Api {
    http: reqwest::Client,
    base: Url,
    key: Secret,
}

/// A request.
pub(crate) struct Call<'a> {
    method: Method,
    /// The parts of the path behind `/v1`.
    path: &'a [&'a str],
    signed: Option<&'a Signed>,
    /// The version that must be there.
    version: Option<u64>,
    body: Option<Value>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(method: Method, path: &'a [&'a str]) -> Self {
        Self { method, path, signed: None, version: None, body: None }
    }

    pub(crate) fn signed(self, signed: &'a Signed) -> Self {
        Self { signed: Some(signed), ..self }
    }

    pub(crate) fn version(self, version: Option<u64>) -> Self {
        Self { version, ..self }
    }

    pub(crate) fn body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }
}

impl Api {
    /// Finds the API and the key.
    pub(crate) fn find(target: &Target) -> anyhow::Result<Self> {
        let (base, ca_pem, key) = match (&target.url, &target.ca) {
            (Some(url), Some(ca)) => {
                let ca_pem = std::fs::read_to_string(ca)
                    .with_context(|| format!("cannot read {}", ca.display()))?;
                let key = secret::given(target.key_file.as_deref(), KEY_VARIABLE)?;
                let key = key.with_context(|| {
                    format!("no API key: set {KEY_VARIABLE}, or name a file with --key-file")
                })?;
                (url.clone(), ca_pem, key)
            }
            _ => {
                let run = RunFile::read(&target.data)?;
                (run.api, run.ca_pem, Secret::new(run.api_key))
            }
        };
        let base: Url = base.parse().with_context(|| format!("{base} is no URL"))?;
        let is_private = is_private(&base);
        ensure!(is_private, "{base} is neither https nor on this machine: the key could be read");
        let http = sdk::http::client(&ClientTls::trusting(&ca_pem)?)?;
        Ok(Self { http, base, key })
    }

    /// Calls it; what it says no to is an error. No content is `null`.
    pub(crate) async fn call(&self, call: Call<'_>) -> anyhow::Result<Value> {
        let mut url = self.url(call.path)?;
        if let Some(Signed { by, why }) = call.signed {
            for (name, value) in [("by", by), ("why", why)] {
                if let Some(value) = value {
                    url.query_pairs_mut().append_pair(name, value);
                }
            }
        }
        let mut request = self.http.request(call.method, url);
        if let Some(version) = call.version {
            request = request.header("if-match", format!("\"{version}\""));
        }
        if let Some(body) = call.body {
            request = request.json(&body);
        }
        self.send(request).await
    }

    /// All pages of a list, one row after the other, under `name` in the answer.
    pub(crate) async fn rows(&self, path: &[&str], name: &str) -> anyhow::Result<Vec<Value>> {
        let (mut rows, mut after): (Vec<Value>, Option<String>) = (Vec::new(), None);
        loop {
            let mut url = self.url(path)?;
            if let Some(after) = &after {
                url.query_pairs_mut().append_pair("after", after);
            }
            let mut page = self.send(self.http.get(url)).await?;
            if let Some(Value::Array(more)) = page.get_mut(name).map(Value::take) {
                rows.extend(more);
            }
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() {
                return Ok(rows);
            }
        }
    }

    fn url(&self, path: &[&str]) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        let mut segments = url.path_segments_mut().ok().context("the URL has no path")?;
        segments.pop_if_empty().push("v1").extend(path);
        drop(segments);
        Ok(url)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
        let request = request.bearer_auth(self.key.expose()).timeout(CALL_MAX);
        let sent = request.send().await;
        let mut response =
            sent.with_context(|| format!("the business API at {} does not answer", self.base))?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.context("the answer broke off")? {
            ensure!(bytes.len() + chunk.len() <= ANSWER_BYTES_MAX, "the answer is too long");
            bytes.extend_from_slice(&chunk);
        }
        if status.is_success() {
            if bytes.is_empty() {
                return Ok(Value::Null);
            }
            return serde_json::from_slice(&bytes).context("the answer is not understood");
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) => bail!("refused: {} ({})", problem.title, problem.code),
            Err(_) => bail!("refused: status {status}"),
        }
    }
}

/// Whether nobody between here and there reads what is said.
fn is_private(base: &Url) -> bool {
    let is_loopback = |host: &str| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
    };
    base.scheme() == "https" || base.scheme() == "http" && base.host_str().is_some_and(is_loopback)
}

/// Prints an answer as JSON for people.
fn show(value: &Value) -> anyhow::Result<()> {
    cli::line(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints rows, a JSON object a line.
fn show_rows(rows: &[Value]) {
    for row in rows {
        cli::line(&row.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_https_or_to_this_machine() {
        let check = |base: &str| is_private(&base.parse().unwrap());

        assert!(check("https://api.example"));
        assert!(
            check("http://127.0.0.1:8082") && check("http://[::1]:1") && check("http://localhost")
        );
        assert!(!check("http://api.example") && !check("http://127.0.0.1.example"));
    }
}
