//! Known violations of a rule, as counts that may only shrink: `xtask/src/tidy/exceptions.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};

use crate::command::root;

/// Where the counts are.
const FILE: &str = "xtask/src/tidy/exceptions.toml";

const HEAD: &str = "\
# What breaks a rule of `cargo xtask tidy` today. A count may only shrink: `cargo xtask tidy` fails
# when there is more than is listed, and when there is less. `cargo xtask tidy --lower` writes what
# is left; a line may be deleted by hand too.
";

/// The rules that have exceptions. The name is the table in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    Circles,
    Length,
    Width,
    Words,
}

impl Rule {
    const ALL: [Self; 4] = [Self::Circles, Self::Length, Self::Width, Self::Words];

    fn table(self) -> &'static str {
        match self {
            Self::Circles => "circles",
            Self::Length => "length",
            Self::Width => "width",
            Self::Words => "words",
        }
    }

    /// What is counted, for messages and the file.
    fn counted(self) -> &'static str {
        match self {
            Self::Circles => "files in import circles of a crate",
            Self::Length => "lines of a file that is too long",
            Self::Width => "lines of prose that are too wide",
            Self::Words => "words that the project does not use",
        }
    }
}

/// What breaks a rule in one place: a file, or a crate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Violations {
    pub(super) count: usize,
    /// One line each, saying where and what.
    pub(super) details: Vec<String>,
}

/// The violations of each rule, by place.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found(BTreeMap<(Rule, String), Violations>);

impl Found {
    /// Adds the violations of a place. Places without any count for nothing.
    pub(super) fn add(&mut self, rule: Rule, place: &str, violations: Violations) {
        if violations.count > 0 {
            self.0.insert((rule, place.to_owned()), violations);
        }
    }

    fn count(&self, rule: Rule, place: &str) -> usize {
        self.0.get(&(rule, place.to_owned())).map_or(0, |found| found.count)
    }
}

/// The counts of the file: by rule, then by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Exceptions(BTreeMap<(Rule, String), usize>);

/// How [`Exceptions::update`] changes counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// Only downwards.
    Lower,
    /// To what is there: for a merge of work that was done without these rules.
    Raise,
}

impl Exceptions {
    /// Reads the file; no exceptions if it is not there.
    ///
    /// # Errors
    /// If the file cannot be read or parsed.
    pub(super) fn read() -> Result<Self> {
        let path = root().join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        Self::parse(&fs::read_to_string(&path).with_context(|| path.display().to_string())?)
    }

    fn parse(text: &str) -> Result<Self> {
        let tables: BTreeMap<String, BTreeMap<String, usize>> =
            toml::from_str(text).with_context(|| format!("cannot read {FILE}"))?;
        let mut exceptions = Self::default();
        for (table, places) in tables {
            let rule = Rule::ALL.into_iter().find(|rule| rule.table() == table);
            let rule = rule.with_context(|| format!("{FILE}: no rule is called {table}"))?;
            exceptions.0.extend(places.into_iter().map(|(place, count)| ((rule, place), count)));
        }
        Ok(exceptions)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self) -> Result<()> {
        let path = root().join(FILE);
        fs::write(&path, self.print()).with_context(|| path.display().to_string())
    }

    fn print(&self) -> String {
        let mut text = HEAD.to_owned();
        for rule in Rule::ALL {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "\n# {}\n[{}]", rule.counted(), rule.table());
            for ((_, place), count) in self.0.iter().filter(|((of, _), _)| *of == rule) {
                let _ = writeln!(text, "{place:?} = {count}");
            }
        }
        text
    }

    /// What is more than listed, with all its details, and what is less.
    pub(super) fn compare(&self, found: &Found) -> Vec<String> {
        let mut problems = Vec::new();
        let places: BTreeSet<_> = self.0.keys().chain(found.0.keys()).collect();
        for key in places {
            let (rule, place) = key;
            let listed = self.0.get(key).copied().unwrap_or_default();
            let count = found.count(*rule, place);
            let what = rule.counted();
            if count > listed
                && let Some(violations) = found.0.get(key)
            {
                let number = if listed == 0 {
                    format!("{count}")
                } else {
                    format!("{count} instead of the listed {listed}")
                };
                problems.push(format!("{place}: {what}: {number}"));
                problems.extend(violations.details.iter().map(|detail| format!("  {detail}")));
            } else if count < listed {
                problems.push(format!(
                    "{place}: {what}: {count}, {FILE} lists {listed}; run `cargo xtask tidy --lower`"
                ));
            }
        }
        problems
    }

    /// The counts as `found` has them.
    pub(super) fn update(&self, found: &Found, update: Update) -> Self {
        let counts = found.0.iter().map(|(key, violations)| {
            let listed = self.0.get(key).copied().unwrap_or_default();
            let count = match update {
                Update::Lower => violations.count.min(listed),
                Update::Raise => violations.count,
            };
            (key.clone(), count)
        });
        Self(counts.filter(|(_, count)| *count > 0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(places: &[(Rule, &str, usize)]) -> Found {
        let mut found = Found::default();
        for (rule, place, count) in places {
            let details = vec![format!("{place}:1: a detail")];
            found.add(*rule, place, Violations { count: *count, details });
        }
        found
    }

    #[test]
    fn count_is_refused_when_it_rises_or_is_lower_than_listed() {
        let listed = Exceptions::parse("[words]\n\"a.md\" = 2\n\"b.md\" = 2\n\"gone.md\" = 1\n");
        let listed = listed.unwrap();
        let same =
            [(Rule::Words, "a.md", 2), (Rule::Words, "b.md", 2), (Rule::Words, "gone.md", 1)];
        assert_eq!(listed.compare(&found(&same)), [""; 0]);
        let other = [(Rule::Words, "a.md", 3), (Rule::Words, "b.md", 1), (Rule::Width, "b.md", 1)];
        let problems = listed.compare(&found(&other));
        assert_eq!(problems.len(), 6, "{problems:#?}");
        assert!(problems[0].starts_with("b.md: lines of prose that are too wide: 1"));
        assert!(problems[2].contains("3 instead of the listed 2"));
        assert!(problems[4].contains("1, xtask/src/tidy/exceptions.toml lists 2"));
        assert!(problems[5].starts_with("gone.md"));
    }

    #[test]
    fn update_lowers_and_drops_and_raises_only_on_request() {
        let listed = Exceptions::parse("[length]\n\"a\" = 600\n\"b\" = 700\n\"c\" = 5\n").unwrap();
        let found =
            found(&[(Rule::Length, "a", 550), (Rule::Length, "b", 800), (Rule::Words, "d", 1)]);
        let lowered = Exceptions::parse("[length]\na = 550\nb = 700").unwrap();
        assert_eq!(listed.update(&found, Update::Lower), lowered);
        let raised = Exceptions::parse("[length]\na = 550\nb = 800\n[words]\nd = 1").unwrap();
        assert_eq!(listed.update(&found, Update::Raise), raised);
        assert_eq!(Exceptions::parse(&raised.print()).unwrap(), raised);
    }
}
