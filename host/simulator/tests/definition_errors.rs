//! The definitions of this repository, which real API servers accept.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::path::{Path, PathBuf};

use innkeeper_simulator::definition_errors;

/// The files `crd.json` below a folder.
fn definitions(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with("node_modules") {
            definitions(&path, found);
        } else if path.ends_with("crd.json") {
            found.push(path);
        }
    }
}

#[test]
fn definitions_of_the_guests_have_no_errors() {
    let mut found = Vec::new();
    definitions(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests"), &mut found);
    assert!(found.len() > 10, "{found:?}");
    for path in found {
        let definition = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(definition_errors(&definition), Vec::<String>::new(), "{}", path.display());
    }
}
