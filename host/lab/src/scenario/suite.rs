//! The cases below a folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::case::{Case, is_case};
use super::document::TestSuite;
use super::files::{CaseError, documents, files, wrong};

/// Cases and their common settings.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// In the order of names.
    pub cases: Vec<Case>,
    /// Objects that exist before each case: definitions first.
    pub manifests: Vec<Value>,
    /// Maximum time until asserts hold, if the suite sets one.
    pub timeout: Option<Duration>,
    /// The namespace of all cases, if the suite sets one.
    pub namespace: Option<String>,
}

impl Suite {
    /// Reads a folder that is a case, contains cases, or has a `kuttl-test.yaml` with their
    /// folders.
    ///
    /// # Errors
    /// If there is no case, a file cannot be read, or a file has a feature that is not supported.
    pub fn read(folder: &Path) -> Result<Self, CaseError> {
        let mut suite = Self::default();
        let mut folders = vec![folder.to_owned()];
        for name in ["kuttl-test.yaml", "kuttl-test.yml"] {
            let path = folder.join(name);
            if path.is_file() {
                folders = suite.configure(folder, &path)?;
            }
        }
        for folder in &folders {
            if is_case(folder)? {
                suite.cases.push(Case::read(folder)?);
                continue;
            }
            for path in files(folder)?.into_iter().filter(|path| path.is_dir()) {
                if is_case(&path)? {
                    suite.cases.push(Case::read(&path)?);
                }
            }
        }
        if suite.cases.is_empty() {
            let why = "no test case found; give a folder with numbered files (00-install.yaml, 00-assert.yaml), or a folder of such folders";
            return Err(wrong(folder.display(), why));
        }
        Ok(suite)
    }

    fn configure(&mut self, folder: &Path, path: &Path) -> Result<Vec<PathBuf>, CaseError> {
        let mut folders = Vec::new();
        for document in documents(path)? {
            if document.value["kind"] != "TestSuite" {
                return Err(wrong(&document.place, "not a TestSuite of kuttl.dev"));
            }
            let configured: TestSuite = serde_json::from_value(document.value)
                .map_err(|error| wrong(&document.place, error))?;
            if !configured.commands.is_empty() {
                let why = "commands are not supported; `innkeeper test` starts the operator itself, with the guests of its flags";
                return Err(wrong(&document.place, why));
            }
            for place in configured.crd_dir.iter().chain(&configured.manifest_dirs) {
                let place = folder.join(place);
                let all = if place.is_dir() { files(&place)? } else { vec![place] };
                let yaml = |path: &PathBuf| {
                    let known = |ending: &str| path.extension().is_some_and(|one| one == ending);
                    ["yaml", "yml", "json"].into_iter().any(known)
                };
                for path in all.iter().filter(|path| yaml(path)) {
                    self.manifests.extend(documents(path)?.into_iter().map(|one| one.value));
                }
            }
            folders.extend(configured.test_dirs.iter().map(|place| folder.join(place)));
            self.timeout = configured.timeout.map(Duration::from_secs).or(self.timeout);
            self.namespace = configured.namespace.or_else(|| self.namespace.take());
        }
        if folders.is_empty() {
            folders.push(folder.to_owned());
        }
        Ok(folders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

    #[test]
    fn suite_is_read_from_a_case_a_folder_of_cases_or_a_kuttl_test() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(Suite::read(folder.path()).unwrap_err().to_string().contains("no test case found"));
        write("cases/b/00-a.yaml", MAP);
        write("cases/a/00-a.yaml", MAP);
        write("cases/modules/a.yaml", MAP);
        let names = |place: &Path| {
            let suite = Suite::read(place).unwrap();
            suite.cases.into_iter().map(|case| case.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&folder.path().join("cases")), ["a", "b"]);
        assert_eq!(names(&folder.path().join("cases/a")), ["a"]);
        let configuration = "apiVersion: kuttl.dev/v1beta1\nkind: TestSuite\ntestDirs: [cases]\ntimeout: 90\ncrdDir: crds\n";
        write("kuttl-test.yaml", configuration);
        write("crds/map.yaml", MAP);
        assert_eq!(names(folder.path()), ["a", "b"]);
        let suite = Suite::read(folder.path()).unwrap();
        assert_eq!(suite.timeout, Some(Duration::from_secs(90)));
        assert_eq!(suite.manifests.len(), 1);
    }
}
