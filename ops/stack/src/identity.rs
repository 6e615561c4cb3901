//! The demonstration's own app and node secrets, drawn once and kept in the data folder.

use std::path::{Path, PathBuf};

use anyhow::Context;
use auth_core::app::{App, TicketAlg, TicketKey};
use auth_core::node::{NodeRole, NodeSecret};
use auth_core::secret::Secret;
use kit::private;
use proto::id::{AppId, NodeId, UnitId};
use proto::policy::Policy;
use serde::{Deserialize, Serialize};

/// The demonstration's app.
pub const APP: AppId = AppId(1);
/// The one link node.
pub const LINK: NodeId = NodeId(1);
/// The one gslb.
pub const GSLB: NodeId = NodeId(2);
/// The one chatserver.
pub const CHATSERVER: NodeId = NodeId(3);
/// The one broadcaster.
pub const BROADCASTER: NodeId = NodeId(4);

/// Secrets of a demonstration; the file that holds them is for its owner alone.
#[derive(Clone, Deserialize, Serialize)]
pub struct Identity {
    /// HS256 key of the app's tickets.
    pub ticket_key: String,
    /// Key of the business API.
    pub api_key: String,
    /// Key of the auth service's calls for operators.
    #[serde(default)]
    pub operator_key: String,
    /// Seals the masters on disk.
    #[serde(default)]
    pub(crate) seal: String,
    link_secret: String,
    gslb_secret: String,
    #[serde(default)]
    pub(crate) broadcaster_secret: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(…)")
    }
}

impl Identity {
    /// Reads the identity of `data`, or draws one and writes it there.
    ///
    /// # Errors
    /// When the file cannot be read or written or is open to others, or when the operating system
    /// gives no randomness.
    pub fn load_or_create(data: &Path) -> anyhow::Result<Self> {
        let path = data.join("identity.json");
        let read =
            private::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut identity: Self = match read {
            Some(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{} is damaged: remove it", path.display()))?,
            None => Self::draw()?,
        };
        let drawn =
            [&mut identity.operator_key, &mut identity.seal, &mut identity.broadcaster_secret];
        let missing: Vec<_> = drawn.into_iter().filter(|it| it.is_empty()).collect();
        if !missing.is_empty() {
            for it in missing {
                *it = text()?;
            }
            private::write(&path, &serde_json::to_vec_pretty(&identity)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(identity)
    }

    /// The app that the demonstration's rooms belong to.
    #[must_use]
    pub fn app(&self) -> App {
        let key = Secret::new(self.ticket_key.clone());
        App {
            id: APP,
            name: "demo".to_owned(),
            ticket_keys: vec![TicketKey { kid: String::new(), alg: TicketAlg::Hs256, key }],
            jwks: PathBuf::new(),
            api_keys: vec![Secret::new(self.api_key.clone())],
            policy: Policy::default(),
        }
    }

    /// The secrets of the nodes that need one.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeSecret> {
        let node = |node, role, secret: &str| NodeSecret {
            node,
            role,
            secret: Secret::new(secret.to_owned()),
            unit: UnitId::default(),
            hosts: Vec::new(),
        };
        vec![
            node(LINK, NodeRole::Link, &self.link_secret),
            node(GSLB, NodeRole::Gslb, &self.gslb_secret),
            node(BROADCASTER, NodeRole::Broadcaster, &self.broadcaster_secret),
        ]
    }

    /// What an earlier release did not draw is drawn when it is read.
    fn draw() -> anyhow::Result<Self> {
        Ok(Self {
            ticket_key: text()?,
            api_key: text()?,
            operator_key: String::new(),
            seal: String::new(),
            link_secret: text()?,
            gslb_secret: text()?,
            broadcaster_secret: String::new(),
        })
    }
}

fn text() -> anyhow::Result<String> {
    Ok(hex::encode(kit::seed::random_bytes::<32>()?))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_an_earlier_release_did_not_draw_is_added_once() {
        let data = tempfile::tempdir().unwrap();
        let old = r#"{"ticket_key": "t", "api_key": "a", "link_secret": "l", "gslb_secret": "g"}"#;
        private::write(&data.path().join("identity.json"), old.as_bytes()).unwrap();

        let first = Identity::load_or_create(data.path()).unwrap();
        let second = Identity::load_or_create(data.path()).unwrap();

        assert_eq!((first.ticket_key.as_str(), first.seal.len()), ("t", 64));
        assert_ne!(first.seal, first.operator_key);
        assert_eq!((first.seal, first.operator_key), (second.seal, second.operator_key));
    }

    #[test]
    fn an_identity_is_drawn_once_and_private() {
        let data = tempfile::tempdir().unwrap();

        let first = Identity::load_or_create(data.path()).unwrap();
        let second = Identity::load_or_create(data.path()).unwrap();

        assert_eq!(first.ticket_key, second.ticket_key);
        assert_ne!(first.ticket_key, first.api_key);
        let mode = fs::metadata(data.path().join("identity.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn an_identity_that_is_open_to_others_is_not_used() {
        let data = tempfile::tempdir().unwrap();
        Identity::load_or_create(data.path()).unwrap();
        let path = data.path().join("identity.json");
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();

        let refused = format!("{:#}", Identity::load_or_create(data.path()).unwrap_err());

        assert!(refused.contains("its mode is 644, not 600"), "{refused}");
    }
}
