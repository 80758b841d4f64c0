//! The tools of a language: its interpreter, looked for, and what is installed for it from its
//! registry, in the user's cache folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use innkeeper_toolchain::command::ask;
use innkeeper_toolchain::{cache_folder, lock};
use sha2::{Digest as _, Sha256};

use super::language::Language;
use crate::command;
use crate::progress::say;

/// The oldest interpreters that will do.
const PYTHON: (u32, u32) = (3, 10);
const NODE: (u32, u32) = (20, 0);

/// Written last: what has it is whole.
const COMPLETE: &str = "complete";

/// Installed tools.
#[derive(Debug)]
pub(super) struct Tools {
    language: Language,
    folder: PathBuf,
}

impl Tools {
    /// Those that a guest's folder asks for. Installs them if they are not there: once for all
    /// clones and for each set of requirements, whoever else does so at the same time.
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
        // Somebody else may have done it meanwhile.
        if !tools.are_complete() {
            tools.install(guest)?;
        }
        Ok(tools)
    }

    pub(super) fn at(language: Language, folder: &Path) -> Self {
        Self { language, folder: folder.to_owned() }
    }

    /// One of the programs that were installed.
    pub(super) fn program(&self, name: &str) -> Command {
        Command::new(self.folder.join("bin").join(name))
    }

    /// Makes them be found from a folder.
    pub(super) fn put_beside(&self, folder: &Path) -> Result<()> {
        if self.language == Language::Python {
            return Ok(());
        }
        let (from, to) = (folder.join("node_modules"), self.folder.join("node_modules"));
        if std::fs::read_link(&from).is_ok_and(|there| there == to) {
            return Ok(());
        }
        // Not there is as good.
        let _ = std::fs::remove_file(&from);
        std::os::unix::fs::symlink(&to, &from)
            .with_context(|| format!("cannot link {} to {}", from.display(), to.display()))
    }

    fn are_complete(&self) -> bool {
        self.folder.join(COMPLETE).is_file()
    }

    fn install(&self, guest: &Path) -> Result<()> {
        let folder = &self.folder;
        // Half of it may be there, of a run that was ended.
        if folder.exists() {
            std::fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        match self.language {
            Language::Python => {
                say("guests: installing Python's tools (about 80 MB, once)");
                command::run(Command::new("python3").args(["-m", "venv"]).arg(folder)).context(
                    "python3 makes no virtual environment: on Debian `apt-get install python3-venv`",
                )?;
                command::run(
                    self.program("python")
                        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                        .args(["--require-hashes", "--only-binary", ":all:", "--requirement"])
                        .arg(guest.join(self.language.requirements()[0])),
                )?;
            }
            Language::JavaScript => {
                say("guests: installing JavaScript's tools (about 190 MB, once)");
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
        }
        let complete = folder.join(COMPLETE);
        std::fs::write(&complete, "")
            .with_context(|| format!("cannot write {}", complete.display()))
    }
}

/// What tells this machine's interpreter from others; an error says what is missing.
fn interpreter(language: Language) -> Result<String> {
    let (says, least, wanted) = match language {
        Language::Python => {
            let print = "import sys, platform as p; print(*sys.version_info[:3], sep='.', end=' '); \
                print(sys.base_prefix, p.system(), p.machine())";
            let wanted = "python3, 3.10 or later with venv and pip (on Debian: `apt-get install python3-venv`)";
            (ask(Command::new("python3").args(["-c", print])), PYTHON, wanted)
        }
        Language::JavaScript => {
            let print = "`${process.versions.node} ${process.platform} ${process.arch}`";
            let wanted =
                "node, 20 or later, and npm (of the system's packages, or of its own site)";
            let node = ask(Command::new("node").args(["--print", print]));
            let npm = || ask(Command::new("npm").arg("--version")).map(drop);
            (node.and_then(|node| npm().map(|()| node)), NODE, wanted)
        }
    };
    let says = says.with_context(|| format!("this machine lacks {wanted}"))?;
    if version(&says).is_none_or(|found| found < least) {
        bail!("this machine lacks {wanted}: it has {}", says.trim_end());
    }
    Ok(says)
}

/// The first two numbers of a version, with which a text begins.
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
    fn tools_without_their_mark_are_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let tools = Tools::at(Language::Python, folder.path());
        assert!(!tools.are_complete());
        std::fs::write(folder.path().join(COMPLETE), "").unwrap();
        assert!(tools.are_complete());
    }

    #[test]
    fn a_folder_has_the_modules_of_its_requirements_also_after_they_change() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["one", "two"] {
            let modules = folder.path().join(version).join("node_modules");
            std::fs::create_dir_all(&modules).unwrap();
            std::fs::write(modules.join("module"), version).unwrap();
            let tools = Tools::at(Language::JavaScript, &folder.path().join(version));
            tools.put_beside(folder.path()).unwrap();
            let found = std::fs::read_to_string(folder.path().join("node_modules/module"));
            assert_eq!(found.unwrap(), version);
        }
    }
}
