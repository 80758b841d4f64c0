//! Who may write to terminals, logs and YAML: texts of guests reach people by one way only, which
//! shows what is not visible as its code.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::command::root;

/// Words of Rust sources under `host/`, each with why it is bound and the files that may hold it.
const BOUND: [(&str, &str, &[&str]); 6] = [
    (
        "stdout()",
        "prints by host/cli/src/out.rs only",
        &[
            "host/cli/src/out.rs",
            // Asks how large the terminal is.
            "host/cli/src/demo/screen.rs",
            // The compiling child hands its artifact to its parent.
            "host/sandbox/src/child.rs",
            "host/sandbox/tests/compile.rs",
            // Prints a definition of this repository.
            "host/modules/examples/crd.rs",
        ],
    ),
    (
        "stderr()",
        "complains by host/cli/src/out.rs only",
        &[
            "host/cli/src/out.rs",
            "host/cli/src/logs.rs",
            "host/sandbox/src/child.rs",
            "host/sandbox/tests/compile.rs",
        ],
    ),
    ("fmt::layer", "logs by host/cli/src/logs.rs only", &["host/cli/src/logs.rs"]),
    (
        "Commands(",
        "gives a terminal commands by host/cli/src/demo/screen.rs only",
        &["host/cli/src/out.rs", "host/cli/src/demo/screen.rs"],
    ),
    ("Document::built_in", "prints documents by the serialiser only", &["host/cli/src/main.rs"]),
    (
        "serde_yaml_ng::to_",
        "writes YAML by host/cli/src/document.rs only",
        &[
            "host/cli/src/document.rs",
            // A definition of this repository.
            "host/modules/src/crd.rs",
            // For people: each line is made visible.
            "host/check/src/trace.rs",
            // Answers of the simulated API server.
            "host/simulator/src/api/dispatch.rs",
            // What scenarios compare, and write into a person's own files.
            "host/lab/src/scenario/matching.rs",
        ],
    ),
];

/// Which files write by another way.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut folders = vec![root().join("host")];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                problems.extend(check(path.strip_prefix(root()).unwrap_or(&path), &text));
            }
        }
    }
    problems.sort();
    Ok(problems)
}

fn check(file: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (word, why, files) in BOUND {
            if line.contains(word) && !files.iter().any(|known| file == Path::new(known)) {
                problems.push(format!("{}:{}: `{word}`: {why}", file.display(), number + 1));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_way_to_print_is_found_with_its_line() {
        let text = "fn a() {\n    let _ = writeln!(io::stdout().lock(), \"{name}\");\n}\n";
        let problems = check(Path::new("host/cli/src/push.rs"), text);
        assert_eq!(
            problems,
            ["host/cli/src/push.rs:2: `stdout()`: prints by host/cli/src/out.rs only"]
        );
        assert!(check(Path::new("host/cli/src/out.rs"), text).is_empty());
        let yaml = "let text = serde_yaml_ng::to_string(&role)?;";
        assert_eq!(check(Path::new("host/cli/src/rbac.rs"), yaml).len(), 1);
    }

    #[test]
    fn files_that_may_write_are_there_and_do() {
        for (word, _, files) in BOUND {
            for file in files {
                let text = fs::read_to_string(root().join(file)).unwrap();
                assert!(text.contains(word), "{file} does not hold `{word}`: take it off the list");
            }
        }
    }
}
