//! Go of this machine, and its calls for guests.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::command::ask;
use crate::componentize;

mod component;
mod wasi_stub;

/// The oldest Go that compiles guests: the first with `go:wasmexport`.
const OLDEST: (u32, u32) = (1, 24);

/// What a machine without a usable Go lacks.
const REQUIRED: &str =
    "go, 1.24 or later; install it from Go's site or your system, and add it to PATH";

/// A Go that compiles guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Go {
    version: String,
}

impl Go {
    /// Finds the Go in PATH.
    ///
    /// # Errors
    /// If there is none, or it is too old.
    pub fn find() -> Result<Self> {
        let printed = ask(Command::new("go").arg("version"))
            .with_context(|| format!("this machine lacks {REQUIRED}"))?;
        let version = printed.trim_end().to_owned();
        if number(&version).is_none_or(|number| number < OLDEST) {
            bail!("this machine lacks {REQUIRED}: it has `{version}`");
        }
        Ok(Self { version })
    }

    /// Its version, as it prints it: another version may give another component.
    pub fn identity(&self) -> &str {
        &self.version
    }

    /// The call that compiles the package of a folder to a core module. The same sources give the
    /// same bytes in each folder.
    pub fn build(&self, folder: &Path, module: &Path) -> Command {
        let mut go = Command::new("go");
        go.current_dir(folder)
            .args(["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false"])
            .args(["-ldflags", "-s -w -buildid=", "-o"])
            .arg(module)
            .arg(".")
            .env("GOOS", "wasip1")
            .env("GOARCH", "wasm")
            .env("CGO_ENABLED", "0");
        go
    }

    /// Makes the component of a core module that [`Self::build`] compiled. It imports nothing but
    /// the contract: a stub answers for the system that Go expects.
    ///
    /// # Errors
    /// If the module cannot be read, is no guest, or imports a function that the stub lacks; or if
    /// the component cannot be written.
    pub fn componentize(module: &Path, component: &Path) -> Result<()> {
        let bytes = std::fs::read(module)
            .with_context(|| format!("cannot read the compiled guest {}", module.display()))?;
        let encoded = component::encode(bytes)
            .with_context(|| format!("cannot make a component from {}", module.display()))?;
        componentize::write(component, &encoded)
    }

    /// The name of the guest in a folder: the last part of the path of its Go module.
    ///
    /// # Errors
    /// If go.mod cannot be read, or names no module.
    pub fn name(folder: &Path) -> Result<String> {
        let file = folder.join("go.mod");
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let path = text.lines().find_map(|line| line.trim().strip_prefix("module "));
        let name = path.and_then(|path| path.trim().trim_matches('"').rsplit('/').next());
        match name {
            Some(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => bail!("{} names no module; run `go mod init NAME`", file.display()),
        }
    }
}

/// The first two numbers of a version as `go version` prints it.
fn number(printed: &str) -> Option<(u32, u32)> {
    let version = printed.split_whitespace().nth(2)?.strip_prefix("go")?;
    let mut numbers = version.split(['.', 'r', 'b']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_compared_as_numbers() {
        assert_eq!(number("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(number("go version go1.25rc1 linux/amd64"), Some((1, 25)));
        assert!(number("go version go1.9.7 linux/amd64") < Some(OLDEST));
        assert_eq!(number("go version devel linux/amd64"), None);
    }

    #[test]
    fn name_is_the_last_part_of_the_module_path() {
        let folder = tempfile::tempdir().unwrap();
        let name = |text: &str| {
            std::fs::write(folder.path().join("go.mod"), text).unwrap();
            Go::name(folder.path())
        };
        assert_eq!(name("module example.com/guests/hello\n\ngo 1.24\n").unwrap(), "hello");
        assert_eq!(name("// A guest.\nmodule hello\n").unwrap(), "hello");
        assert!(name("go 1.24\n").unwrap_err().to_string().ends_with("run `go mod init NAME`"));
    }
}
