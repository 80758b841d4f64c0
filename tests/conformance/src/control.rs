//! What a real control plane without nodes answered: `control.json`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::report::{Outcome, Spec, SpecResult};

/// The file of the results, in the folder of this crate.
const FILE: &str = "control.json";

/// The results of a real control plane. They depend on the version of Kubernetes only, so they are
/// kept in the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The version of the control plane and of the specs.
    pub kubernetes: String,
    /// The outcome of each spec.
    pub specs: BTreeMap<String, Outcome>,
}

impl Control {
    /// Reads the file.
    ///
    /// # Errors
    /// If there is none, or it is malformed.
    pub fn read() -> Result<Self> {
        serde_json::from_str(&files::read(&files::of_crate(FILE))?)
            .with_context(|| format!("reading {FILE}"))
    }

    /// Takes over the results of a run. A spec that passed once with this version stays passed:
    /// some specs fail on a busy machine. Specs that the program lacks are removed.
    pub(crate) fn record(
        &mut self,
        kubernetes: &str,
        specs: &[Spec],
        results: &BTreeMap<String, SpecResult>,
    ) {
        if self.kubernetes != kubernetes {
            *self = Self { kubernetes: kubernetes.to_owned(), specs: BTreeMap::new() };
        }
        for (name, result) in results {
            if self.specs.get(name) != Some(&Outcome::Passed) {
                self.specs.insert(name.clone(), result.outcome);
            }
        }
        self.specs.retain(|name, _| specs.iter().any(|spec| spec.name == *name));
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        files::write(&files::of_crate(FILE), &format!("{text}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(control: &mut Control, kubernetes: &str, name: &str, outcome: Outcome) {
        let (message, place) = (String::new(), String::new());
        let result = SpecResult { outcome, message, place, seconds: 1 };
        let specs = ["a", "b"].map(|name| Spec { name: name.to_owned() });
        control.record(kubernetes, &specs, &BTreeMap::from([(name.to_owned(), result)]));
    }

    #[test]
    fn spec_that_passed_once_stays_passed_until_the_version_changes() {
        let mut control = Control::default();
        record(&mut control, "1.2.3", "a", Outcome::Failed);
        record(&mut control, "1.2.3", "a", Outcome::Passed);
        record(&mut control, "1.2.3", "a", Outcome::Failed);
        assert_eq!(control.specs["a"], Outcome::Passed);
        record(&mut control, "1.2.4", "b", Outcome::Skipped);
        let expected = BTreeMap::from([("b".to_owned(), Outcome::Skipped)]);
        assert_eq!(control, Control { kubernetes: "1.2.4".to_owned(), specs: expected });
    }

    #[test]
    fn spec_that_the_program_lacks_is_removed() {
        let mut control = Control::default();
        record(&mut control, "1.2.3", "gone", Outcome::Passed);
        assert!(control.specs.is_empty());
    }
}
