//! Guests in other languages, built by the tools of the language.
//!
//! A file identifies the language of a folder of `guests/examples`: `requirements.txt` is Python,
//! whose module `guest` is the guest; `package.json` is JavaScript, whose `build.mjs` makes the
//! component; with `tsconfig.json` it is TypeScript; `go.mod` is Go, which needs no more tools. The
//! tools of the others come from the package registry of the language, with the versions and
//! checksums of `requirements.txt` and `package-lock.json`.

mod language;
mod sdk;
mod tools;
mod workshop;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use innkeeper_toolchain::Go;

use self::language::{Language, PYTHON_SDK, UNITTEST, WIT};
pub(super) use self::sdk::checks as sdk_checks;
use self::tools::Tools;
use super::inputs;
use crate::command;

/// The copies of sources in which tools work.
const WORKSHOPS: &str = "target/guests";

/// The sources that make components of modules in Go.
const TOOLCHAIN_GO: &str = "host/toolchain/src/go";

/// A guest in another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// The name of its folder.
    pub(super) name: String,
    /// Its folder.
    pub(super) folder: PathBuf,
    language: Language,
}

/// All such guests, ordered by name.
///
/// # Errors
/// If the examples cannot be listed.
pub(super) fn discover(guests: &Path) -> Result<Vec<Script>> {
    let examples = guests.join("examples");
    let entries =
        examples.read_dir().with_context(|| format!("cannot list {}", examples.display()))?;
    let mut scripts = Vec::new();
    for entry in entries {
        let folder = entry?.path();
        if let (Some(language), Some(name)) = (Language::of(&folder), folder.file_name()) {
            let name = name.to_string_lossy().into_owned();
            scripts.push(Script { name, folder, language });
        }
    }
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(scripts)
}

impl Script {
    /// The digest of all inputs of the component: sources, SDK, contract, and the list of tools.
    ///
    /// # Errors
    /// If an input cannot be read.
    pub(super) fn digest(&self, root: &Path) -> Result<String> {
        let mut files = workshop::sources(&self.folder)?;
        files.push(root.join(WIT));
        if let Some(sdk) = self.language.sdk() {
            files.extend(workshop::sources(&root.join(sdk))?);
        }
        let mut compiler = None;
        if self.language == Language::Go {
            inputs::collect(&root.join(TOOLCHAIN_GO), &[], &mut files)?;
            files.push(root.join(TOOLCHAIN_GO).with_extension("rs"));
            compiler = Some(Go::find()?);
        }
        let compiler = compiler.as_ref().map_or("", Go::identity);
        inputs::digest_of(root, &[include_bytes!("languages.rs"), compiler.as_bytes()], files)
    }

    /// Builds the component.
    ///
    /// # Errors
    /// If the tools are missing, or the build fails.
    pub(super) fn build(&self, root: &Path, component: &Path) -> Result<()> {
        let tools = self.tools()?;
        let folder = self.workshop(root, &tools)?;
        let workshops = root.join(WORKSHOPS);
        let made = std::fs::create_dir_all(&workshops)
            .and_then(|()| tempfile::tempdir_in(&workshops))
            .with_context(|| {
                format!("cannot create a temporary folder in {}", workshops.display())
            })?;
        let made = made.path().join("guest.wasm");
        let wit = root.join(WIT);
        let mut build = match self.language {
            Language::Python => {
                let sdk = sdk::copy(root, self.language, &tools)?;
                let mut build = tools.program("componentize-py");
                build.args(["--quiet", "--world", "reconciler-guest", "--wit-path"]).arg(wit);
                build.args(["componentize", "--stub-wasi", "--python-path"]);
                build.arg(sdk).args(["--python-path", "."]);
                build.args(["guest", "--output"]).arg(&made);
                build
            }
            Language::JavaScript | Language::TypeScript => {
                sdk::copy(root, self.language, &tools)?;
                let mut build = Command::new("node");
                build.arg("build.mjs").arg(wit).arg(&made);
                build
            }
            Language::Go => Go::find()?.build(&folder, &made),
        };
        command::run(build.current_dir(&folder))
            .with_context(|| format!("cannot build the component of {}", self.name))?;
        if self.language == Language::Go {
            return Go::componentize(&made, component);
        }
        let bytes =
            std::fs::read(&made).with_context(|| format!("cannot read {}", made.display()))?;
        innkeeper_toolchain::componentize::write(component, &bytes)
    }

    /// The commands that check its types and run its tests.
    ///
    /// # Errors
    /// If the tools are missing, or the sources cannot be copied.
    pub(super) fn checks(&self, root: &Path) -> Result<Vec<Command>> {
        let tools = self.tools()?;
        let mut checks = match self.language {
            Language::Python => {
                let sdk = root.join(PYTHON_SDK);
                let mut types = tools.program("mypy");
                types.arg(".").env("MYPYPATH", &sdk);
                let mut tests = tools.program("python");
                tests.args(["-B", "-c", UNITTEST]).env("PYTHONPATH", sdk);
                vec![types, tests]
            }
            Language::JavaScript => {
                let mut tests = Command::new("node");
                tests.args(["--test", "--test-reporter=tap"]);
                vec![tests]
            }
            Language::TypeScript => {
                sdk::copy(root, self.language, &tools)?;
                sdk::typescript_checks(&tools)
            }
            Language::Go => {
                let mut tests = Command::new("go");
                tests.args(["test", "-v", "./...", "innkeeper.dev/sdk-go/..."]);
                vec![tests]
            }
        };
        let workshop = self.workshop(root, &tools)?;
        for check in &mut checks {
            check.current_dir(&workshop);
        }
        Ok(checks)
    }

    fn tools(&self) -> Result<Tools> {
        Tools::here(self.language, &self.folder).with_context(|| {
            format!(
                "the guest {} needs these tools; to build other guests only, run `cargo xtask guests NAME ...`",
                self.name
            )
        })
    }

    /// A copy of the sources, with the tools. It has the same depth below the root, so that paths
    /// like `../../..` still work. Go writes only the module, so it works in the sources.
    fn workshop(&self, root: &Path, tools: &Tools) -> Result<PathBuf> {
        if self.language == Language::Go {
            return Ok(self.folder.clone());
        }
        let workshop = root.join(WORKSHOPS).join(&self.name);
        workshop::copy(&self.folder, &workshop)?;
        tools.link_into(&workshop)?;
        Ok(workshop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(folder: &Path) -> Script {
        Script { name: "one".into(), folder: folder.join("one"), language: Language::Python }
    }

    fn with_files(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content).unwrap();
        }
        root
    }

    #[test]
    fn language_is_identified_by_the_list_of_tools() {
        let root = with_files(&[
            ("examples/b/requirements.txt", ""),
            ("examples/a/package.json", "{}"),
            ("examples/c/Cargo.toml", ""),
            ("examples/d/package.json", "{}"),
            ("examples/d/tsconfig.json", "{}"),
            ("examples/e/go.mod", ""),
        ]);
        let found: Vec<_> = discover(root.path())
            .unwrap()
            .into_iter()
            .map(|script| (script.name, script.language))
            .collect();
        let expected = [
            ("a".to_owned(), Language::JavaScript),
            ("b".to_owned(), Language::Python),
            ("d".to_owned(), Language::TypeScript),
            ("e".to_owned(), Language::Go),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn digest_covers_sources_sdk_and_contract_and_ignores_files_of_tools() {
        let sdk = format!("{PYTHON_SDK}/x.py");
        let root = with_files(&[(WIT, "package"), ("one/guest.py", "1"), (&sdk, "1")]);
        let one = script(root.path());
        let before = one.digest(root.path()).unwrap();
        for left in
            ["one/__pycache__/guest.pyc", "one/.venv/x", "one/node_modules/x/y", "one/a.wasm"]
        {
            let file = root.path().join(left);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "x").unwrap();
        }
        assert_eq!(one.digest(root.path()).unwrap(), before);
        std::fs::write(root.path().join("one/guest.py"), "2").unwrap();
        let changed = one.digest(root.path()).unwrap();
        assert_ne!(changed, before);
        std::fs::write(root.path().join(WIT), "package b").unwrap();
        let with_contract = one.digest(root.path()).unwrap();
        assert_ne!(with_contract, changed);
        std::fs::write(root.path().join(PYTHON_SDK).join("x.py"), "2").unwrap();
        assert_ne!(one.digest(root.path()).unwrap(), with_contract);
    }

    #[test]
    fn workshop_has_the_sources_and_no_other_files() {
        let root =
            with_files(&[("one/guest.py", "1"), ("one/sub/x.py", "2"), ("tools/complete", "")]);
        let one = script(root.path());
        let tools = Tools::at(Language::Python, &root.path().join("tools"));
        let workshop = one.workshop(root.path(), &tools).unwrap();
        assert_eq!(std::fs::read_to_string(workshop.join("sub/x.py")).unwrap(), "2");

        std::fs::remove_file(one.folder.join("sub/x.py")).unwrap();
        std::fs::write(one.folder.join("guest.py"), "3").unwrap();
        one.workshop(root.path(), &tools).unwrap();
        assert!(!workshop.join("sub/x.py").exists());
        assert_eq!(std::fs::read_to_string(workshop.join("guest.py")).unwrap(), "3");
    }
}
