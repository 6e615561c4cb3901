//! Which node asks: its number and its secret, checked without telling anything by time.

use std::sync::Arc;

use anyhow::ensure;
use auth_core::node::{NodeRole, NodeSecret};
use axum::http::{HeaderMap, StatusCode, header};
use kit::problem::Problem;
use proto::id::NodeId;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// Header with the node's number.
pub(crate) const NODE_HEADER: &str = "x-barrage-node";
/// Bytes of a node's secret.
const SECRET_BYTES_MIN: usize = 32;

/// The nodes that may ask.
#[derive(Clone, Debug)]
pub(crate) struct Nodes(Arc<[NodeSecret]>);

impl Nodes {
    /// # Errors
    /// When a secret is short enough to be guessed.
    pub(crate) fn new(nodes: Arc<[NodeSecret]>) -> anyhow::Result<Self> {
        for node in nodes.iter() {
            let bytes = node.secret.expose().len();
            ensure!(
                bytes >= SECRET_BYTES_MIN,
                "the secret of node {} has {bytes} bytes, fewer than {SECRET_BYTES_MIN}",
                node.node,
            );
        }
        Ok(Self(nodes))
    }

    /// The node that asks, if it has this role.
    pub(crate) fn authorize(
        &self,
        headers: &HeaderMap,
        role: NodeRole,
    ) -> Result<&NodeSecret, Box<Problem>> {
        let node = self.authenticate(headers).ok_or_else(|| {
            let title = "no node with this number and secret";
            Box::new(Problem::new(StatusCode::UNAUTHORIZED, "unknown_node", title))
        })?;
        if node.role != role {
            let title = "these keys are for another kind of node";
            return Err(Box::new(Problem::new(StatusCode::FORBIDDEN, "wrong_role", title)));
        }
        Ok(node)
    }

    /// Compares with every entry, whole, so that the time taken tells nothing.
    fn authenticate(&self, headers: &HeaderMap) -> Option<&NodeSecret> {
        let node: u32 = headers.get(NODE_HEADER)?.to_str().ok()?.parse().ok()?;
        let authorization = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let given = Sha256::digest(authorization.strip_prefix("Bearer ")?);
        let mut found = None;
        for known in self.0.iter() {
            let is_secret = Sha256::digest(known.secret.expose()).ct_eq(&given);
            let is_node = Choice::from(u8::from(known.node == NodeId(node)));
            if (is_secret & is_node).into() {
                found = Some(known);
            }
        }
        found
    }
}
