//! An operator of tests/operators.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::command::target;

/// An operator, as its `operator.yaml` describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operator {
    /// The name of the folder.
    #[serde(skip)]
    pub(crate) name: String,
    /// The Go package of the program, in a module that go.mod requires.
    pub(crate) package: String,
    /// Files of the module with the definitions of its kinds.
    pub(crate) definitions: Vec<PathBuf>,
    /// The arguments of the program.
    pub(crate) arguments: Vec<String>,
    /// What holds once the operator has converged.
    pub(crate) converged: Vec<Goal>,
}

/// A value of an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goal {
    /// Resource and name, such as `pods/web`, in the namespace `default`.
    pub(crate) object: String,
    /// A JSONPath as kubectl takes it.
    pub(crate) path: String,
    /// The text of the value.
    pub(crate) value: String,
}

impl Operator {
    /// Reads the operator of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("operator.yaml");
        let failed = || format!("cannot read {}", path.display());
        let text = fs::read_to_string(&path).with_context(failed)?;
        let mut operator: Self = serde_yaml_ng::from_str(&text).with_context(failed)?;
        operator.name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(operator)
    }

    /// Builds the program. Go checks the modules by go.sum.
    pub(crate) fn build(&self, source: &Path) -> Result<PathBuf> {
        let program = target().join("operators").join(&self.name);
        let mut command = go(source);
        command.args(["build", "-trimpath", "-o"]).arg(&program).arg(&self.package);
        let output = command.output().context("cannot run go; install Go 1.25 or later")?;
        if !output.status.success() {
            bail!(
                "go build of {} failed: {}",
                self.package,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(program)
    }

    /// The files with the definitions of its kinds.
    pub(crate) fn definitions(&self, source: &Path) -> Result<Vec<PathBuf>> {
        let mut command = go(source);
        command.args(["list", "-f", "{{.Module.Dir}}", &self.package]);
        let output = command.output().context("cannot run go; install Go 1.25 or later")?;
        let folder = String::from_utf8(output.stdout)?;
        let mut files: Vec<PathBuf> =
            self.definitions.iter().map(|file| Path::new(folder.trim()).join(file)).collect();
        let own = source.join(&self.name).join("objects.yaml");
        if own.exists() {
            files.push(own);
        }
        Ok(files)
    }
}

fn go(source: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(source).env("CGO_ENABLED", "0");
    command
}
