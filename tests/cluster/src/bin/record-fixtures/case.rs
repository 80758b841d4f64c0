//! The cases, as people write them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A case, as people write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) about: String,
    pub(crate) desired: Value,
    /// What somebody else made before; ours is then merged into it.
    pub(crate) made: Option<Value>,
    /// Known to be applied once after a restart, needlessly.
    #[serde(default)]
    pub(crate) miss: bool,
    /// The server takes it as a change on every apply.
    #[serde(default)]
    pub(crate) churns: Churns,
    /// A part of the error with which the server refuses it.
    pub(crate) refused: Option<String>,
    #[serde(default)]
    pub(crate) changes: Vec<Change>,
}

/// Whether the server takes an object as changed on every apply, although nothing changes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Churns {
    /// It does not.
    #[default]
    No,
    /// It does, unless core drops something from the object.
    Dropped,
    /// It does: only versions change, and core leaves the object as it is.
    Left,
}

/// What somebody else does after our apply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) about: String,
    /// The field manager.
    #[serde(rename = "as")]
    pub(crate) manager: String,
    #[serde(default)]
    pub(crate) subresource: String,
    /// A merge patch, strategic if that is set.
    pub(crate) merge: Option<Value>,
    #[serde(default)]
    pub(crate) strategic: bool,
    /// A JSON patch.
    pub(crate) json: Option<Value>,
    /// A forced apply of these members.
    pub(crate) apply: Option<Value>,
    /// A PUT of the object as it is, with these members replaced.
    pub(crate) put: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    pub(crate) settled: bool,
    /// The paths that our entry no longer has.
    #[serde(default)]
    pub(crate) lost: Vec<String>,
}

pub(crate) fn read_cases(folder: &Path) -> Result<Vec<Case>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let context = || format!("cannot read {}", file.display());
        let text = std::fs::read_to_string(&file).with_context(context)?;
        let mut value: serde_yaml_ng::Value =
            serde_yaml_ng::from_str(&text).with_context(context)?;
        value.apply_merge().with_context(context)?;
        cases.extend(serde_yaml_ng::from_value::<Vec<Case>>(value).with_context(context)?);
    }
    Ok(cases)
}
