//! The packages of the workspace, as cargo sees them.

use std::collections::BTreeSet;

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::tree;

/// A package.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder from the root, with slashes.
    pub(crate) folder: String,
    /// Names of the workspace packages that it imports, tests not counted.
    pub(crate) imports: BTreeSet<String>,
    /// Names of the outside packages that it imports, tests not counted.
    pub(crate) outside: BTreeSet<String>,
    /// Names of everything in its manifest, tests counted.
    pub(crate) named: BTreeSet<String>,
}

/// Every member.
pub(crate) fn packages() -> Vec<Package> {
    let metadata = MetadataCommand::new()
        .manifest_path(tree::root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo reads this workspace, or these tests would not run");
    let members = metadata.workspace_packages().into_iter();
    members
        .map(|it| {
            let folder = it.manifest_path.parent().expect("a manifest lies in a folder");
            let folder = folder.strip_prefix(&metadata.workspace_root).unwrap_or(folder);
            let counted =
                it.dependencies.iter().filter(|it| it.kind != DependencyKind::Development);
            let (inside, outside): (Vec<_>, Vec<_>) = counted.partition(|it| it.path.is_some());
            let names = |list: Vec<&cargo_metadata::Dependency>| {
                list.into_iter().map(|it| it.name.clone()).collect()
            };
            Package {
                name: it.name.to_string(),
                folder: folder.as_str().replace('\\', "/"),
                imports: names(inside),
                outside: names(outside),
                named: it.dependencies.iter().map(|it| it.name.clone()).collect(),
            }
        })
        .collect()
}
