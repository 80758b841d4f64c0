//! What cargo compiled of packages of a registry, and the files that it made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The folders of a profile with the files of units. The first one says which units are complete.
const FOLDERS: [&str; 3] = [".fingerprint", "build", "deps"];

/// The digits of a unit's hash, which cargo adds to the names of its files and folders.
const HASH_DIGITS: usize = 16;

/// The files of each unit, by its hash: paths in the folder of a profile, those of the fingerprint
/// first.
pub(super) type Units = BTreeMap<String, Vec<PathBuf>>;

/// A message of cargo.
#[derive(Deserialize)]
struct Message {
    package_id: Option<String>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    /// The folder of what a build script made.
    out_dir: Option<PathBuf>,
}

/// The hashes of the units of packages of a registry in the JSON messages of a cargo.
///
/// # Errors
/// If a line is no message.
pub(super) fn of_registry(messages: &str) -> Result<BTreeSet<String>> {
    let mut hashes = BTreeSet::new();
    for line in messages.lines() {
        let message: Message =
            serde_json::from_str(line).context("cargo prints something unreadable")?;
        // The results of other packages depend on the path of the clone.
        let is_of_registry = |id: &String| id.starts_with("registry+") || id.starts_with("sparse+");
        if message.package_id.as_ref().is_some_and(is_of_registry) {
            let files = message.filenames.iter().chain(&message.out_dir);
            hashes.extend(files.filter_map(|file| hash_in(file)));
        }
    }
    Ok(hashes)
}

/// The files of these units in the folder of a profile.
///
/// # Errors
/// If a folder cannot be listed.
pub(super) fn files(profile: &Path, hashes: &BTreeSet<String>) -> Result<Units> {
    let mut units = Units::new();
    for folder in FOLDERS {
        let folder = profile.join(folder);
        for entry in list(&folder)? {
            let Some(hash) = hash_in(&entry) else { continue };
            if hashes.contains(&hash) {
                collect(profile, &entry, units.entry(hash).or_default())?;
            }
        }
    }
    Ok(units)
}

/// The hash in the last name of a path that has one: `deps/libserde-0123456789abcdef.rlib`,
/// `build/ring-0123456789abcdef/out`.
fn hash_in(path: &Path) -> Option<String> {
    path.iter().rev().find_map(|name| {
        let name = name.to_str()?;
        let stem = name.split_once('.').filter(|(stem, _)| !stem.is_empty());
        let (_, hash) = stem.map_or(name, |(stem, _)| stem).rsplit_once('-')?;
        let is_hash =
            hash.len() == HASH_DIGITS && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hash.then(|| hash.to_owned())
    })
}

fn collect(profile: &Path, path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let metadata = path.symlink_metadata();
    if metadata.with_context(|| format!("cannot read {}", path.display()))?.is_dir() {
        for entry in list(path)? {
            collect(profile, &entry, files)?;
        }
    }
    // Also folders: a build script may have made an empty one.
    files.push(path.strip_prefix(profile).unwrap_or(path).to_owned());
    Ok(())
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in folder.read_dir()? {
            paths.push(entry?.path());
        }
        paths.sort();
        Ok(paths)
    };
    list().with_context(|| format!("cannot list {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_read_from_the_names_that_cargo_gives() {
        let hash = |path: &str| hash_in(Path::new(path));
        let expected = Some("0123456789abcdef".to_owned());
        assert_eq!(hash("/t/debug/deps/libserde_core-0123456789abcdef.rmeta"), expected);
        assert_eq!(hash("/t/debug/deps/serde-0123456789abcdef.d"), expected);
        assert_eq!(hash("/t/debug/deps/x-0123456789abcdef.abc.rcgu.o"), expected);
        assert_eq!(hash("/t/debug/build/ring-0123456789abcdef/build-script-build"), expected);
        assert_eq!(hash("/t/debug/build/ring-0123456789abcdef/out"), expected);
        assert_eq!(hash("/t/debug/innkeeper"), None);
        assert_eq!(hash("/t/debug/deps/x-0123456789abcde"), None);
        assert_eq!(hash("/t/debug/deps/x-0123456789abcdeg.d"), None);
        assert_eq!(hash("/clone-with-a-name-of-many-words/x"), None);
    }

    #[test]
    fn units_are_those_of_registries_and_not_those_of_the_clone() {
        let artifact = |id: &str, file: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"package_id\":{id:?},\"filenames\":[{file:?}]}}\n"
            )
        };
        let serde = "registry+https://index.example.org/#serde@1.0.229";
        let messages = artifact(serde, "/t/debug/deps/libserde-00000000000000a1.rlib")
            + &artifact("path+file:///c/wit#0.1.0", "/t/debug/deps/libwit-00000000000000a2.rlib")
            + &format!(
                "{{\"reason\":\"build-script-executed\",\"package_id\":{serde:?},\"out_dir\":\"/t/debug/build/serde-00000000000000a3/out\"}}\n"
            )
            + "{\"reason\":\"build-finished\",\"success\":true}\n";
        let units = of_registry(&messages).unwrap();
        assert_eq!(units.iter().collect::<Vec<_>>(), ["00000000000000a1", "00000000000000a3"]);
        assert!(of_registry("Compiling serde").is_err());
    }

    #[test]
    fn files_of_a_unit_lie_in_all_folders_and_those_of_the_fingerprint_come_first() {
        let profile = tempfile::tempdir().unwrap();
        for file in [
            ".fingerprint/a-00000000000000a1/lib-a",
            ".fingerprint/b-00000000000000b1/lib-b",
            "build/a-00000000000000a1/out/x.rs",
            "deps/a-00000000000000a1.d",
            "deps/liba-00000000000000a1.rlib",
            "deps/libb-00000000000000b1.rlib",
        ] {
            let file = profile.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "x").unwrap();
        }
        let hashes = BTreeSet::from(["00000000000000a1".to_owned()]);
        let units = files(profile.path(), &hashes).unwrap();
        assert_eq!(units.len(), 1);
        let files: Vec<_> =
            units["00000000000000a1"].iter().map(|file| file.to_str().unwrap()).collect();
        let expected = [
            ".fingerprint/a-00000000000000a1/lib-a",
            ".fingerprint/a-00000000000000a1",
            "build/a-00000000000000a1/out/x.rs",
            "build/a-00000000000000a1/out",
            "build/a-00000000000000a1",
            "deps/a-00000000000000a1.d",
            "deps/liba-00000000000000a1.rlib",
        ];
        assert_eq!(files, expected);
        assert!(super::files(&profile.path().join("missing"), &hashes).is_err());
    }
}
