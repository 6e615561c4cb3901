//! Calls to a running auth service, with an operator's key.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use auth_core::secret::Secret;
use channel::ClientTls;
use clap::Args;
use proto::enter::Problem;
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::command::secret;
use crate::run_file::RunFile;

/// Where the key of a service that is named with `--url` is looked for.
const KEY_VARIABLE: &str = "BARRAGE_OPERATOR_KEY";
/// Time for one call.
const CALL_MAX: Duration = Duration::from_secs(10);
/// Bytes of an answer: ten thousand rooms with a policy of their own.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Which auth service to call.
///
/// The address and the operator key of a running `up` are found in its data folder, and belong
/// together: whoever wrote the one wrote the other. For a service that `--url` names, set
/// `BARRAGE_OPERATOR_KEY`, or name a file with `--key-file`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Target {
    /// Data folder of a running `barrage up`, which holds its address and its key
    #[arg(long, value_name = "DIR", default_value = stack::DATA, conflicts_with = "url")]
    pub(crate) data: PathBuf,
    /// Another auth service, such as `https://auth.example:8003`; its key comes from
    /// BARRAGE_OPERATOR_KEY or --key-file
    #[arg(long, value_name = "URL", requires = "ca")]
    pub(crate) url: Option<String>,
    /// The authority that signed that service's certificate, PEM
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,
    /// With --url: file with an operator key in it, mode 600
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) key_file: Option<PathBuf>,
}

/// A service that can be called.
pub(crate) struct Operator {
    http: reqwest::Client,
    base: String,
    key: Secret,
}

impl Operator {
    /// Finds the service and the key.
    pub(crate) fn find(target: &Target) -> anyhow::Result<Self> {
        let (base, ca_pem, key) = match (&target.url, &target.ca) {
            (Some(url), Some(ca)) => {
                let ca_pem = std::fs::read_to_string(ca)
                    .with_context(|| format!("cannot read {}", ca.display()))?;
                let key = secret::given(target.key_file.as_deref(), KEY_VARIABLE)?;
                let key = key.with_context(|| {
                    format!("no operator key: set {KEY_VARIABLE}, or name a file with --key-file")
                })?;
                (url.clone(), ca_pem, key)
            }
            _ => {
                // The address may be anybody's who can write here: no other key may go to it.
                let run = RunFile::read(&target.data)?;
                (run.auth, run.ca_pem, Secret::new(run.operator_key))
            }
        };
        ensure!(base.starts_with("https://"), "{base} does not begin with https://");
        let http = sdk::http::client(&ClientTls::trusting(&ca_pem)?)?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), key })
    }

    pub(crate) async fn get<A: DeserializeOwned>(&self, path: &str) -> anyhow::Result<A> {
        self.call::<(), A>(Method::GET, path, None).await
    }

    pub(crate) async fn put<B: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> anyhow::Result<A> {
        self.call(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn post<B: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> anyhow::Result<A> {
        self.call(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn delete<A: DeserializeOwned>(&self, path: &str) -> anyhow::Result<A> {
        self.call::<(), A>(Method::DELETE, path, None).await
    }

    async fn call<B: Serialize, A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
    ) -> anyhow::Result<A> {
        let request = self.http.request(method, format!("{}{path}", self.base));
        let request = request.bearer_auth(self.key.expose()).timeout(CALL_MAX);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let mut response = request
            .send()
            .await
            .with_context(|| format!("the auth service at {} does not answer", self.base))?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.context("the answer broke off")? {
            ensure!(bytes.len() + chunk.len() <= ANSWER_BYTES_MAX, "the answer is too long");
            bytes.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return serde_json::from_slice(&bytes).context("the answer is not understood");
        }
        match serde_json::from_slice::<Problem>(&bytes) {
            Ok(problem) if problem.retry_after_ms > 0 => bail!(
                "refused: {} ({}); try again in {} s",
                problem.title,
                problem.code,
                problem.retry_after_ms.div_ceil(1000),
            ),
            Ok(problem) => bail!("refused: {} ({})", problem.title, problem.code),
            Err(_) => bail!("refused: status {status}"),
        }
    }
}
