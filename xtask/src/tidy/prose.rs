//! Prose of pages and Rust comments wraps at 100 columns.

use anyhow::Result;
use regex::Regex;

use super::exceptions::Violations;
use super::files::extension;

/// Widest line, in characters.
const MAX_WIDTH: usize = 100;

/// Blocks of code between fences.
#[derive(Default)]
pub(super) struct Fences {
    inside: bool,
}

impl Fences {
    /// Whether the next line is a fence, or between two.
    pub(super) fn hold(&mut self, line: &str) -> bool {
        let is_fence = line.trim_start().starts_with("```");
        self.inside ^= is_fence;
        self.inside || is_fence
    }
}

/// Finds lines that are too wide.
pub(super) struct Prose {
    /// Where a link leads, a bare address, and a cited test: none can be wrapped.
    address: Regex,
}

impl Prose {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// If a pattern is malformed.
    pub(super) fn new() -> Result<Self> {
        Ok(Self { address: Regex::new(r"\]\([^)]*\)|https?://[^\s)>]*|`[^`\s]+\.rs::[^`]+`")? })
    }

    /// Lines of prose that are too wide: not tables, blocks of code, addresses of links, or cited
    /// tests.
    pub(super) fn wide_lines(&self, name: &str, text: &str) -> Violations {
        let mut violations = Violations::default();
        let mut fences = Fences::default();
        for (index, line) in text.lines().enumerate() {
            let Some(prose) = prose(name, line) else { continue };
            if fences.hold(prose) || prose.trim_start().starts_with('|') {
                continue;
            }
            let width = self.address.replace_all(line, "").chars().count();
            if width > MAX_WIDTH {
                violations.count += 1;
                let detail = format!("{name}:{}: {width} columns, at most {MAX_WIDTH}", index + 1);
                violations.details.push(detail);
            }
        }
        violations
    }
}

/// The prose of a line: all of a page, the comment lines of Rust.
fn prose<'a>(name: &str, line: &'a str) -> Option<&'a str> {
    if extension(name) == "md" {
        return Some(line);
    }
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide_lines(name: &str, text: &str) -> Violations {
        Prose::new().unwrap().wide_lines(name, text)
    }

    #[test]
    fn wide_lines_of_prose_are_found_with_their_line() {
        let wide = "x".repeat(MAX_WIDTH);
        let text = format!("short\n    // {wide}\nlet a = {wide};\n//! {wide}\n");
        let found = wide_lines("a.rs", &text);
        assert_eq!(found.count, 2);
        assert_eq!(found.details[0], "a.rs:2: 107 columns, at most 100");
        assert!(found.details[1].starts_with("a.rs:4: "));
        assert_eq!(wide_lines("a.md", &text).count, 3);
        assert_eq!(wide_lines("a.md", &format!("{wide}\n")), Violations::default());
    }

    #[test]
    fn tables_code_addresses_and_cited_tests_may_be_wide() {
        let wide = "x".repeat(MAX_WIDTH);
        let page =
            format!("| {wide} |\n[here]({wide}) and https://a.b/{wide}\n```\n a {wide}\n```\n");
        assert_eq!(wide_lines("a.md", &page).count, 0);
        assert_eq!(wide_lines("a.md", &format!("It holds (`a/b.rs::{wide}`).\n")).count, 0);
        let comment = format!("/// ```\n/// {wide}\n/// ```\n/// | {wide} |\n/// {wide}\n");
        assert_eq!(wide_lines("a.rs", &comment).details[0], "a.rs:5: 104 columns, at most 100");
    }
}
