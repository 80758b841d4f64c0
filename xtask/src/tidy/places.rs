//! ARCHITECTURE.md names modules as `crate::module::item` and files by their path: each must exist.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::command::root;

/// The page that names places of the code.
const PAGE: &str = "ARCHITECTURE.md";

/// The crates that the page names without their prefix `innkeeper-`.
const CRATES: [&str; 12] = [
    "admission",
    "check",
    "cli",
    "cluster",
    "core",
    "faults",
    "lab",
    "modules",
    "operator",
    "sandbox",
    "simulator",
    "toolchain",
];

/// The folders whose files and folders the page names by their paths.
const FOLDERS: [&str; 7] = ["deploy/", "docs/", "guests/", "host/", "tests/", "wit/", "xtask/"];

/// The places that the page names and that do not exist.
///
/// # Errors
/// If the page cannot be read.
pub(super) fn problems() -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(PAGE)).with_context(|| PAGE.to_owned())?;
    let missing = named(&text).filter(|(_, place)| !exists(&root(), place));
    Ok(missing.map(|(line, place)| format!("{PAGE}:{line}: there is no `{place}`")).collect())
}

/// The places that a text names in backquotes, with their lines.
fn named(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        let codes = line.split('`').skip(1).step_by(2);
        codes.filter(|code| is_place(code)).map(move |code| (index + 1, code))
    })
}

/// Whether a code names a module of a crate, or a file or folder.
fn is_place(code: &str) -> bool {
    let is_plain = |text: &str| text.bytes().all(|one| one.is_ascii_alphanumeric() || one == b'_');
    if let Some((first, rest)) = code.split_once("::") {
        return CRATES.contains(&first) && rest.split("::").all(is_plain);
    }
    // A pattern such as `docs/**` or a command is none.
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-.".contains(&byte);
    FOLDERS.iter().any(|folder| code.starts_with(folder)) && code.bytes().all(is_path)
}

/// Whether a place exists: a file, a folder, a module, or an item of a module.
fn exists(root: &Path, place: &str) -> bool {
    let Some((name, path)) = place.split_once("::") else { return root.join(place).exists() };
    let source = root.join("host").join(name).join("src");
    let mut parts: Vec<&str> = path.split("::").collect();
    // The longest path that is a file; the next part is an item of it.
    let mut item = None;
    loop {
        let module = parts.join("/");
        let file = [format!("{module}.rs"), format!("{module}/mod.rs"), "lib.rs".to_owned()]
            .into_iter()
            .take(if parts.is_empty() { 3 } else { 2 })
            .map(|file| source.join(file.trim_start_matches('/')))
            .find(|file| file.is_file());
        if let Some(file) = file {
            let Some(item) = item else { return true };
            return fs::read_to_string(file).is_ok_and(|text| text.contains(item));
        }
        match parts.pop() {
            Some(part) => item = Some(part),
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_files_are_places_and_other_code_is_not() {
        let text = "See `core::plan::plan`,\n`std::fs`, `host/core/src/plan.rs` and `Arc`,\n\
            `simulator::api`, `wit/src/verdict.rs`, `tests/loop`, `docs/**`, `deploy/crds diff`.";
        let places: Vec<_> = named(text).map(|(line, place)| format!("{line} {place}")).collect();
        let rust = ["1 core::plan::plan", "2 host/core/src/plan.rs", "3 simulator::api"];
        assert_eq!(places[..3], rust);
        assert_eq!(places[3..], ["3 wit/src/verdict.rs", "3 tests/loop"]);
    }

    #[test]
    fn place_exists_when_its_module_has_the_item() {
        for place in [
            "core::plan",
            "core::plan::plan",
            "operator::reconcile::apply",
            "host/core/src/plan.rs",
            "simulator::api::verbs::write",
            "wit/src/verdict.rs",
            "guests/sdk",
        ] {
            assert!(exists(&root(), place), "{place}");
        }
        for place in
            ["core::no_module", "core::plan::no_item", "host/core/src/none.rs", "guests/none"]
        {
            assert!(!exists(&root(), place), "{place}");
        }
    }
}
