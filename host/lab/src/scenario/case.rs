//! A test case, read from its folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use innkeeper_simulator::Controllers;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::denied::{self, Denied};
use super::document::{Reference, Simulation, TestAssert, TestStep};
use super::files::{
    CaseError, Document, DocumentLocation, documents, documents_at, files, name_of, wrong,
};

/// Maximum time until the asserts of a step hold, unless a `TestAssert` or the suite sets one. The
/// default of KUTTL.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// The placeholder in values for the namespace of the case.
pub(super) const NAMESPACE: &str = "$NAMESPACE";

/// A step: it deletes, then applies, then sends what must be denied, then waits for the asserts.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Its number.
    pub index: u32,
    /// The name of its first file, without number and ending.
    pub name: String,
    pub(super) delete: Vec<(Reference, DocumentLocation)>,
    pub(super) apply: Vec<Document>,
    pub(super) asserts: Vec<Document>,
    pub(super) errors: Vec<Document>,
    /// States that must not be at any moment of the step.
    pub(super) nevers: Vec<Document>,
    /// Objects in the order in which they must have been created.
    pub(super) orders: Vec<Document>,
    /// Requests that must be denied, after the objects are applied.
    pub(super) denied: Vec<Denied>,
    pub(super) simulations: Vec<Simulation>,
    pub(super) timeout: Option<Duration>,
}

/// A folder with steps.
#[derive(Clone, Debug)]
pub struct Case {
    /// The folder's name.
    pub name: String,
    /// In the order of their numbers.
    pub steps: Vec<Step>,
}

/// The role of a file, from its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Apply,
    Assert,
    Error,
    Never,
    Order,
    Denied,
}

/// Number, name and role of a file; `None` if it belongs to no step.
fn role(file: &str) -> Option<(u32, &str, Role)> {
    let stem = file.strip_suffix(".yaml").or_else(|| file.strip_suffix(".yml"))?;
    let (number, name) = stem.split_once('-')?;
    let index = number.parse().ok()?;
    let role = match name.split(['-', '.']).next().unwrap_or_default().to_lowercase().as_str() {
        "assert" => Role::Assert,
        "error" | "errors" => Role::Error,
        "never" => Role::Never,
        "order" => Role::Order,
        "denied" => Role::Denied,
        _ => Role::Apply,
    };
    Some((index, name, role))
}

/// Whether a folder has files of steps.
///
/// # Errors
/// If the folder cannot be read.
pub(super) fn is_case(folder: &Path) -> Result<bool, CaseError> {
    Ok(files(folder)?.iter().any(|path| role(&name_of(path)).is_some()))
}

impl Case {
    /// Reads a folder.
    ///
    /// # Errors
    /// If a file cannot be read, or has a feature that is not supported.
    pub fn read(folder: &Path) -> Result<Self, CaseError> {
        let mut steps: BTreeMap<u32, Step> = BTreeMap::new();
        for path in files(folder)? {
            let file = name_of(&path);
            if file == "chainsaw-test.yaml" || file == "chainsaw-test.yml" {
                let why = "the kind Test of Chainsaw is not supported; use numbered files (00-install.yaml, 00-assert.yaml, 00-error.yaml)";
                return Err(wrong(path.display(), why));
            }
            let Some((index, name, role)) = role(&file) else { continue };
            let step = steps.entry(index).or_default();
            step.index = index;
            let is_of_role = ["assert", "denied"].iter().any(|one| step.name.starts_with(one));
            if step.name.is_empty() || (role == Role::Apply && is_of_role) {
                name.clone_into(&mut step.name);
            }
            for document in documents(&path)? {
                step.add(folder, role, document)?;
            }
        }
        let name = folder.canonicalize().map_or_else(|_| name_of(folder), |path| name_of(&path));
        let steps: Vec<Step> = steps.into_values().collect();
        for step in steps.iter().skip(1) {
            if step.simulations.iter().any(|one| !one.without.is_empty()) {
                let place = format!("{}, step {:02}-{}", folder.display(), step.index, step.name);
                let why = "spec.without of a Simulation applies to the whole case; move it to the first step";
                return Err(wrong(place, why));
            }
        }
        Ok(Self { name, steps })
    }

    /// The controllers of the simulated cluster of this case.
    pub fn controllers(&self) -> Controllers {
        let mut controllers = Controllers::all();
        let simulations = self.steps.iter().flat_map(|step| &step.simulations);
        for part in simulations.flat_map(|simulation| &simulation.without) {
            part.leave_out(&mut controllers);
        }
        controllers
    }
}

impl Step {
    /// Whether the step says only what must not be at its end. Such a step would hold before
    /// anything has happened.
    pub(super) fn has_only_errors(&self) -> bool {
        self.asserts.is_empty() && self.orders.is_empty() && !self.errors.is_empty()
    }

    fn add(&mut self, folder: &Path, role: Role, document: Document) -> Result<(), CaseError> {
        let kind = document.value["kind"].as_str().unwrap_or_default();
        let version = document.value["apiVersion"].as_str().unwrap_or_default();
        let kuttl = version.starts_with("kuttl.dev/") || version.starts_with("kudo.dev/");
        match kind {
            "TestStep" if kuttl => {
                let step: TestStep = typed(&document)?;
                refuse_commands(&step.commands, &document.place)?;
                if step.kubeconfig.is_some() {
                    let why =
                        "a kubeconfig for a step is not supported; use --kubeconfig for all steps";
                    return Err(wrong(&document.place, why));
                }
                for reference in step.delete {
                    if reference.kind.is_empty() || reference.api_version.is_empty() {
                        return Err(wrong(
                            &document.place,
                            "a delete has no apiVersion or kind; add both",
                        ));
                    }
                    self.delete.push((reference, document.place.clone()));
                }
                for entry in step.denied {
                    self.denied.extend(denied::of_entry(folder, entry, &document.place)?);
                }
                for (files, role) in [
                    (step.apply, Role::Apply),
                    (step.assert, Role::Assert),
                    (step.error, Role::Error),
                ] {
                    for file in files {
                        for document in documents_at(&folder.join(file))? {
                            self.add(folder, role, document)?;
                        }
                    }
                }
            }
            "TestAssert" if kuttl => {
                let assert: TestAssert = typed(&document)?;
                refuse_commands(&assert.commands, &document.place)?;
                if !assert.assert_all.is_empty() || !assert.assert_any.is_empty() {
                    let why = "assertAll and assertAny (expressions in CEL) are not supported; write the expected state as an object";
                    return Err(wrong(&document.place, why));
                }
                if let Some(seconds) = assert.timeout {
                    self.timeout = Some(Duration::from_secs(seconds));
                }
            }
            "Simulation" if version.starts_with("innkeeper.dev/") => {
                let simulation = &document.value["spec"];
                let simulation = serde_json::from_value(simulation.clone())
                    .map_err(|error| wrong(&document.place, error))?;
                self.simulations.push(simulation);
            }
            _ if kind.is_empty() || version.is_empty() => {
                return Err(wrong(&document.place, "not an object: apiVersion or kind is missing"));
            }
            _ => match role {
                Role::Denied => self.denied.push(Denied::of_object(document)?),
                Role::Apply => self.apply.push(denied::not_annotated(document)?),
                Role::Assert | Role::Error | Role::Never | Role::Order => {
                    refuse_expressions(&document.value, &document.place)?;
                    let documents = match role {
                        Role::Error => &mut self.errors,
                        Role::Never => &mut self.nevers,
                        Role::Order => &mut self.orders,
                        Role::Assert | Role::Apply | Role::Denied => &mut self.asserts,
                    };
                    documents.push(document);
                }
            },
        }
        Ok(())
    }
}

/// Refuses names in parentheses: Chainsaw evaluates them as expressions.
fn refuse_expressions(value: &Value, place: &DocumentLocation) -> Result<(), CaseError> {
    match value {
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            if name.starts_with('(') && name.contains(')') {
                let why =
                    format!("the expression {name} is not supported; write the expected value");
                return Err(wrong(place, why));
            }
            refuse_expressions(value, place)
        }),
        Value::Array(items) => items.iter().try_for_each(|item| refuse_expressions(item, place)),
        _ => Ok(()),
    }
}

fn refuse_commands(commands: &[Value], place: &DocumentLocation) -> Result<(), CaseError> {
    if commands.is_empty() {
        return Ok(());
    }
    let why = "commands and scripts are not supported, since a simulated cluster has no shell; use objects to apply or to delete";
    Err(wrong(place, why))
}

/// Parses a document without its kind and name.
fn typed<T: DeserializeOwned>(document: &Document) -> Result<T, CaseError> {
    let mut members = document.value.as_object().cloned().unwrap_or_default();
    for head in ["apiVersion", "kind", "metadata", "index"] {
        members.remove(head);
    }
    serde_json::from_value(Value::Object(members)).map_err(|error| wrong(&document.place, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Result<Case, CaseError> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Case::read(folder.path())
    }

    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

    #[test]
    fn files_of_one_number_are_a_step_with_roles_by_name() {
        let case = read(&[
            ("00-install.yaml", &format!("{MAP}---\n{MAP}")),
            ("00-assert.yaml", MAP),
            ("0-assert-more.yml", MAP),
            ("01-errors.yaml", MAP),
            ("2-error.yaml", MAP),
            ("10-change.yaml", MAP),
            ("README.md", "no step"),
            ("values.yaml", "no: step"),
        ])
        .unwrap();
        let counts: Vec<_> = case
            .steps
            .iter()
            .map(|step| (step.index, step.apply.len(), step.asserts.len(), step.errors.len()))
            .collect();
        assert_eq!(counts, [(0, 2, 2, 0), (1, 0, 0, 1), (2, 0, 0, 1), (10, 1, 0, 0)]);
        assert_eq!(case.steps[0].name, "install");
    }

    #[test]
    fn step_has_deletes_files_and_a_timeout() {
        let step = "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\napply: [other.yaml]\ndelete:\n- apiVersion: v1\n  kind: Pod\n  name: a\n";
        let assert = "apiVersion: kuttl.dev/v1beta1\nkind: TestAssert\ntimeout: 120\n";
        let case = read(&[("00-step.yaml", step), ("00-assert.yaml", assert), ("other.yaml", MAP)])
            .unwrap();
        let step = &case.steps[0];
        assert_eq!((step.delete.len(), step.apply.len()), (1, 1));
        assert_eq!(step.timeout, Some(Duration::from_mins(2)));
    }

    #[test]
    fn unsupported_feature_is_refused_with_its_location() {
        let error = |name: &str, text: &str| read(&[(name, text)]).unwrap_err().to_string();
        let script = "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ncommands:\n- script: ls\n";
        let text = error("00-run.yaml", script);
        assert!(
            text.contains("00-run.yaml, document 1: commands and scripts are not supported"),
            "{text}"
        );
        let chainsaw = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\n";
        assert!(error("chainsaw-test.yaml", chainsaw).contains("use numbered files"));
        assert!(error("00-a.yaml", "a: b\n").contains("apiVersion or kind is missing"));
        let wrong = "apiVersion: innkeeper.dev/v1alpha1\nkind: Simulation\nspec: {pots: []}\n";
        assert!(error("00-a.yaml", wrong).contains("unknown field `pots`"));
        let typo = "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ndeletes: []\n";
        assert!(error("00-a.yaml", typo).contains("unknown field `deletes`"));
        let expression = format!("{MAP}data:\n  (length(@)): 2\n");
        assert!(
            error("00-assert.yaml", &expression)
                .contains("the expression (length(@)) is not supported")
        );
        let late =
            "apiVersion: innkeeper.dev/v1alpha1\nkind: Simulation\nspec: {without: [pods]}\n";
        let error = read(&[("00-a.yaml", MAP), ("01-b.yaml", late)]).unwrap_err().to_string();
        assert!(error.contains("step 01-b: spec.without of a Simulation"), "{error}");
    }
}
