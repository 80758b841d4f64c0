//! The files of test cases (`innkeeper test`).

use std::fs;

use innkeeper_lab::scenario::Case;

/// The longest error, in bytes.
const ERROR_BYTES_MAX: usize = 4_096;

/// Reads a case whose files have the bytes: as objects to apply, as asserts, and as requests that
/// must be denied. An error is short and names the file; a read case has steps.
pub fn fuzz_entry(data: &[u8]) {
    for name in ["00-apply.yaml", "00-assert.yaml", "00-denied.yaml"] {
        let folder = tempfile::tempdir().expect("a folder is made");
        fs::write(folder.path().join(name), data).expect("the file is written");
        match Case::read(folder.path()) {
            Ok(case) => {
                // A document of its own may name other files, which are not there.
                assert!(case.steps.len() <= 1, "{} steps in one file", case.steps.len());
                let _ = case.controllers();
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.len() <= ERROR_BYTES_MAX, "{} bytes: {text}", text.len());
                assert!(!text.is_empty());
            }
        }
    }
}
