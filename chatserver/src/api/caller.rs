//! Who calls, and what the request says, taken from it before a handler runs: what is wrong with
//! it becomes a problem document, too.

use std::fmt;
use std::sync::Arc;

use auth_core::app::App;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use proto::id::AppId;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::Api;
use super::no::No;

/// The digests of all API keys.
#[derive(Clone)]
pub(crate) struct Keys(Vec<([u8; 32], AppId)>);

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Keys {
    pub(crate) fn new(apps: &[App]) -> Self {
        let keys = apps.iter().flat_map(|app| app.api_keys.iter().map(move |key| (key, app.id)));
        let keys = keys.filter(|it| !it.0.is_empty());
        Self(keys.map(|(key, app)| (digest(key.expose()), app)).collect())
    }

    /// The app of a key. Takes the same time for every wrong key: all are compared, by digest.
    fn find(&self, key: &str) -> Option<AppId> {
        let key = digest(key);
        let (mut found, mut app) = (Choice::from(0), 0);
        for (known, its_app) in &self.0 {
            let same = key.ct_eq(known);
            app.conditional_assign(&its_app.0, same);
            found |= same;
        }
        bool::from(found).then_some(AppId(app))
    }
}

/// The app whose key the request carries, and which does not ask too often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller(pub(crate) AppId);

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = No;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, No> {
        let header = parts.headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
        let key = header.and_then(|it| it.split_once(' ')).filter(|it| is_bearer(it.0));
        let app = key.and_then(|it| api.keys.find(it.1.trim())).ok_or(No::Unauthorized)?;
        api.rates.check(app).map_err(|retry_after_ms| {
            api.site.counts.limited.inc();
            No::TooFast { retry_after_ms }
        })?;
        Ok(Self(app))
    }
}

/// A JSON body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Api>> for Body<T> {
    type Rejection = No;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, No> {
        match axum::Json::from_request(request, api).await {
            Ok(axum::Json(body)) => Ok(Self(body)),
            Err(error) => Err(No::Form { status: error.status(), why: error.body_text() }),
        }
    }
}

/// The names in the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Api>> for Names<T> {
    type Rejection = No;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, No> {
        match Path::from_request_parts(parts, api).await {
            Ok(Path(names)) => Ok(Self(names)),
            Err(error) => Err(No::Form { status: error.status(), why: error.body_text() }),
        }
    }
}

/// The query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Api>> for Asked<T> {
    type Rejection = No;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, No> {
        match Query::from_request_parts(parts, api).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => Err(No::Form { status: error.status(), why: error.body_text() }),
        }
    }
}

/// A header of at most `bytes_max` visible ASCII characters, if there is one.
pub(crate) fn header<'a>(
    headers: &'a axum::http::HeaderMap,
    name: &'static str,
    bytes_max: usize,
) -> Result<Option<&'a str>, No> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().ok().filter(|it| it.bytes().all(|byte| byte.is_ascii_graphic()));
    match text.filter(|it| (1..=bytes_max).contains(&it.len())) {
        Some(text) => Ok(Some(text)),
        None => {
            let why = format!("must have 1 to {bytes_max} visible ASCII characters");
            Err(No::Field { field: name, why })
        }
    }
}

fn is_bearer(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("bearer")
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use auth_core::secret::Secret;
    use proto::policy::Policy;

    use super::*;

    #[test]
    fn each_key_opens_its_own_app() {
        let app = |id, keys: &[&str]| App {
            id: AppId(id),
            name: String::new(),
            ticket_keys: Vec::new(),
            jwks: std::path::PathBuf::new(),
            api_keys: keys.iter().map(|&it| Secret::new(it.to_owned())).collect(),
            policy: Policy::default(),
        };
        let keys = Keys::new(&[app(1, &["a", "b"]), app(2, &["c", ""])]);

        assert_eq!(keys.find("b"), Some(AppId(1)));
        assert_eq!(keys.find("c"), Some(AppId(2)));
        assert_eq!(keys.find(""), None);
        assert_eq!(keys.find("d"), None);
    }
}
