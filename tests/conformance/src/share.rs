//! How many of how many specs pass, in words for the documentation.

use anyhow::{Context as _, Result};

use crate::control::Control;
use crate::files;
use crate::list::{List, Verdict};
use crate::report::Outcome;

/// The pages that state the share, each between a line with `<!-- conformance -->` and one with
/// `<!-- /conformance -->`.
const PAGES: [&str; 2] = ["docs/simulator.md", "docs/testing.md"];
const START: &str = "<!-- conformance -->\n";
const END: &str = "<!-- /conformance -->\n";
/// What the names of the specs have that a certified cluster must pass.
const CONFORMANCE: &str = "[Conformance]";

/// Some specs and how many of them pass on each cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All specs.
    pub all: usize,
    /// Those that pass on a real control plane without nodes.
    pub control: usize,
    /// Those of the latter that pass on the simulator too.
    pub both: usize,
    /// Those that pass on the simulator only.
    pub simulator_only: usize,
}

/// The figures of the documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// All specs.
    pub all: Count,
    /// Those that a certified cluster must pass.
    pub conformance: Count,
}

impl Share {
    /// Counts the specs of the list.
    pub fn new(list: &List, control: &Control) -> Self {
        let mut share = Self::default();
        for entry in &list.specs {
            let on_control = control.specs.get(&entry.name) == Some(&Outcome::Passed);
            let here = matches!(entry.verdict, Verdict::Passes { .. });
            share.all.add(on_control, here);
            if entry.name.contains(CONFORMANCE) {
                share.conformance.add(on_control, here);
            }
        }
        share
    }

    /// The figures as a table.
    pub fn table(&self) -> String {
        let row = |what: &str, count: Count| {
            format!(
                "| {what} | {} | {} | **{}** | {} |\n",
                count.all, count.control, count.both, count.simulator_only
            )
        };
        format!(
            "| specs | all | pass on a control plane without nodes | of these, pass on the \
             simulator | pass on the simulator only |\n|---|---|---|---|---|\n{}{}",
            row("API machinery, authentication, authorization", self.all),
            row("of these, for certified clusters: `[Conformance]`", self.conformance)
        )
    }

    /// Writes the table into the pages.
    ///
    /// # Errors
    /// If a page cannot be read or written, or has no markers.
    pub fn write(&self) -> Result<()> {
        for page in PAGES {
            let path = files::of_repository(page);
            let text = files::read(&path)?;
            let new = replaced(&text, &self.table()).with_context(|| page.to_owned())?;
            if new != text {
                files::write(&path, &new)?;
            }
        }
        Ok(())
    }

    /// The pages that state other figures.
    ///
    /// # Errors
    /// If a page cannot be read, or has no markers.
    pub fn outdated_pages(&self) -> Result<Vec<&'static str>> {
        let mut outdated = Vec::new();
        for page in PAGES {
            let text = files::read(&files::of_repository(page))?;
            if replaced(&text, &self.table()).with_context(|| page.to_owned())? != text {
                outdated.push(page);
            }
        }
        Ok(outdated)
    }
}

impl Count {
    fn add(&mut self, on_control: bool, here: bool) {
        self.all += 1;
        self.control += usize::from(on_control);
        self.both += usize::from(on_control && here);
        self.simulator_only += usize::from(here && !on_control);
    }
}

/// A page with another text between its markers.
fn replaced(page: &str, text: &str) -> Result<String> {
    let missing = "the page lacks the lines `<!-- conformance -->` and `<!-- /conformance -->`";
    let (before, rest) = page.split_once(START).context(missing)?;
    let (_, after) = rest.split_once(END).context(missing)?;
    Ok(format!("{before}{START}{text}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn share_counts_each_spec_on_both_clusters() {
        let list = "
kubernetes: 1.2.3
reasons: {r: {text: t}}
specs:
- {name: 'a [Conformance]', verdict: passes}
- {name: 'b [Conformance]', verdict: differs, reason: r}
- {name: c, verdict: skipped, reason: r}
- {name: d, verdict: passes}
";
        let list: List = serde_yaml_ng::from_str(list).unwrap();
        let specs = BTreeMap::from([
            ("a [Conformance]".to_owned(), Outcome::Passed),
            ("b [Conformance]".to_owned(), Outcome::Passed),
            ("c".to_owned(), Outcome::Skipped),
            ("d".to_owned(), Outcome::Failed),
        ]);
        let share = Share::new(&list, &Control { kubernetes: "1.2.3".to_owned(), specs });
        assert_eq!(share.all, Count { all: 4, control: 2, both: 1, simulator_only: 1 });
        assert_eq!(share.conformance, Count { all: 2, control: 2, both: 1, simulator_only: 0 });
        assert!(share.table().contains("| 4 | 2 | **1** | 1 |\n"), "{}", share.table());
    }

    #[test]
    fn only_the_text_between_the_markers_is_replaced() {
        let page = format!("before\n{START}old\n{END}after\n");
        assert_eq!(replaced(&page, "new\n").unwrap(), format!("before\n{START}new\n{END}after\n"));
        assert!(replaced("no markers\n", "new\n").is_err());
    }

    #[test]
    fn pages_state_the_share_of_the_list() {
        let share = Share::new(&List::read().unwrap(), &Control::read().unwrap());
        let outdated = share.outdated_pages().unwrap();
        assert!(outdated.is_empty(), "{outdated:?}: run `cargo xtask conformance --write`");
    }
}
