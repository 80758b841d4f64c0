//! Results of a run against the list.

use std::collections::BTreeMap;
use std::fmt;

use crate::list::{List, Verdict};
use crate::report::{Outcome, SpecResult};

/// How many lines of a failure are shown.
const SHOWN_LINES: usize = 20;

/// A result that the list does not expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// The name of the spec.
    pub name: String,
    /// What is unexpected.
    pub what: String,
    /// Whether the spec was expected to pass: a repetition may help.
    pub is_failure: bool,
}

impl fmt::Display for Deviation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.name, self.what)
    }
}

/// The results that the list does not expect, by name: in either direction.
pub fn compare(list: &List, results: &BTreeMap<String, SpecResult>) -> Vec<Deviation> {
    let deviation = |(name, result): (&String, &SpecResult)| {
        let expected = list.verdict(name);
        let passes_here = result.outcome == Outcome::Passed;
        let (what, is_failure) = match expected {
            Some(Verdict::Passes { .. }) if passes_here => return None,
            Some(Verdict::Passes { .. }) => (failure(result), true),
            Some(Verdict::Differs { reason, .. }) if passes_here => {
                let advice = "run `cargo xtask conformance --write`";
                (format!("passes now, though the list says `{reason}`: {advice}"), false)
            }
            // What the control plane cannot pass either, may pass here by chance.
            Some(Verdict::Differs { .. } | Verdict::Skipped { .. }) => return None,
            None => (format!("is not in the list; it ended so: {:?}", result.outcome), false),
        };
        Some(Deviation { name: name.clone(), what, is_failure })
    };
    results.iter().filter_map(deviation).collect()
}

/// The place and the first lines of a failure.
fn failure(result: &SpecResult) -> String {
    let verb = if result.outcome == Outcome::Skipped { "skipped itself" } else { "failed" };
    let lines: Vec<&str> = result.message.lines().take(SHOWN_LINES).collect();
    format!("{verb} after {} s, at {}: {}", result.seconds, result.place, lines.join("\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        let text = "
kubernetes: 1.2.3
reasons: {quotas: {text: has none}, node: {text: needs one}}
specs:
- {name: differs, verdict: differs, reason: quotas}
- {name: passes, verdict: passes}
- {name: skipped, verdict: skipped, reason: node}
";
        serde_yaml_ng::from_str(text).unwrap()
    }

    fn one(name: &str, outcome: Outcome) -> Vec<Deviation> {
        let lines: Vec<_> = (0..30).map(|line| format!("line {line}")).collect();
        let message = lines.join("\n");
        let place = "e2e/a.go:7".to_owned();
        let result = SpecResult { outcome, message, place, seconds: 3 };
        compare(&list(), &BTreeMap::from([(name.to_owned(), result)]))
    }

    #[test]
    fn expected_results_are_no_deviation() {
        for (name, outcome) in [
            ("passes", Outcome::Passed),
            ("differs", Outcome::Failed),
            ("differs", Outcome::Skipped),
            ("skipped", Outcome::Failed),
            ("skipped", Outcome::Passed),
        ] {
            assert_eq!(one(name, outcome), [], "{name} {outcome:?}");
        }
    }

    #[test]
    fn failure_of_a_passing_spec_is_shown_with_its_place_and_first_lines() {
        let found = one("passes", Outcome::Failed);
        assert!(found[0].is_failure);
        let text = found[0].to_string();
        assert!(text.starts_with("passes: failed after 3 s, at e2e/a.go:7: line 0\n"), "{text}");
        assert!(text.contains("line 19") && !text.contains("line 20"), "{text}");
    }

    #[test]
    fn passing_spec_that_skips_itself_is_a_deviation() {
        let found = one("passes", Outcome::Skipped);
        assert!(found[0].what.starts_with("skipped itself"), "{found:?}");
    }

    #[test]
    fn expected_difference_that_passes_is_a_deviation() {
        let found = one("differs", Outcome::Passed);
        assert!(!found[0].is_failure && found[0].what.starts_with("passes now"), "{found:?}");
    }

    #[test]
    fn spec_that_the_list_lacks_is_a_deviation_whatever_its_result() {
        for outcome in [Outcome::Passed, Outcome::Failed, Outcome::Skipped] {
            assert_eq!(one("new", outcome).len(), 1);
        }
    }
}
