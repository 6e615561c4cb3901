//! By which ways items reach a viewer, by what kind of client it is.

use anyhow::ensure;
use proto::enter::{Class, Delivery as Path};
use serde::{Deserialize, Serialize};

/// Ways by which items reach a viewer, best first, for each class that a client may say it is of.
/// `[gslb.delivery]`.
///
/// `push` is the long connection, left out of an answer without addresses; `segments` and
/// `lite_segments`, a part of what there is, come from the CDN and are left out while there is no
/// base. Each list names `push`: a client that has an address is counted as one that uses it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct Delivery {
    /// Programs of their own, and whoever does not say.
    pub native: Vec<Path>,
    /// Web pages.
    pub browser: Vec<Path>,
    /// Devices and networks that cannot take much: a part of the items, fetched when there is
    /// time for it.
    pub weak: Vec<Path>,
    /// Networks where the national suites are asked for; the addresses for these come first, too.
    pub national: Vec<Path>,
}

impl Delivery {
    /// The order for a class.
    #[must_use]
    pub fn of(&self, class: Class) -> &[Path] {
        match class {
            Class::Native => &self.native,
            Class::Browser => &self.browser,
            Class::Weak => &self.weak,
            Class::National => &self.national,
        }
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        for (name, class) in ["native", "browser", "weak", "national"].into_iter().zip(Class::ALL) {
            let paths = self.of(class);
            ensure!(paths.contains(&Path::Push), "{name}: push is missing");
            let mut rest = paths;
            while let Some((path, behind)) = rest.split_first() {
                ensure!(!behind.contains(path), "{name}: {} stands there twice", path.name());
                rest = behind;
            }
        }
        Ok(())
    }
}

impl Default for Delivery {
    fn default() -> Self {
        Self {
            native: vec![Path::Push, Path::Segments],
            browser: vec![Path::Push, Path::Segments],
            weak: vec![Path::LiteSegments, Path::Segments, Path::Push],
            national: vec![Path::Push, Path::Segments],
        }
    }
}
