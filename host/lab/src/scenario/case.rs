//! A case: the folder, read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::{Reference, Simulation, TestAssert, TestStep};

/// How long asserts may take to hold, unless a `TestAssert` or the suite says otherwise, as in KUTTL.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// Why a folder cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {error}", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A document is not what it should be.
    #[error("{place}: {why}")]
    Wrong {
        /// File and document.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
}

/// An object of a file.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) place: Place,
}

/// Where a document stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: PathBuf,
    /// From 0 on.
    pub(super) index: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file.display(), self.index + 1)
    }
}

/// What happens together: deletes, then applies, then it is waited for the asserts.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Its number.
    pub index: u32,
    /// The name of its first file, without number and ending.
    pub name: String,
    pub(super) delete: Vec<(Reference, Place)>,
    pub(super) apply: Vec<Document>,
    pub(super) asserts: Vec<Document>,
    pub(super) errors: Vec<Document>,
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

/// What a file is for, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Apply,
    Assert,
    Error,
}

/// Number, name and role of a file; nothing if it is no step.
fn role(file: &str) -> Option<(u32, &str, Role)> {
    let stem = file.strip_suffix(".yaml").or_else(|| file.strip_suffix(".yml"))?;
    let (number, name) = stem.split_once('-')?;
    let index = number.parse().ok()?;
    let role = match name.split(['-', '.']).next().unwrap_or_default().to_lowercase().as_str() {
        "assert" => Role::Assert,
        "error" | "errors" => Role::Error,
        _ => Role::Apply,
    };
    Some((index, name, role))
}

/// Whether a folder has files of steps.
pub(super) fn is_case(folder: &Path) -> Result<bool, CaseError> {
    Ok(files(folder)?.iter().any(|path| role(&name_of(path)).is_some()))
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What is in a folder, in the order of names.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, CaseError> {
    let unreadable = |error| CaseError::Unreadable { path: folder.to_owned(), error };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        found.push(entry.map_err(unreadable)?.path());
    }
    found.sort();
    Ok(found)
}

impl Case {
    /// Reads a folder.
    ///
    /// # Errors
    /// If a file cannot be read, or asks for what cannot be done.
    pub fn read(folder: &Path) -> Result<Self, CaseError> {
        let mut steps: BTreeMap<u32, Step> = BTreeMap::new();
        for path in files(folder)? {
            let file = name_of(&path);
            if file == "chainsaw-test.yaml" || file == "chainsaw-test.yml" {
                let why = "a Test of Chainsaw is not read; numbered files are (00-install.yaml, 00-assert.yaml, 00-error.yaml)";
                return Err(wrong(path.display(), why));
            }
            let Some((index, name, role)) = role(&file) else { continue };
            let step = steps.entry(index).or_default();
            step.index = index;
            if step.name.is_empty() || (role == Role::Apply && step.name.starts_with("assert")) {
                name.clone_into(&mut step.name);
            }
            for document in documents(&path)? {
                step.add(folder, role, document)?;
            }
        }
        let name = folder.canonicalize().map_or_else(|_| name_of(folder), |path| name_of(&path));
        Ok(Self { name, steps: steps.into_values().collect() })
    }
}

impl Step {
    fn add(&mut self, folder: &Path, role: Role, document: Document) -> Result<(), CaseError> {
        let kind = document.value["kind"].as_str().unwrap_or_default();
        let version = document.value["apiVersion"].as_str().unwrap_or_default();
        let kuttl = version.starts_with("kuttl.dev/") || version.starts_with("kudo.dev/");
        match kind {
            "TestStep" if kuttl => {
                let step: TestStep = typed(&document)?;
                refuse_commands(&step.commands, &document.place)?;
                if step.kubeconfig.is_some() {
                    let why = "a kubeconfig of its own for a step is not taken; give the one for all with --kubeconfig";
                    return Err(wrong(&document.place, why));
                }
                for reference in step.delete {
                    if reference.kind.is_empty() || reference.api_version.is_empty() {
                        return Err(wrong(&document.place, "a delete needs apiVersion and kind"));
                    }
                    self.delete.push((reference, document.place.clone()));
                }
                for (files, role) in [
                    (step.apply, Role::Apply),
                    (step.assert, Role::Assert),
                    (step.error, Role::Error),
                ] {
                    for file in files {
                        let path = folder.join(file);
                        let all = if path.is_dir() { self::files(&path)? } else { vec![path] };
                        for path in all {
                            for document in documents(&path)? {
                                self.add(folder, role, document)?;
                            }
                        }
                    }
                }
            }
            "TestAssert" if kuttl => {
                let assert: TestAssert = typed(&document)?;
                refuse_commands(&assert.commands, &document.place)?;
                if !assert.assert_all.is_empty() || !assert.assert_any.is_empty() {
                    let why = "assertAll and assertAny (expressions in CEL) are not evaluated; say what must be there as an object";
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
                return Err(wrong(&document.place, "is no object: apiVersion or kind is missing"));
            }
            _ => match role {
                Role::Apply => self.apply.push(document),
                Role::Assert => self.asserts.push(document),
                Role::Error => self.errors.push(document),
            },
        }
        Ok(())
    }
}

pub(super) fn wrong(place: impl fmt::Display, why: impl fmt::Display) -> CaseError {
    CaseError::Wrong { place: place.to_string(), why: why.to_string() }
}

fn refuse_commands(commands: &[Value], place: &Place) -> Result<(), CaseError> {
    if commands.is_empty() {
        return Ok(());
    }
    let why = "commands and scripts are not run: there is no shell beside a simulated cluster. Say what they do as objects to apply or to delete";
    Err(wrong(place, why))
}

fn typed<T: DeserializeOwned>(document: &Document) -> Result<T, CaseError> {
    serde_json::from_value(document.value.clone()).map_err(|error| wrong(&document.place, error))
}

/// Reads the documents of a file; a `List` gives its items.
pub(super) fn documents(path: &Path) -> Result<Vec<Document>, CaseError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CaseError::Unreadable { path: path.to_owned(), error })?;
    let mut found = Vec::new();
    for (index, document) in serde_yaml_ng::Deserializer::from_str(&text).enumerate() {
        let place = Place { file: path.to_owned(), index };
        let value = Value::deserialize(document)
            .map_err(|error| wrong(&place, format!("is no YAML of an object: {error}")))?;
        match value {
            Value::Null => {}
            Value::Object(_) if value["kind"] == "List" => {
                let items = value["items"].as_array().into_iter().flatten().cloned();
                found.extend(items.map(|value| Document { value, place: place.clone() }));
            }
            value => found.push(Document { value, place }),
        }
    }
    Ok(found)
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
    fn files_of_a_number_are_a_step_and_their_names_say_what_they_are_for() {
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
    fn a_step_deletes_names_files_and_says_how_long_it_may_take() {
        let step = "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\napply: [other.yaml]\ndelete:\n- apiVersion: v1\n  kind: Pod\n  name: a\n";
        let assert = "apiVersion: kuttl.dev/v1beta1\nkind: TestAssert\ntimeout: 120\n";
        let case = read(&[("00-step.yaml", step), ("00-assert.yaml", assert), ("other.yaml", MAP)])
            .unwrap();
        let step = &case.steps[0];
        assert_eq!((step.delete.len(), step.apply.len()), (1, 1));
        assert_eq!(step.timeout, Some(Duration::from_mins(2)));
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_its_place() {
        let told = |name: &str, text: &str| read(&[(name, text)]).unwrap_err().to_string();
        let script = "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ncommands:\n- script: ls\n";
        let text = told("00-run.yaml", script);
        assert!(
            text.contains("00-run.yaml, document 1: commands and scripts are not run"),
            "{text}"
        );
        let chainsaw = "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\n";
        assert!(told("chainsaw-test.yaml", chainsaw).contains("numbered files are"));
        assert!(told("00-a.yaml", "a: b\n").contains("apiVersion or kind is missing"));
        let wrong = "apiVersion: innkeeper.dev/v1alpha1\nkind: Simulation\nspec: {pots: []}\n";
        assert!(told("00-a.yaml", wrong).contains("unknown field `pots`"));
    }
}
