//! The expected result of every spec on the simulator: `specs.yaml`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::files;
use crate::report::{Outcome, Spec, SpecResult};

/// The file of the list, in the folder of this crate.
const FILE: &str = "specs.yaml";
/// What stands before the list.
const HEADER: &str = "\
# Every spec of Kubernetes' API machinery and its expected result on the simulator.
# passes: it passes. differs: it fails, for a reason of the simulator, though it passes on a real
# control plane. skipped: it does not run, since a real control plane without nodes fails it too.
# `cargo xtask conformance --write` rewrites the results and keeps the reasons.
";
/// The reason of a spec for which nobody has written one. The list must not use it.
pub(crate) const UNEXPLAINED: &str = "unexplained";
/// Seconds from which the list notes how long a spec takes, so that it starts early.
const NOTABLE_SECONDS: u64 = 5;
/// Seconds from which a spec that differs is slow.
const SLOW_SECONDS: u64 = 45;

/// The list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The version of Kubernetes whose specs are listed.
    pub kubernetes: String,
    /// The reasons of the specs that differ or are skipped, by name.
    pub reasons: BTreeMap<String, Reason>,
    /// The specs, sorted by name.
    pub specs: Vec<Entry>,
}

/// Why specs differ or are skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The reason in words.
    pub text: String,
    /// The number of the known difference in docs/simulator.md, which a reason of a spec that
    /// differs must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<u32>,
}

/// A spec of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The name of the spec.
    pub name: String,
    /// Its expected result.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The expected result of a spec on the simulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "camelCase")]
pub enum Verdict {
    /// The spec passes.
    Passes {
        /// About how many seconds a notably long spec takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u64>,
    },
    /// The spec fails on the simulator and passes on a real control plane.
    Differs {
        /// The name of a reason.
        reason: String,
        /// Whether the spec takes so long to fail that the test suite leaves it out.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        slow: bool,
    },
    /// The spec does not run: a real control plane without nodes does not pass it either.
    Skipped {
        /// The name of a reason.
        reason: String,
    },
}

impl Verdict {
    /// The name of the reason, of a spec that does not pass.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Passes { .. } => None,
            Self::Differs { reason, .. } | Self::Skipped { reason } => Some(reason),
        }
    }
}

impl List {
    /// Reads the file.
    ///
    /// # Errors
    /// If there is none, or it is malformed.
    pub fn read() -> Result<Self> {
        serde_yaml_ng::from_str(&files::read(&files::of_crate(FILE))?)
            .with_context(|| format!("reading {FILE}"))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self) -> Result<()> {
        let text = serde_yaml_ng::to_string(self)?;
        files::write(&files::of_crate(FILE), &format!("{HEADER}{text}"))
    }

    /// The expected result of a spec.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.specs.iter().find(|entry| entry.name == name).map(|entry| &entry.verdict)
    }

    /// What is wrong with the list: specs that it lacks or that the program lacks, reasons that do
    /// not exist or name no known difference, and verdicts that the real control plane contradicts.
    pub fn problems(&self, specs: &[Spec], control: &Control, kubernetes: &str) -> Vec<String> {
        let mut problems = Vec::new();
        for (what, version) in
            [("specs.yaml", &self.kubernetes), ("control.json", &control.kubernetes)]
        {
            if version != kubernetes {
                problems.push(format!(
                    "{what} is of Kubernetes {version}, and the specs are of {kubernetes}; run \
                     `cargo xtask conformance --control --write`, then without `--control`"
                ));
            }
        }
        let known: BTreeSet<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let listed: BTreeSet<&str> = self.specs.iter().map(|entry| entry.name.as_str()).collect();
        for name in known.difference(&listed) {
            problems.push(format!("specs.yaml lacks the spec `{name}`"));
        }
        for name in listed.difference(&known) {
            problems.push(format!("specs.yaml has `{name}`, which is no spec of the program"));
        }
        if !self.specs.is_sorted_by(|a, b| a.name < b.name) {
            problems.push("specs.yaml has a spec twice, or not sorted by name".to_owned());
        }
        let mut unused: BTreeSet<&str> = self.reasons.keys().map(String::as_str).collect();
        for Entry { name, verdict } in &self.specs {
            if let Some(reason) = verdict.reason() {
                unused.remove(reason);
                problems.extend(self.unexplained(name, verdict, reason));
            }
            problems.extend(contradiction(name, verdict, control));
        }
        problems.extend(unused.iter().map(|reason| format!("no spec has the reason `{reason}`")));
        problems
    }

    /// What the list does not say about the reason of a spec.
    fn unexplained(&self, name: &str, verdict: &Verdict, reason: &str) -> Option<String> {
        match self.reasons.get(reason) {
            None => Some(format!("`{name}` has the reason `{reason}`: write its text")),
            Some(Reason { difference: None, .. }) if matches!(verdict, Verdict::Differs { .. }) => {
                Some(format!(
                    "`{name}` differs, and `{reason}` names no known difference of \
                     docs/simulator.md: describe it there and give its number"
                ))
            }
            Some(_) => None,
        }
    }

    /// Takes over the results of a run on the simulator. Reasons stay; a spec without one gets
    /// [`UNEXPLAINED`].
    pub(crate) fn record(
        &mut self,
        specs: &[Spec],
        results: &BTreeMap<String, SpecResult>,
        control: &Control,
    ) {
        let entry = |spec: &Spec| {
            let old = self.verdict(&spec.name);
            let new = match results.get(&spec.name) {
                Some(result) => verdict(old, result, control.specs.get(&spec.name)),
                None => old.cloned().unwrap_or_else(|| skipped(None)),
            };
            Entry { name: spec.name.clone(), verdict: new }
        };
        self.specs = specs.iter().map(entry).collect();
        let used: BTreeSet<&str> =
            self.specs.iter().filter_map(|entry| entry.verdict.reason()).collect();
        self.reasons.retain(|name, _| used.contains(name.as_str()));
    }
}

/// How the real control plane contradicts a verdict.
fn contradiction(name: &str, verdict: &Verdict, control: &Control) -> Option<String> {
    let outcome = control.specs.get(name);
    match (verdict, outcome) {
        (_, None) => Some(format!(
            "control.json lacks `{name}`; run `cargo xtask conformance --control --write`"
        )),
        (Verdict::Skipped { reason }, Some(Outcome::Passed)) => Some(format!(
            "`{name}` is skipped ({reason}), though it passes on a real control plane"
        )),
        (Verdict::Differs { reason, .. }, Some(Outcome::Failed | Outcome::Skipped)) => Some(
            format!("`{name}` differs ({reason}), though it does not pass on a real control plane"),
        ),
        _ => None,
    }
}

/// The verdict by a result.
fn verdict(old: Option<&Verdict>, result: &SpecResult, control: Option<&Outcome>) -> Verdict {
    match (result.outcome, control) {
        // Somebody decided that a pass of this spec says nothing.
        (_, Some(Outcome::Failed | Outcome::Skipped)) if matches!(old, Some(Verdict::Skipped { reason }) if reason != UNEXPLAINED) => {
            skipped(old)
        }
        (Outcome::Passed, _) => {
            let noted = match old {
                Some(Verdict::Passes { seconds }) => seconds.unwrap_or(0),
                _ => 0,
            };
            // Small changes are noise.
            let is_near = noted.abs_diff(result.seconds) <= noted.max(NOTABLE_SECONDS);
            let seconds = if is_near { noted } else { result.seconds };
            Verdict::Passes { seconds: (seconds >= NOTABLE_SECONDS).then_some(seconds) }
        }
        (Outcome::Failed | Outcome::Skipped, Some(Outcome::Passed)) => {
            Verdict::Differs { reason: reason(old), slow: result.seconds >= SLOW_SECONDS }
        }
        (Outcome::Failed | Outcome::Skipped, _) => skipped(old),
    }
}

fn skipped(old: Option<&Verdict>) -> Verdict {
    Verdict::Skipped { reason: reason(old) }
}

fn reason(old: Option<&Verdict>) -> String {
    old.and_then(Verdict::reason).unwrap_or(UNEXPLAINED).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> List {
        serde_yaml_ng::from_str(text).unwrap()
    }

    fn specs(names: &[&str]) -> Vec<Spec> {
        names.iter().map(|name| Spec { name: (*name).to_owned() }).collect()
    }

    fn control(outcomes: &[(&str, Outcome)]) -> Control {
        let specs = outcomes.iter().map(|(name, outcome)| ((*name).to_owned(), *outcome)).collect();
        Control { kubernetes: "1.2.3".to_owned(), specs }
    }

    fn result(outcome: Outcome, seconds: u64) -> SpecResult {
        SpecResult { outcome, message: String::new(), place: String::new(), seconds }
    }

    const GOOD: &str = "
kubernetes: 1.2.3
reasons:
  node: {text: needs a node}
  quotas: {text: has no quotas, difference: 7}
specs:
- {name: a, verdict: passes, seconds: 20}
- {name: b, verdict: differs, reason: quotas}
- {name: c, verdict: skipped, reason: node}
";

    fn good_control() -> Control {
        control(&[("a", Outcome::Passed), ("b", Outcome::Passed), ("c", Outcome::Failed)])
    }

    fn problems(text: &str, names: &[&str], control: &Control) -> Vec<String> {
        list(text).problems(&specs(names), control, "1.2.3")
    }

    #[test]
    fn list_that_fits_the_program_and_the_control_has_no_problem() {
        assert_eq!(problems(GOOD, &["a", "b", "c"], &good_control()), Vec::<String>::new());
        // It may also pass here and not there: the simulator has a kubelet.
        let mut control = good_control();
        control.specs.insert("a".to_owned(), Outcome::Failed);
        assert_eq!(problems(GOOD, &["a", "b", "c"], &control), Vec::<String>::new());
    }

    #[test]
    fn added_and_removed_specs_are_problems() {
        let mut control = good_control();
        control.specs.insert("d".to_owned(), Outcome::Passed);
        assert_eq!(
            problems(GOOD, &["a", "b", "d"], &control),
            [
                "specs.yaml lacks the spec `d`",
                "specs.yaml has `c`, which is no spec of the program"
            ]
        );
    }

    #[test]
    fn spec_listed_twice_is_a_problem() {
        let text = format!("{GOOD}- {{name: c, verdict: skipped, reason: node}}\n");
        let found = problems(&text, &["a", "b", "c"], &good_control());
        assert_eq!(found, ["specs.yaml has a spec twice, or not sorted by name"]);
    }

    #[test]
    fn reason_that_is_missing_or_unused_is_a_problem() {
        let found = problems(
            &GOOD.replace("reason: quotas", "reason: unexplained"),
            &["a", "b", "c"],
            &good_control(),
        );
        assert_eq!(
            found,
            ["`b` has the reason `unexplained`: write its text", "no spec has the reason `quotas`"]
        );
    }

    #[test]
    fn reason_of_a_spec_that_differs_names_a_known_difference() {
        let text = GOOD.replace(", difference: 7", "");
        let found = problems(&text, &["a", "b", "c"], &good_control());
        assert!(
            matches!(&found[..], [one] if one.contains("`b` differs, and `quotas` names no known")),
            "{found:?}"
        );
    }

    #[test]
    fn skipped_spec_that_passes_on_the_control_plane_is_a_problem() {
        let mut control = good_control();
        control.specs.insert("c".to_owned(), Outcome::Passed);
        let found = problems(GOOD, &["a", "b", "c"], &control);
        assert_eq!(found, ["`c` is skipped (node), though it passes on a real control plane"]);
    }

    #[test]
    fn differing_spec_that_fails_on_the_control_plane_is_a_problem() {
        for outcome in [Outcome::Failed, Outcome::Skipped] {
            let mut control = good_control();
            control.specs.insert("b".to_owned(), outcome);
            let found = problems(GOOD, &["a", "b", "c"], &control);
            assert_eq!(
                found,
                ["`b` differs (quotas), though it does not pass on a real control plane"]
            );
        }
    }

    #[test]
    fn results_of_another_version_and_missing_results_are_problems() {
        let found = list(GOOD).problems(&specs(&["a", "b", "c"]), &good_control(), "1.2.4");
        assert_eq!(found.len(), 2, "{found:?}");
        let mut control = good_control();
        control.specs.remove("a");
        let found = problems(GOOD, &["a", "b", "c"], &control);
        assert!(matches!(&found[..], [one] if one.contains("control.json lacks `a`")), "{found:?}");
    }

    #[test]
    fn record_keeps_reasons_and_removes_those_of_specs_that_pass_now() {
        let mut list = list(GOOD);
        let control = good_control();
        let results = BTreeMap::from([
            ("a".to_owned(), result(Outcome::Failed, 3)),
            ("b".to_owned(), result(Outcome::Passed, 9)),
        ]);
        list.record(&specs(&["a", "b", "c"]), &results, &control);
        let differs = Verdict::Differs { reason: UNEXPLAINED.to_owned(), slow: false };
        assert_eq!(list.verdict("a"), Some(&differs));
        assert_eq!(list.verdict("b"), Some(&Verdict::Passes { seconds: Some(9) }));
        assert_eq!(list.verdict("c"), Some(&Verdict::Skipped { reason: "node".to_owned() }));
        assert_eq!(list.reasons.keys().collect::<Vec<_>>(), ["node"]);
    }

    #[test]
    fn record_drops_specs_that_are_gone_and_asks_for_reasons_of_new_ones() {
        let mut list = list(GOOD);
        list.record(&specs(&["b", "d"]), &BTreeMap::new(), &good_control());
        let names: Vec<_> = list.specs.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["b", "d"]);
        assert_eq!(list.verdict("d").and_then(Verdict::reason), Some(UNEXPLAINED));
    }

    #[test]
    fn record_notes_slow_failures_and_keeps_seconds_that_are_near() {
        let mut list = list(GOOD);
        let results = BTreeMap::from([
            ("a".to_owned(), result(Outcome::Passed, 24)),
            ("b".to_owned(), result(Outcome::Failed, SLOW_SECONDS)),
        ]);
        list.record(&specs(&["a", "b", "c"]), &results, &good_control());
        assert_eq!(list.verdict("a"), Some(&Verdict::Passes { seconds: Some(20) }));
        let slow = Verdict::Differs { reason: "quotas".to_owned(), slow: true };
        assert_eq!(list.verdict("b"), Some(&slow));
    }

    #[test]
    fn record_keeps_a_skipped_spec_that_passes_by_chance_unless_the_control_plane_passes_it() {
        let results = BTreeMap::from([("c".to_owned(), result(Outcome::Passed, 1))]);
        let mut control = good_control();
        let mut kept = list(GOOD);
        kept.record(&specs(&["c"]), &results, &control);
        assert_eq!(kept.verdict("c"), Some(&Verdict::Skipped { reason: "node".to_owned() }));
        control.specs.insert("c".to_owned(), Outcome::Passed);
        kept.record(&specs(&["c"]), &results, &control);
        assert_eq!(kept.verdict("c"), Some(&Verdict::Passes { seconds: None }));
    }

    #[test]
    fn reasons_name_known_differences_of_the_documentation() {
        let page = files::read(&files::of_repository("docs/simulator.md")).unwrap();
        let (_, differences) = page.split_once("\n## Known differences\n").unwrap();
        let list = List::read().unwrap();
        for (name, reason) in &list.reasons {
            if let Some(number) = reason.difference {
                let found = differences.contains(&format!("\n{number}. **"));
                assert!(found, "`{name}`: docs/simulator.md has no known difference {number}");
            }
        }
        for Entry { name, verdict } in &list.specs {
            let reason = verdict.reason().unwrap_or_default();
            let found = verdict.reason().and_then(|_| list.unexplained(name, verdict, reason));
            assert_eq!(found, None);
        }
    }

    #[test]
    fn list_is_read_as_it_is_written() {
        let list = list(GOOD);
        let text = serde_yaml_ng::to_string(&list).unwrap();
        assert_eq!(serde_yaml_ng::from_str::<List>(&text).unwrap(), list);
    }
}
