//! A copy of the masters on disk, sealed under the node's secret: with it a gslb that starts while
//! the auth service is away still mints.

use std::path::{Path, PathBuf};

use anyhow::Context;
use auth_core::sealed::{self, SealError};
use auth_core::secret::Secret;
use proto::keys::Masters;
use zeroize::Zeroizing;

const FILE: &str = "masters.sealed";
const PURPOSE: &str = "gslb masters";

/// Where the copy is, and what it is sealed under.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    path: PathBuf,
    secret: Secret,
}

impl Copy {
    pub(crate) fn new(data: &Path, secret: Secret) -> Self {
        Self { path: data.join(FILE), secret }
    }

    /// Reads the copy; `None` if there is none that opens.
    ///
    /// # Errors
    /// When others could read or replace it, or it cannot be read.
    pub(crate) fn load(&self) -> anyhow::Result<Option<Masters>> {
        let name = || format!("could not use {}", self.path.display());
        let Some(bytes) = kit::private::read(&self.path).with_context(name)? else {
            return Ok(None);
        };
        match self.open(&bytes) {
            Ok(masters) => Ok(Some(masters)),
            // The secret was changed, or the file is damaged: the next fetch replaces it.
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, error = format!("{error:#}"), "the copy of the masters does not open");
                Ok(None)
            }
        }
    }

    /// Replaces the copy.
    ///
    /// # Errors
    /// When it cannot be written, or the system gives no random bytes.
    pub(crate) fn save(&self, masters: &Masters) -> anyhow::Result<()> {
        let plain = Zeroizing::new(serde_json::to_vec(masters)?);
        let sealed = sealed::seal(PURPOSE, &self.secret, &plain, kit::seed::random_bytes()?);
        kit::private::write(&self.path, &sealed)
            .with_context(|| format!("could not write {}", self.path.display()))
    }

    fn open(&self, bytes: &[u8]) -> anyhow::Result<Masters> {
        let plain: Result<_, SealError> = sealed::open(PURPOSE, &self.secret, bytes);
        Ok(serde_json::from_slice(&plain?)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use proto::keys::Master;

    use super::*;

    fn copy(data: &Path, secret: &str) -> Copy {
        Copy::new(data, Secret::new(secret.to_owned()))
    }

    fn masters() -> Masters {
        Masters { interval_s: 600, masters: vec![Master { kid: 3, key: "ab".repeat(32) }] }
    }

    #[test]
    fn what_was_saved_opens_with_the_same_secret_only() {
        let data = tempfile::tempdir().unwrap();
        assert!(copy(data.path(), "a").load().unwrap().is_none());

        copy(data.path(), "a").save(&masters()).unwrap();

        let loaded = copy(data.path(), "a").load().unwrap().unwrap();
        assert_eq!((loaded.interval_s, loaded.masters[0].kid), (600, 3));
        assert_eq!(loaded.masters[0].key, masters().masters[0].key);
        assert!(copy(data.path(), "b").load().unwrap().is_none());
        let bytes = fs::read(data.path().join(FILE)).unwrap();
        assert!(!bytes.windows(8).any(|it| it == b"abababab"));
    }

    #[test]
    fn a_damaged_copy_is_replaced_by_the_next() {
        let data = tempfile::tempdir().unwrap();
        copy(data.path(), "a").save(&masters()).unwrap();
        let path = data.path().join(FILE);
        let mut bytes = fs::read(&path).unwrap();
        bytes[40] ^= 1;
        fs::write(&path, bytes).unwrap();

        assert!(copy(data.path(), "a").load().unwrap().is_none());

        copy(data.path(), "a").save(&masters()).unwrap();
        assert!(copy(data.path(), "a").load().unwrap().is_some());
    }

    #[test]
    fn a_copy_that_is_open_to_others_is_not_used() {
        let data = tempfile::tempdir().unwrap();
        copy(data.path(), "a").save(&masters()).unwrap();
        let path = data.path().join(FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();

        let refused = copy(data.path(), "a").load().unwrap_err();

        assert!(format!("{refused:#}").contains("its mode is 640"), "{refused:#}");
    }
}
