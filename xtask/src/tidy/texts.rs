//! What must not lie in the repository's files.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::command::{line, root};

/// Longest file, in lines. Longer ones do more than one thing.
const MAX_LINES: usize = 800;

/// Files that may be longer, each with its reason.
const LONGER: [(&str, &str); 0] = [];

/// Files that people write, for the rule of length.
const WRITTEN: [&str; 8] = ["rs", "go", "wit", "md", "sh", "py", "js", "mjs"];

/// Files made by tools, in which names of registries and the like are theirs, and what others have yet to do.
const GENERATED: [&str; 4] =
    ["Cargo.lock", "guests/Cargo.lock", "go.sum", "host/simulator/data/texts.json"];

/// What is wrong with any file that git knows or would take up.
pub(super) fn problems() -> Result<Vec<String>> {
    let mut command = std::process::Command::new("git");
    command.current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let output = command.output().with_context(|| format!("cannot run `{}`", line(&command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", line(&command), String::from_utf8_lossy(&output.stderr));
    }
    let mut problems = Vec::new();
    for name in String::from_utf8_lossy(&output.stdout).split('\0').filter(|name| !name.is_empty())
    {
        let path = root().join(name);
        // Deleted, but not yet from the index.
        if !path.is_file() {
            continue;
        }
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        problems.extend(check(name, &bytes));
    }
    for needed in ["README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md"] {
        if !root().join(needed).is_file() {
            problems.push(format!("{needed}: is missing"));
        }
    }
    problems.sort();
    Ok(problems)
}

fn check(name: &str, bytes: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return vec![format!("{name}: is not text; built things do not belong here")];
    };
    let mut problems = Vec::new();
    let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default();
    let lines = text.lines().count();
    let may_be_longer = LONGER.iter().any(|(longer, _)| *longer == name);
    if WRITTEN.contains(&extension) && lines > MAX_LINES && !may_be_longer {
        problems.push(format!("{name}: {lines} lines, more than {MAX_LINES}; split it by noun"));
    }
    if GENERATED.iter().any(|generated| name.ends_with(generated)) {
        return problems;
    }
    let (registries, paths, marks) = (registries(), machine_paths(), marks());
    for (number, content) in text.lines().enumerate() {
        let mut complain = |what: String| problems.push(format!("{name}:{}: {what}", number + 1));
        for registry in &registries {
            if content.contains(registry.as_str()) {
                complain(format!("names the package registry {registry}"));
            }
        }
        for path in &paths {
            if holds_path(content, path) {
                complain(format!("names a path of one machine, {path}"));
            }
        }
        for mark in &marks {
            if holds_word(content, mark) {
                complain(format!("{mark}: do it, or open an issue"));
            }
        }
        if content.ends_with([' ', '\t']) && extension != "md" {
            complain("ends in blanks".to_owned());
        }
    }
    if extension == "md" {
        problems.extend(broken_links(name, text));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        problems.push(format!("{name}: the last line has no newline"));
    }
    problems
}

// Joined here from parts, so that this file keeps its own rules.

fn registries() -> Vec<String> {
    [["crates", "io"], ["pypi", "org"], ["npmjs", "org"], ["npmjs", "com"], ["rubygems", "org"]]
        .iter()
        .map(|parts| parts.join("."))
        .chain([["proxy", "golang", "org"].join("."), ["sum", "golang", "org"].join(".")])
        .chain([["files", "pythonhosted", "org"].join("."), ["deb", "debian", "org"].join(".")])
        .collect()
}

fn machine_paths() -> Vec<String> {
    ["root", "home", "Users", "work"].iter().map(|folder| format!("/{folder}/")).collect()
}

fn marks() -> Vec<String> {
    [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].iter().map(|parts| parts.concat()).collect()
}

/// Whether `line` holds the absolute path: not as the middle of another, as in `a/root/b`.
fn holds_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at].ends_with(|c: char| {
            c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | ')' | '~' | '*' | '>')
        })
    })
}

fn holds_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        !line[..at].ends_with(inside) && !line[at + word.len()..].starts_with(inside)
    })
}

/// Links of a Markdown file to files that are not there.
fn broken_links(name: &str, text: &str) -> Vec<String> {
    let folder = root().join(name).parent().map(Path::to_owned).unwrap_or_default();
    let mut problems = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let Some(end) = rest.find([')', ' ']) else { continue };
            let target = rest[..end].split('#').next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains("://");
            if !elsewhere && !folder.join(target).exists() {
                problems.push(format!("{name}:{}: {target} is not there", number + 1));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_built_things_are_found() {
        let long = "x\n".repeat(MAX_LINES + 1);
        assert_eq!(check("a.rs", long.as_bytes()).len(), 1);
        assert!(check("a.json", long.as_bytes()).is_empty());
        assert_eq!(check("a.wasm", &[0, 159, 146, 150]).len(), 1);
    }

    #[test]
    fn registries_paths_and_marks_are_found_with_their_line() {
        let text = format!(
            "fine\nsee {}\nin {}x\n// {} later\n",
            registries()[0],
            machine_paths()[0],
            marks()[0]
        );
        let problems = check("a.rs", text.as_bytes());
        assert_eq!(problems.len(), 3, "{problems:?}");
        for (problem, place) in problems.iter().zip(["a.rs:2:", "a.rs:3:", "a.rs:4:"]) {
            assert!(problem.starts_with(place), "{problem}");
        }
    }

    #[test]
    fn words_and_paths_are_not_found_inside_others() {
        let word = marks()[0].clone();
        assert!(!holds_word(&format!("A{word}"), &word));
        assert!(holds_word(&format!("({word})"), &word));
        let path = machine_paths()[0].clone();
        assert!(!holds_path(&format!("tree{path}x"), &path));
        assert!(holds_path(&format!("\"{path}x"), &path));
    }

    #[test]
    fn links_to_absent_files_are_found() {
        let text = "[a](LICENSE) [b](nowhere.md#part) [c](https://x.y/z) [d](#part)\n";
        assert_eq!(check("a.md", text.as_bytes()), ["a.md:1: nowhere.md is not there"]);
    }
}
