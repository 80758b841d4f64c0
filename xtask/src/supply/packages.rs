//! All packages of a workspace, as `cargo metadata` gives them.

use std::collections::BTreeSet;

use serde::Deserialize;

/// What cargo says of a workspace and all that it depends on.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) resolve: Resolve,
}

impl Metadata {
    /// The names of the packages that depend on this one directly, also in their tests or builds.
    pub(super) fn users(&self, package: &Package) -> BTreeSet<&str> {
        let users = self
            .resolve
            .nodes
            .iter()
            .filter(|node| node.deps.iter().any(|dependency| dependency.pkg == package.id));
        users
            .flat_map(|node| self.packages.iter().filter(|one| one.id == node.id))
            .map(|one| one.name.as_str())
            .collect()
    }
}

/// A package.
#[derive(Clone, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) license: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) repository: Option<String>,
    /// Where it comes from; nowhere if it is ours.
    #[serde(default)]
    pub(crate) source: Option<String>,
    #[serde(default)]
    pub(crate) dependencies: Vec<Required>,
}

/// A dependency as a manifest asks for it.
#[derive(Clone, Deserialize)]
pub(crate) struct Required {
    pub(crate) name: String,
    pub(crate) req: String,
    #[serde(default)]
    pub(crate) path: Option<String>,
}

/// Which package uses which.
#[derive(Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// A package and what it uses.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Dependency>,
}

/// A package that another one uses.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `dev` or `build`; absent for the usual ones.
    kind: Option<String>,
}

impl Dependency {
    /// Whether what uses it has it in its artifact, not only in its tests or its build.
    pub(crate) fn is_linked(&self) -> bool {
        self.dep_kinds.iter().any(|one| one.kind.is_none())
    }
}
