//! Terminal output for users: pages of `docs/screens`, which are written by the scenarios that they
//! show.
//!
//! A scenario describes its steps and shows the output of commands. At its end the page is compared
//! to the one in the tree, without values that differ in each run (ages, addresses, the ends of
//! names), so that an outdated page fails the scenario. `cargo xtask screens` writes the pages
//! again.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result, bail};
use regex::Regex;

use crate::NodeStage;
use crate::stage::root;

/// If set, pages are written instead of compared.
const WRITE: &str = "INNKEEPER_SCREENS";

/// A page that is being written.
pub struct Screens<'a> {
    stage: &'a NodeStage,
    name: &'static str,
    text: String,
}

impl<'a> Screens<'a> {
    /// The page `docs/screens/<name>.md` with this title.
    pub fn new(stage: &'a NodeStage, name: &'static str, title: &str) -> Self {
        let text = format!("# {title}\n");
        Self { stage, name, text }
    }

    /// Says what is done, or what is to be seen.
    pub fn say(&mut self, words: &str) {
        // Writing into a String cannot fail.
        let _ = write!(self.text, "\n{words}\n");
    }

    /// Runs a command as a user types it, in a folder that has `deploy`; shows it and what it
    /// prints, also if it fails. Gives what it printed.
    ///
    /// # Errors
    /// If the command does not end in time, or prints no UTF-8.
    pub async fn show(&mut self, line: &str) -> Result<String> {
        let shell = self.stage.shell(&format!("exec 2>&1\n{line}"));
        let mut shell = tokio::process::Command::from(shell);
        let output = shell.kill_on_drop(true).output();
        let output = tokio::time::timeout(crate::stage::SOON, output)
            .await
            .with_context(|| format!("{line:?} does not end"))??;
        let printed = String::from_utf8(output.stdout)?;
        self.shown(line, &printed);
        Ok(printed)
    }

    /// Shows a command that has been run and what it printed.
    pub fn shown(&mut self, line: &str, printed: &str) {
        let lines: Vec<_> = printed.lines().map(str::trim_end).collect();
        let screen = format!("$ {}\n{}", line.replace('\n', "\n> "), lines.join("\n"));
        let _ = write!(self.text, "\n```text\n{}\n```\n", screen.trim_end());
    }

    /// Writes the page, or compares it to the one in the tree.
    ///
    /// # Errors
    /// The first line that is another.
    pub fn end(self) -> Result<()> {
        let text = format!(
            "{}\n---\nWritten by `cargo xtask screens`, and compared by `cargo xtask test`.\n",
            self.text
        );
        let path = root().join("docs/screens").join(format!("{}.md", self.name));
        if std::env::var_os(WRITE).is_some() {
            return fs::write(&path, text).with_context(|| path.display().to_string());
        }
        let kept = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let (now, then) = (without_chance(&text)?, without_chance(&kept)?);
        let mut lines = then.lines();
        for line in now.lines() {
            let kept = lines.next().unwrap_or_default();
            if line != kept {
                bail!(
                    "{} says {kept:?}, but it is {line:?}: if that is meant, `cargo xtask screens` \
                     writes the page again. All of it:\n{text}",
                    path.display()
                );
            }
        }
        if lines.next().is_some() {
            bail!("{} goes on where the scenario ends", path.display());
        }
        Ok(())
    }
}

/// A page without what differs each time: widths of columns, ages and times, addresses, node ports,
/// digests, versions, the ends of generated names, and in which order things happen to end.
fn without_chance(text: &str) -> Result<String> {
    let rules = [
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r"\d{10}-\d{8}T\d{6}Z", "BACKUP"),
        (r"PostgreSQL \d+\.\d+ .*", "PostgreSQL VERSION"),
        (r"Module [a-z]+ is gone", "Module NAME is gone"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
        (r"\d{1,3}(\.\d{1,3}){3}", "ADDRESS"),
        (r":3\d{4}\b", ":PORT"),
        (r"-[a-z0-9]{5,10}-[a-z0-9]{5}\b", "-ENDS"),
        (r"\b[0-9a-f]{12,64}\b", "DIGEST"),
        (r"\b(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?m?s)\b", "AGE"),
        (r"\b(\d+d)?(\d+h)?\d+m\b", "AGE"),
        (r"(?i)(resourceversion|uid|generation):.*", "$1"),
        (r" {2,}", " "),
        (r"-{4,}", "----"),
    ];
    let mut text = text.to_owned();
    for (rule, name) in rules {
        text = Regex::new(rule)?.replace_all(&text, name).into_owned();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_compared_without_values_that_differ_in_each_run() {
        let same = |one: &str, two: &str| {
            without_chance(one).map(|one| without_chance(two).is_ok_and(|two| one == two))
        };
        for (one, two) in [
            (
                "production-6b7c9d-x2x4z   1/1   Running   0   9s",
                "production-7f55d8c9b-abcde 1/1 Running 0 2m13s",
            ),
            ("5432:31234/TCP", "5432:30001/TCP"),
            ("at 2026-11-22T04:00:00Z", "at 2027-01-02T14:10:01.123456Z"),
            ("10.96.0.12", "10.96.112.1"),
            ("PostgreSQL 15.18 (Debian) on x86_64", "PostgreSQL 15.9 on aarch64"),
        ] {
            assert!(same(one, two).unwrap(), "{one} and {two}");
        }
        for (one, two) in [("1/1", "0/1"), ("Published", "Not Published"), ("5432/TCP", "5433/TCP")]
        {
            assert!(!same(one, two).unwrap(), "{one} and {two}");
        }
    }
}
