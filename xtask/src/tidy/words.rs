//! Words that the project does not use: `xtask/src/tidy/words.toml`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use regex::Regex;
use serde::Deserialize;

use super::exceptions::Violations;
use super::files::extension;
use super::prose::Fences;
use super::texts::is_generated;

const LIST: &str = include_str!("words.toml");

/// The files that people write. JSON is data: recorded responses and golden files.
const CHECKED: [&str; 13] =
    ["rs", "md", "yaml", "yml", "toml", "go", "py", "ts", "js", "mjs", "sh", "wit", "proto"];

/// Files and folders that keep their words: a released contract never changes, the definitions are
/// checked where their Rust types are, and the list has to name the words.
const UNCHECKED: [&str; 3] = ["wit/released/", "deploy/crds/", "xtask/src/tidy/words.toml"];

/// Whether the words of a file are checked.
pub(super) fn are_checked_in(name: &str, text: &str) -> bool {
    CHECKED.contains(&extension(name))
        && !UNCHECKED.iter().any(|unchecked| name.starts_with(unchecked))
        && !is_generated(text)
}

#[derive(Deserialize)]
struct List {
    word: Vec<Entry>,
}

/// Words with the same replacement.
#[derive(Deserialize)]
struct Entry {
    words: Vec<String>,
    instead: String,
    reason: Option<String>,
}

/// The words, as one pattern.
pub(super) struct Words {
    pattern: Regex,
    /// A test as a page cites it: `path/of/file.rs::name`.
    citation: Regex,
    /// What to write instead and why, by word in lower case.
    advice: BTreeMap<String, String>,
}

impl Words {
    /// Those of the project.
    ///
    /// # Errors
    /// If the list is malformed.
    pub(super) fn of_project() -> Result<Self> {
        Self::parse(LIST).context("xtask/src/tidy/words.toml")
    }

    fn parse(text: &str) -> Result<Self> {
        let list: List = toml::from_str(text)?;
        let mut advice = BTreeMap::new();
        for entry in list.word {
            let reason = entry.reason.as_deref().unwrap_or("archaic or literary");
            let advised = format!("write \"{}\" ({reason})", entry.instead);
            advice.extend(entry.words.into_iter().map(|word| (word, advised.clone())));
        }
        // Of two words with one beginning, the longer one.
        let mut all: Vec<String> = advice.keys().map(|word| regex::escape(word)).collect();
        all.sort_by_key(|word| std::cmp::Reverse(word.len()));
        let pattern = Regex::new(&format!("(?i){}", all.join("|")))?;
        Ok(Self { pattern, citation: Regex::new(r"`[^`\s]+\.rs::[^`]+`")?, advice })
    }

    /// Those in a file. In Markdown not in blocks of code, in names of cited tests, which count in
    /// the files of the tests, and in table columns headed `old`.
    pub(super) fn find(&self, name: &str, text: &str) -> Violations {
        let mut violations = Violations::default();
        let is_page = extension(name) == "md";
        let mut fences = Fences::default();
        let mut old_column = OldColumn::default();
        for (index, line) in text.lines().enumerate() {
            if is_page && fences.hold(line) {
                continue;
            }
            let mut checked = Cow::Borrowed(line);
            if is_page {
                checked = Cow::Owned(self.citation.replace_all(&old_column.blank(line), "").into());
            }
            for word in self.in_line(&checked) {
                violations.count += 1;
                let advice = self.advice.get(&word.to_lowercase()).map_or("", String::as_str);
                violations.details.push(format!("{name}:{}: `{word}`: {advice}", index + 1));
            }
        }
        violations
    }

    fn in_line<'a>(&self, line: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.pattern.find_iter(line);
        found.filter(|word| is_whole(line, word.start(), word.end())).map(|word| word.as_str())
    }
}

/// The column of a Markdown table that lists old names, for users who search for them.
#[derive(Default)]
struct OldColumn {
    in_table: bool,
    column: Option<usize>,
}

impl OldColumn {
    /// The next line of the page, without the cell of that column.
    fn blank<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        if !line.starts_with('|') {
            *self = Self::default();
            return line.into();
        }
        let mut cells: Vec<&str> = line.split('|').collect();
        if !self.in_table {
            self.in_table = true;
            self.column = cells.iter().position(|cell| cell.trim() == "old");
        }
        if let Some(cell) = self.column.and_then(|column| cells.get_mut(column)) {
            *cell = "";
        }
        cells.join("|").into()
    }
}

/// Whether a word stands for itself in text, or is a part of a name: `the_word`, `TheWord`.
fn is_whole(line: &str, start: usize, end: usize) -> bool {
    let (before, after) = (line[..start].chars().next_back(), line[end..].chars().next());
    let word = &line[start..end];
    let begins = match before {
        Some(char) if char.is_alphanumeric() => {
            char.is_lowercase() && word.starts_with(char::is_uppercase)
        }
        _ => true,
    };
    let ends = match after {
        Some(char) if char.is_alphanumeric() => {
            char.is_uppercase() && word.ends_with(char::is_lowercase)
        }
        _ => true,
    };
    begins && ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let list = "[[word]]\nwords = [\"frob\", \"by frob of\"]\ninstead = \"use\"\n\
            [[word]]\nwords = [\"quux\"]\ninstead = \"it\"\nreason = \"not ours\"\n";
        Words::parse(list).unwrap()
    }

    #[test]
    fn planted_word_is_found_with_its_line_and_replacement() {
        let found = words().find("a.rs", "fn a() {}\n// It will frob, by frob of quux.\n");
        assert_eq!(found.count, 3);
        assert_eq!(found.details[0], "a.rs:2: `frob`: write \"use\" (archaic or literary)");
        assert_eq!(found.details[1], "a.rs:2: `by frob of`: write \"use\" (archaic or literary)");
        assert_eq!(found.details[2], "a.rs:2: `quux`: write \"it\" (not ours)");
    }

    #[test]
    fn words_are_checked_where_people_write_and_not_in_released_or_generated_files() {
        for name in ["a.rs", "a.md", "deploy/base/roles.yaml", "a/Cargo.toml", "wit/guest.wit"] {
            assert!(are_checked_in(name, ""), "{name}");
        }
        let released = "wit/released/0.1.0/guest.wit";
        for name in ["a.json", "Cargo.lock", "deploy/crds/a.yaml", released] {
            assert!(!are_checked_in(name, ""), "{name}");
        }
        assert!(!are_checked_in("a.ts", "// Generated by `cargo xtask schema`; do not edit.\n"));
    }

    #[test]
    fn words_in_names_are_found_and_parts_of_words_are_not() {
        let words = words();
        for line in ["do_frob()", "DoFrob", "frobIt", "Frob", "\"frob\""] {
            assert_eq!(words.in_line(line).count(), 1, "{line}");
        }
        for line in ["frobs", "afrob", "Frobs", "frob2"] {
            assert_eq!(words.in_line(line).count(), 0, "{line}");
        }
    }

    #[test]
    fn blocks_of_code_in_pages_are_left_out() {
        let text = "```\nfrob\n```\nfrob\n";
        assert_eq!(words().find("a.md", text).count, 1);
        assert_eq!(words().find("a.rs", text).count, 2);
    }

    #[test]
    fn names_of_cited_tests_in_pages_are_left_out() {
        let text = "It holds (`a/b.rs::frob_works`, `frob`).\n";
        assert_eq!(words().find("a.md", text).count, 1);
        assert_eq!(words().find("a.rs", text).count, 2);
    }

    #[test]
    fn column_of_old_names_in_a_table_is_left_out() {
        let table = "| what | old | new |\n|---|---|---|\n| frob | `frob`, `frob` | frob |\n";
        assert_eq!(words().find("a.md", table).count, 2);
        let other = "| what | before |\n|---|---|\n| it | frob |\n";
        assert_eq!(words().find("a.md", &format!("{table}\n{other}")).count, 3);
    }

    #[test]
    fn list_of_the_project_can_be_read() {
        assert!(Words::of_project().unwrap().advice.len() > 20);
    }
}
