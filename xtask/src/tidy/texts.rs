//! What must not lie in the repository's files.

use std::path::Path;

use super::exceptions::Violations;
use super::files::{File, extension};
use crate::command::root;

/// Longest file, in lines. Longer ones do more than one thing.
const MAX_LINES: usize = 500;

/// Files that people write, for the rule of length.
const WRITTEN: [&str; 9] = ["rs", "go", "wit", "md", "sh", "py", "js", "mjs", "ts"];

/// Files made by tools, in which names of registries and the like are theirs, and what others have
/// yet to do.
const GENERATED: [&str; 4] =
    ["Cargo.lock", "guests/Cargo.lock", "go.sum", "host/simulator/data/texts.json"];

/// What is wrong with any of the files.
pub(super) fn problems(files: &[File]) -> Vec<String> {
    let mut problems: Vec<String> =
        files.iter().flat_map(|file| check(&file.name, &file.bytes)).collect();
    for needed in ["README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md"] {
        if !root().join(needed).is_file() {
            problems.push(format!("{needed}: is missing"));
        }
    }
    problems.sort();
    problems
}

/// The lines of a file that people write, if it is too long.
pub(super) fn too_long(name: &str, text: &str) -> Violations {
    let lines = text.lines().count();
    // A changelog grows with each change, and has its order by date.
    let is_exempt = is_generated(text) || name == "CHANGELOG.md";
    if !WRITTEN.contains(&extension(name)) || is_exempt || lines <= MAX_LINES {
        return Violations::default();
    }
    let detail = format!("{name}: {lines} lines, more than {MAX_LINES}; split it by noun");
    Violations { count: lines, details: vec![detail] }
}

/// Whether a file says in its first two lines that xtask writes it.
pub(super) fn is_generated(text: &str) -> bool {
    text.lines().take(2).any(|line| line.contains("enerated by `cargo xtask"))
}

fn check(name: &str, bytes: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return vec![format!("{name}: is not text; built things do not belong here")];
    };
    let mut problems = Vec::new();
    let extension = extension(name);
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
        assert_eq!(too_long("a.rs", &long).count, MAX_LINES + 1);
        assert_eq!(too_long("a.rs", &long[2..]), Violations::default());
        assert_eq!(too_long("a.json", &long), Violations::default());
        let generated = format!("// Generated by `cargo xtask schema`.\n{long}");
        assert_eq!(too_long("a.ts", &generated), Violations::default());
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
