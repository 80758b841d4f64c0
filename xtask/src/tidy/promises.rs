//! The documents name tests as `path/of/file.rs::name`: each must be there.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::command::root;

/// Documents that give promises, each with the tests that hold it.
const DOCUMENTS: [&str; 6] = [
    "docs/promises.md",
    "docs/security.md",
    "docs/selectors.md",
    "docs/simulator.md",
    "docs/sources.md",
    "docs/updates.md",
];

/// What is named and is not there.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for document in DOCUMENTS {
        let path = root().join(document);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let missing = named(&text).filter(|(_, file, test)| !is_there(&root().join(file), test));
        problems.extend(missing.map(|(line, file, test)| {
            format!("{document}:{line}: there is no test {test} in {file}")
        }));
    }
    Ok(problems)
}

/// The tests that a text names in backquotes: line, file, and name.
fn named(text: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    text.lines().enumerate().flat_map(|(index, line)| {
        line.split('`').skip(1).step_by(2).filter_map(move |code| {
            let (path, name) = code.split_once("::")?;
            let rust = Path::new(path).extension().is_some_and(|extension| extension == "rs");
            rust.then_some((index + 1, path, name))
        })
    })
}

/// Whether a file has a test of this name: a function, or the name of a trial.
fn is_there(file: &Path, name: &str) -> bool {
    let Ok(source) = fs::read_to_string(file) else { return false };
    source.contains(&format!("fn {name}(")) || source.contains(&format!("\"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_where_a_text_names_them() {
        let text = "It holds (`a/b.rs::one`,\nand `c.rs::two`), `std::fs` is no test.";
        let all: Vec<_> = named(text).collect();
        assert_eq!(all, [(1, "a/b.rs", "one"), (2, "c.rs", "two")]);
    }

    #[test]
    fn cited_test_is_reported_when_it_does_not_exist() {
        let here = root().join(file!());
        assert!(is_there(&here, "cited_test_is_reported_when_it_does_not_exist"));
        assert!(!is_there(&here, &["a_test_that", "_nobody_wrote"].concat()));
        assert!(!is_there(Path::new("nowhere.rs"), "x"));
    }
}
