//! The tools of a language: the interpreter of this machine, and packages from the registry of the
//! language, in the user's cache folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use innkeeper_toolchain::command::ask;
use innkeeper_toolchain::{Go, cache_folder, lock};
use sha2::{Digest as _, Sha256};

use super::language::Language;
use crate::command;
use crate::progress::say;

/// The oldest supported interpreters.
const PYTHON: (u32, u32) = (3, 10);
const NODE: (u32, u32) = (20, 0);

/// The file that marks a complete installation. It is written last.
const COMPLETE: &str = "complete";

/// Installed tools.
#[derive(Debug)]
pub(super) struct Tools {
    language: Language,
    folder: PathBuf,
}

impl Tools {
    /// The tools that a guest requires. Installs them once for each set of requirements; all clones
    /// share them, and a lock prevents concurrent installations.
    ///
    /// # Errors
    /// If the interpreter is missing, or the installation fails.
    pub(super) fn here(language: Language, guest: &Path) -> Result<Self> {
        let interpreter = interpreter(language)?;
        let mut digest = Sha256::new();
        digest.update(&interpreter);
        for name in language.requirements() {
            let file = guest.join(name);
            let content =
                std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            digest.update(content.len().to_le_bytes());
            digest.update(content);
        }
        let key: String = hex::encode(digest.finalize()).chars().take(12).collect();
        let all = cache_folder()?.join("languages");
        let tools = Self::at(language, &all.join(key));
        if tools.are_complete() {
            return Ok(tools);
        }
        let _lock = lock(&all, &mut |line| say(&format!("guests: {line}")))?;
        // Another process may have installed them meanwhile.
        if !tools.are_complete() {
            tools.install(guest)?;
        }
        Ok(tools)
    }

    /// The tools in a folder.
    pub(super) fn at(language: Language, folder: &Path) -> Self {
        Self { language, folder: folder.to_owned() }
    }

    /// A program of the tools.
    pub(super) fn program(&self, name: &str) -> Command {
        let folder = match self.language {
            Language::Python => "bin",
            Language::JavaScript | Language::TypeScript => "node_modules/.bin",
            Language::Go => "",
        };
        Command::new(self.folder.join(folder).join(name))
    }

    /// Links the modules into a folder, so that programs there find them.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub(super) fn link_into(&self, folder: &Path) -> Result<()> {
        if !matches!(self.language, Language::JavaScript | Language::TypeScript) {
            return Ok(());
        }
        let (from, to) = (folder.join("node_modules"), self.folder.join("node_modules"));
        if std::fs::read_link(&from).is_ok_and(|target| target == to) {
            return Ok(());
        }
        // The link may not exist.
        let _ = std::fs::remove_file(&from);
        std::os::unix::fs::symlink(&to, &from)
            .with_context(|| format!("cannot link {} to {}", from.display(), to.display()))
    }

    fn are_complete(&self) -> bool {
        self.folder.join(COMPLETE).is_file()
    }

    fn install(&self, guest: &Path) -> Result<()> {
        let folder = &self.folder;
        // An interrupted run may have left a part.
        if folder.exists() {
            std::fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        match self.language {
            Language::Python => {
                say("guests: installing Python's tools (up to 80 MB, once)");
                command::run(Command::new("python3").args(["-m", "venv"]).arg(folder)).context(
                    "python3 cannot create a virtual environment; on Debian run `apt-get install python3-venv`",
                )?;
                command::run(
                    self.program("python")
                        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                        .args(["--require-hashes", "--only-binary", ":all:", "--requirement"])
                        .arg(guest.join(self.language.requirements()[0])),
                )?;
            }
            Language::JavaScript | Language::TypeScript => {
                say("guests: installing JavaScript's tools (about 200 MB, once)");
                for name in self.language.requirements() {
                    std::fs::copy(guest.join(name), folder.join(name))
                        .with_context(|| format!("cannot copy {name} to {}", folder.display()))?;
                }
                command::run(
                    Command::new("npm")
                        .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
                        .current_dir(folder),
                )?;
            }
            // The compiler is all that it needs.
            Language::Go => {}
        }
        let complete = folder.join(COMPLETE);
        std::fs::write(&complete, "")
            .with_context(|| format!("cannot write {}", complete.display()))
    }
}

/// Identifies the interpreter of this machine.
///
/// # Errors
/// If the interpreter is missing or too old.
fn interpreter(language: Language) -> Result<String> {
    let (version_text, min, required) = match language {
        Language::Python => {
            let print = "import sys, platform as p; print(*sys.version_info[:3], sep='.', end=' '); \
                print(sys.base_prefix, p.system(), p.machine())";
            let required = "python3, 3.10 or later with venv and pip (on Debian: `apt-get install python3-venv`)";
            (ask(Command::new("python3").args(["-c", print])), PYTHON, required)
        }
        Language::JavaScript | Language::TypeScript => {
            let print = "`${process.versions.node} ${process.platform} ${process.arch}`";
            let required =
                "node, 20 or later, and npm (of the system's packages, or of its own site)";
            let node = ask(Command::new("node").args(["--print", print]));
            let npm = || ask(Command::new("npm").arg("--version")).map(drop);
            (node.and_then(|node| npm().map(|()| node)), NODE, required)
        }
        Language::Go => return Ok(Go::find()?.identity().to_owned()),
    };
    let found = version_text.with_context(|| format!("this machine lacks {required}"))?;
    if version(&found).is_none_or(|version| version < min) {
        bail!("this machine lacks {required}: it has {}", found.trim_end());
    }
    Ok(found)
}

/// The first two numbers of the version at the beginning of a text.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(['.', ' ']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("3.9.2 /usr Linux x86_64\n"), Some((3, 9)));
        assert!(version("3.9.2 /usr") < Some(PYTHON) && version("3.11.0 /usr") > Some(PYTHON));
        assert_eq!(version("none"), None);
    }

    #[test]
    fn tools_are_incomplete_without_their_mark() {
        let folder = tempfile::tempdir().unwrap();
        let tools = Tools::at(Language::Python, folder.path());
        assert!(!tools.are_complete());
        std::fs::write(folder.path().join(COMPLETE), "").unwrap();
        assert!(tools.are_complete());
    }

    #[test]
    fn link_is_replaced_when_the_requirements_change() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["one", "two"] {
            let modules = folder.path().join(version).join("node_modules");
            std::fs::create_dir_all(&modules).unwrap();
            std::fs::write(modules.join("module"), version).unwrap();
            let tools = Tools::at(Language::JavaScript, &folder.path().join(version));
            tools.link_into(folder.path()).unwrap();
            let found = std::fs::read_to_string(folder.path().join("node_modules/module"));
            assert_eq!(found.unwrap(), version);
        }
    }
}
