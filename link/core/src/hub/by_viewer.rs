//! Members in the order of their viewers.

use std::cmp::Ordering;
use std::sync::Arc;

use proto::id::{AppId, SessionId, ViewerId};
use proto::item::Role;

use super::Member;

/// A member, in the order of viewers and then of their sessions. All that know of it share it, so
/// that a name lies here once however many rooms its session is in.
#[derive(Clone, Debug)]
pub(super) struct ByViewer(pub(super) Arc<Member>);

impl ByViewer {
    pub(super) fn of(member: &Arc<Member>) -> Self {
        Self(Arc::clone(member))
    }

    /// Stands before every session of a viewer.
    pub(super) fn before_all_of(app: AppId, viewer: &ViewerId) -> Self {
        let (session, viewer) = (SessionId(u64::MIN), viewer.clone());
        Self(Arc::new(Member { session, app, viewer, role: Role::Viewer, may_send: false }))
    }

    fn key(&self) -> (AppId, &ViewerId, SessionId) {
        (self.0.app, &self.0.viewer, self.0.session)
    }
}

impl Ord for ByViewer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for ByViewer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByViewer {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ByViewer {}
