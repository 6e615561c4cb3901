//! Lists in pages: `?after=` with what the last page gave as `next`.

use proto::control::Fact;
use serde::{Deserialize, Serialize};

use super::Api;
use super::no::No;

/// Where a page begins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    pub(super) after: Option<String>,
}

/// A page.
#[derive(Debug, Serialize)]
pub(super) struct Listed<T> {
    pub(super) rows: T,
    /// Give it as `after` for what follows; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

impl Api {
    /// A page of the acts whose keys begin with `prefix`; what stands behind it is what `next` and
    /// `after` say.
    pub(super) async fn page(
        &self,
        prefix: &str,
        Page { after }: Page,
    ) -> Result<(Vec<Fact>, Option<String>), No> {
        let after = after.map(|it| format!("{prefix}{it}"));
        let (facts, next) = self.site.rows.acts(prefix, after).await?;
        let next = next.and_then(|it| it.strip_prefix(prefix).map(str::to_owned));
        Ok((facts, next))
    }
}
