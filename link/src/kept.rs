//! The last keys that the auth service gave, sealed on disk: a node that starts while that service
//! is away takes logins all the same, for as long as those keys reach.

use std::path::{Path, PathBuf};

use anyhow::Context;
use auth_core::sealed;
use auth_core::secret::Secret;
use kit::{private, seed};
use proto::keys::LinkKeys;
use proto::time::Wall;
use serde::{Deserialize, Serialize};

const FILE: &str = "link-keys.sealed";
const PURPOSE: &str = "link keys";

/// Where they lie, and what seals them.
#[derive(Debug)]
pub(crate) struct Kept {
    path: PathBuf,
    secret: Secret,
}

/// One answer of the auth service.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Answer {
    /// When it was fetched.
    pub(crate) fetched: Wall,
    pub(crate) keys: LinkKeys,
}

impl Kept {
    pub(crate) fn new(folder: &Path, secret: Secret) -> Self {
        Self { path: folder.join(FILE), secret }
    }

    /// The answer that was kept last. One that cannot be opened is as good as none: the next fetch
    /// replaces it.
    ///
    /// # Errors
    /// When the file cannot be read, or others could read it.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Answer>> {
        let name = || format!("could not use {}", self.path.display());
        let Some(bytes) = private::read(&self.path).with_context(name)? else {
            return Ok(None);
        };
        let opened = sealed::open(PURPOSE, &self.secret, &bytes).map_err(anyhow::Error::new);
        let answer = opened.and_then(|it| Ok(serde_json::from_slice(&it)?));
        if let Err(error) = &answer {
            tracing::warn!(error = format!("{error:#}"), "the kept keys are not usable");
        }
        Ok(answer.ok())
    }

    /// Keeps an answer in place of the last one. Blocks for file access.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn write(&self, answer: &Answer) -> anyhow::Result<()> {
        let plain = zeroize::Zeroizing::new(serde_json::to_vec(answer)?);
        let sealed = sealed::seal(PURPOSE, &self.secret, &plain, seed::random_bytes()?);
        private::write(&self.path, &sealed)
            .with_context(|| format!("could not write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn kept(folder: &Path, secret: &str) -> Kept {
        Kept::new(folder, Secret::new(secret.repeat(32)))
    }

    fn answer() -> Answer {
        let keys = LinkKeys { interval_s: 600, tokens: Vec::new(), resumes: Vec::new() };
        Answer { fetched: Wall(7), keys }
    }

    #[test]
    fn an_answer_is_kept_for_the_node_alone() {
        let folder = tempfile::tempdir().unwrap();

        assert!(kept(folder.path(), "a").read().unwrap().is_none());
        kept(folder.path(), "a").write(&answer()).unwrap();

        let read = kept(folder.path(), "a").read().unwrap().unwrap();
        assert_eq!((read.fetched, read.keys.interval_s), (Wall(7), 600));
        assert!(kept(folder.path(), "b").read().unwrap().is_none(), "another node's secret");
        let bytes = fs::read(folder.path().join(FILE)).unwrap();
        assert!(!bytes.windows(10).any(|it| it == b"interval_s"));
    }

    #[test]
    fn a_file_that_others_can_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        kept(folder.path(), "a").write(&answer()).unwrap();
        let path = folder.path().join(FILE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();

        let refused = kept(folder.path(), "a").read().unwrap_err();

        assert!(format!("{refused:#}").contains("its mode is 644"), "{refused:#}");
    }
}
