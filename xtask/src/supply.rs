//! `cargo xtask deny`: checks licences, bans, sources and advisories of all dependencies against
//! deny.toml, which also says why this is not cargo-deny.

mod advisories;
mod packages;
mod policy;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::command::root;
use crate::metadata::metadata;
use crate::progress::say;
pub(crate) use packages::{Dependency, Metadata, Package};

/// The workspaces, as folders of the repository.
const WORKSPACES: [&str; 4] = [".", "guests", "guests/kubewarden", "tests/fuzz/libfuzzer"];

/// Checks the dependencies of all workspaces.
///
/// # Errors
/// What deny.toml does not allow, one line each.
pub(crate) fn run() -> Result<()> {
    let path = root().join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let policy = policy::Policy::read(&text)?;
    let mut problems = BTreeSet::new();
    let mut packages = BTreeSet::new();
    for workspace in WORKSPACES {
        let metadata: Metadata = metadata(&root().join(workspace), &[])?;
        problems.extend(policy.check(&metadata));
        for package in &metadata.packages {
            if package.source.is_some() {
                packages.insert((package.name.clone(), package.version.clone()));
            }
        }
    }
    say(&format!("{} packages: licences, bans and sources checked", packages.len()));
    let database = advisories::Database::open();
    say(&format!("advisories: {}", database.description()));
    problems.extend(database.problems(&packages, policy.ignored())?);
    if problems.is_empty() {
        return Ok(());
    }
    let problems: Vec<String> = problems.into_iter().collect();
    bail!("dependencies that deny.toml does not allow:\n  {}", problems.join("\n  "));
}

#[cfg(test)]
mod tests {
    #[test]
    fn dependencies_have_allowed_licences() {
        let text = std::fs::read_to_string(crate::command::root().join("deny.toml")).unwrap();
        let policy = super::policy::Policy::read(&text).unwrap();
        for workspace in super::WORKSPACES {
            let folder = crate::command::root().join(workspace);
            let metadata: super::Metadata = super::metadata(&folder, &[]).unwrap();
            assert!(metadata.packages.len() > 20);
            let problems = policy.check(&metadata);
            assert!(problems.is_empty(), "\n{}", problems.join("\n"));
        }
    }
}
