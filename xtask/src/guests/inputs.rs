//! Whether a component is as new as what it is made of.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use innkeeper_toolchain::Toolchain;
use sha2::{Digest as _, Sha256};

use super::componentize;

/// A digest of all that components are made of: the guests, the contract, the lints that the
/// contract's crate inherits, and the toolchain. Of contents, not of times: a checkout changes times.
pub(super) fn digest(root: &Path, toolchain: &Toolchain) -> Result<String> {
    let mut files = vec![root.join("Cargo.toml")];
    collect(&root.join("wit"), &mut files)?;
    collect(&root.join("guests"), &mut files)?;
    files.sort();

    let mut digest = Sha256::new();
    digest.update(toolchain.identity());
    // How components are made is part of what they are.
    digest.update(include_bytes!("../../../host/toolchain/src/componentize.rs"));
    digest.update(include_bytes!("../../../host/toolchain/src/toolchain.rs"));
    for file in files {
        let content =
            std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        for part in [name.as_bytes(), &content] {
            // Lengths keep two neighbours from passing for one another.
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
    }
    Ok(hex::encode(digest.finalize()))
}

/// Whether the component is there and was made of these inputs.
pub(super) fn is_current(out: &Path, name: &str, digest: &str) -> bool {
    componentize::path(out, name).is_file()
        && std::fs::read_to_string(stamp(out, name)).is_ok_and(|recorded| recorded == digest)
}

/// Remembers which inputs the component was made of.
pub(super) fn record(out: &Path, name: &str, digest: &str) -> Result<()> {
    let stamp = stamp(out, name);
    std::fs::write(&stamp, digest).with_context(|| format!("cannot write {}", stamp.display()))
}

fn stamp(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.inputs"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_current_until_its_inputs_change() {
        let out = tempfile::tempdir().unwrap();
        assert!(!is_current(out.path(), "guest", "a"), "there is no component yet");
        std::fs::write(componentize::path(out.path(), "guest"), "component").unwrap();
        assert!(!is_current(out.path(), "guest", "a"), "nobody knows what it was made of");
        record(out.path(), "guest", "a").unwrap();
        assert!(is_current(out.path(), "guest", "a"));
        assert!(!is_current(out.path(), "guest", "b"), "the inputs are others");
    }
}
