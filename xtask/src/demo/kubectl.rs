//! kubectl, for what the demo does as a user would.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::Programs;
use serde_json::{Value, json};

use crate::command::line;

/// kubectl with one kubeconfig.
pub(super) struct Kubectl {
    programs: Programs,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// The control plane's own kubectl.
    pub(super) fn new(kubeconfig: &Path) -> Result<Self> {
        let programs = Programs::find(&mut |_| ())?;
        Ok(Self { programs, kubeconfig: kubeconfig.to_owned() })
    }

    /// Runs it, and gives what it writes.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = self.output(arguments)?;
        if !output.status.success() {
            bail!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        String::from_utf8(output.stdout).context("kubectl wrote something unreadable")
    }

    /// The object, or JSON null if it or its kind is not there.
    pub(super) fn get(&self, kind: &str, namespace: &str, name: &str) -> Result<Value> {
        let mut arguments = vec!["get", kind, name, "-o", "json", "--ignore-not-found"];
        if !namespace.is_empty() {
            arguments.extend(["-n", namespace]);
        }
        read(&self.output(&arguments)?)
    }

    /// Everything that the demo shows. Kinds that are not served yet give nothing.
    pub(super) fn objects(&self, namespace: &str) -> Result<Vec<Value>> {
        let mut objects = Vec::new();
        for (kinds, place) in [
            ("modules.innkeeper.dev", None),
            ("podroutes.quay.io", Some(namespace)),
            ("deployments,services", Some(namespace)),
        ] {
            let mut arguments = vec!["get", kinds, "-o", "json", "--ignore-not-found"];
            arguments.extend(place.into_iter().flat_map(|namespace| ["-n", namespace]));
            if let Value::Array(items) = read(&self.output(&arguments)?)?["items"].take() {
                objects.extend(items);
            }
        }
        Ok(objects)
    }

    /// Server-side apply of a file.
    pub(super) fn apply_file(&self, path: &Path) -> Result<()> {
        self.apply(path, &[])
    }

    /// The same into a namespace.
    pub(super) fn apply_file_in(&self, namespace: &str, path: &Path) -> Result<()> {
        self.apply(path, &["-n", namespace])
    }

    /// A merge patch.
    pub(super) fn merge(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<()> {
        let patch = patch.to_string();
        self.run(&["patch", kind, name, "-n", namespace, "--type", "merge", "-p", &patch]).map(drop)
    }

    fn apply(&self, path: &Path, more: &[&str]) -> Result<()> {
        let path = path.to_string_lossy();
        let mut arguments = vec!["apply", "--server-side", "-f", &path];
        arguments.extend(more);
        self.run(&arguments).map(drop)
    }

    fn output(&self, arguments: &[&str]) -> Result<Output> {
        let mut command: Command = self.programs.command("kubectl")?;
        command.env("KUBECONFIG", &self.kubeconfig).args(arguments).stdin(Stdio::null());
        command.output().with_context(|| format!("cannot run `{}`", line(&command)))
    }
}

/// JSON that kubectl wrote; null if it wrote nothing, or does not know the kind.
fn read(output: &Output) -> Result<Value> {
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        if error.contains("doesn't have a resource type") || error.contains("NotFound") {
            return Ok(json!(null));
        }
        bail!("kubectl get: {error}");
    }
    if output.stdout.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!(null));
    }
    serde_json::from_slice(&output.stdout).context("kubectl wrote something unreadable")
}
