//! Which operator calls: a key as a bearer token, compared without telling anything by time.

use auth_core::secret::Secret;
use axum::http::{HeaderMap, StatusCode, header};
use kit::problem::Problem;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The digests of the operators' keys.
#[derive(Clone)]
pub(crate) struct Operators(Vec<[u8; 32]>);

impl Operators {
    pub(crate) fn new(keys: &[Secret]) -> Self {
        Self(keys.iter().map(|it| Sha256::digest(it.expose()).into()).collect())
    }

    /// Whether one of the keys is given. All are compared, whole.
    pub(crate) fn authorize(&self, headers: &HeaderMap) -> Result<(), Box<Problem>> {
        let given = headers.get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
        let given: [u8; 32] =
            Sha256::digest(given.and_then(|it| it.strip_prefix("Bearer ")).unwrap_or("")).into();
        let compare = |found, known: &[u8; 32]| found | known.ct_eq(&given);
        if self.0.iter().fold(Choice::from(0), compare).into() {
            return Ok(());
        }
        let title = "an operator key is needed as a bearer token";
        Err(Box::new(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", title)))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(text: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(text).unwrap())])
    }

    #[test]
    fn each_key_opens_and_nothing_else_does() {
        let keys = ["one", "two"].map(|it| Secret::new(it.to_owned()));
        let operators = Operators::new(&keys);

        assert!(operators.authorize(&headers("Bearer one")).is_ok());
        assert!(operators.authorize(&headers("Bearer two")).is_ok());
        for wrong in ["Bearer three", "Bearer ", "one", "Basic one"] {
            assert!(operators.authorize(&headers(wrong)).is_err(), "{wrong}");
        }
        assert!(operators.authorize(&HeaderMap::new()).is_err());
        assert!(Operators::new(&[]).authorize(&headers("Bearer ")).is_err());
    }
}
