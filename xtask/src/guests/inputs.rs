//! Whether a component is as new as what it is made of.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use innkeeper_toolchain::Toolchain;
use sha2::{Digest as _, Sha256};

use super::componentize;

/// The packages of the host's workspace that write the bytes of a component.
const ENCODERS: [&str; 4] = ["wasm-encoder", "wast", "wat", "wit-component"];

/// A digest of all that components of Rust are made of: the guests, the contract, the lints that
/// the contract's crate inherits, the toolchain and the crates that encode components. Of contents,
/// not of times: a checkout changes times. What lies in the folders `others` is of other languages.
///
/// # Errors
/// If an input cannot be read.
pub(super) fn digest(root: &Path, toolchain: &Toolchain, others: &[&Path]) -> Result<String> {
    let mut files = vec![root.join("Cargo.toml")];
    collect(&root.join("wit"), &["target"], &mut files)?;
    collect(&root.join("guests"), &["target"], &mut files)?;
    files.retain(|file| !others.iter().any(|other| file.starts_with(other)));
    let lockfile = root.join("Cargo.lock");
    let lock = std::fs::read_to_string(&lockfile)
        .with_context(|| format!("cannot read {}", lockfile.display()))?;
    let encoders = encoders(&lock)
        .with_context(|| format!("{} is no lock file of cargo", lockfile.display()))?;
    let how = [
        toolchain.identity().as_bytes(),
        encoders.as_bytes(),
        // How components are made is part of what they are.
        include_bytes!("../../../host/toolchain/src/componentize.rs"),
        include_bytes!("../../../host/toolchain/src/toolchain.rs"),
    ];
    digest_of(root, &how, files)
}

/// The packages of a Cargo.lock that make components of modules and texts, with their versions.
fn encoders(lock: &str) -> Result<String> {
    #[derive(serde::Deserialize)]
    struct Lock {
        package: Vec<Package>,
    }
    #[derive(serde::Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let lock: Lock = toml::from_str(lock)?;
    let encoders = lock.package.iter().filter(|one| ENCODERS.contains(&one.name.as_str()));
    let encoders = encoders.map(|one| format!("{} {}", one.name, one.version));
    Ok(encoders.collect::<Vec<_>>().join("\n"))
}

/// A digest of how something is made, and of the names (below `root`) and contents of files.
///
/// # Errors
/// If an input cannot be read.
pub(crate) fn digest_of(root: &Path, how: &[&[u8]], mut files: Vec<PathBuf>) -> Result<String> {
    files.sort();
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        // Lengths keep two neighbours from passing for one another.
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    };
    for part in how {
        add(part);
    }
    for file in files {
        let content =
            std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        add(file.strip_prefix(root).unwrap_or(&file).to_string_lossy().as_bytes());
        add(&content);
    }
    Ok(hex::encode(digest.finalize()))
}

/// The size of the component when compressed, if it is there and was made of these inputs.
pub(super) fn current(out: &Path, name: &str, digest: &str) -> Option<u64> {
    let stamp = std::fs::read_to_string(stamp(out, name)).ok()?;
    let (recorded, gzip_bytes) = stamp.split_once(' ')?;
    (recorded == digest && componentize::path(out, name).is_file())
        .then(|| gzip_bytes.parse().ok())?
}

/// Remembers which inputs the component was made of, and how small it becomes: to compress a large
/// one takes seconds.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn record(out: &Path, name: &str, digest: &str, gzip_bytes: u64) -> Result<()> {
    let stamp = stamp(out, name);
    std::fs::write(&stamp, format!("{digest} {gzip_bytes}"))
        .with_context(|| format!("cannot write {}", stamp.display()))
}

fn stamp(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.inputs"))
}

/// All files of a folder, also of those within it that do not have one of the names `except`.
///
/// # Errors
/// If a folder cannot be listed.
pub(super) fn collect(folder: &Path, except: &[&str], files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot list {}", folder.display()));
        }
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            if !except.iter().any(|name| path.ends_with(name)) {
                collect(&path, except, files)?;
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
    fn encoders_are_those_of_the_lock_file() {
        let package = |name: &str| format!("[[package]]\nname = {name:?}\nversion = \"0.254.1\"\n");
        let lock = package("wit-component") + &package("serde") + &package("wat");
        assert_eq!(encoders(&lock).unwrap(), "wit-component 0.254.1\nwat 0.254.1");
        assert!(encoders("nothing").is_err());
        let ours = std::fs::read_to_string(crate::command::root().join("Cargo.lock")).unwrap();
        let ours = encoders(&ours).unwrap();
        assert!(ENCODERS.iter().all(|name| ours.contains(name)), "{ours}");
    }

    #[test]
    fn component_is_current_until_its_inputs_change() {
        let out = tempfile::tempdir().unwrap();
        assert_eq!(current(out.path(), "guest", "a"), None, "there is no component yet");
        std::fs::write(componentize::path(out.path(), "guest"), "component").unwrap();
        assert_eq!(current(out.path(), "guest", "a"), None, "nobody knows what it was made of");
        record(out.path(), "guest", "a", 7).unwrap();
        assert_eq!(current(out.path(), "guest", "a"), Some(7));
        assert_eq!(current(out.path(), "guest", "b"), None, "the inputs are others");
        std::fs::remove_file(componentize::path(out.path(), "guest")).unwrap();
        assert_eq!(current(out.path(), "guest", "a"), None, "somebody has removed it");
    }
}
