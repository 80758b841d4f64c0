//! A guest of `guests/laws.yaml`, and how to check it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::command::root;

/// A guest, and what the check has to know of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Subject {
    /// The name of the guest.
    pub(super) guest: String,
    /// Files with its samples, relative to the folder of the guests.
    samples: Vec<String>,
    /// Laws that it breaks by design.
    #[serde(default)]
    skip: Vec<String>,
    /// Fields that hold a history.
    #[serde(default)]
    history: Vec<String>,
}

impl Subject {
    /// The guests with these names; all of them if there are no names.
    ///
    /// # Errors
    /// If the file cannot be read, or has no guest of a name.
    pub(super) fn named(names: &[String]) -> Result<Vec<Self>> {
        let path = root().join("guests/laws.yaml");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let all: Vec<Self> =
            serde_yaml_ng::from_str(&text).with_context(|| path.display().to_string())?;
        if let Some(name) = names.iter().find(|name| all.iter().all(|one| one.guest != **name)) {
            let known: Vec<&str> = all.iter().map(|one| one.guest.as_str()).collect();
            bail!("guests/laws.yaml has no guest `{name}`; it has {}", known.join(", "));
        }
        let is_named = |one: &Self| names.is_empty() || names.contains(&one.guest);
        Ok(all.into_iter().filter(is_named).collect())
    }

    /// The command that checks the guest, without the flags that say how much.
    pub(super) fn check(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(root().join("guests"));
        command.arg("check").arg(format!("target/components/{}.wasm", self.guest));
        let flags = [("--samples", &self.samples), ("--skip", &self.skip)];
        for (flag, values) in flags.into_iter().chain([("--history", &self.history)]) {
            for value in values {
                command.args([flag, value]);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_samples_exist_and_every_flag_is_given() {
        for subject in Subject::named(&[]).unwrap() {
            for sample in &subject.samples {
                assert!(root().join("guests").join(sample).is_file(), "{sample}");
            }
        }
        let kuri = &Subject::named(&["kuri".to_owned()]).unwrap()[0];
        let line = crate::command::line(&kuri.check(Path::new("innkeeper")));
        for part in ["kuri.wasm", "--samples kuri/samples/kuri.yaml", "--skip rollback"] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn unknown_guest_is_refused_with_the_known_names() {
        let error = Subject::named(&["kuro".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`kuro`") && error.contains("kuri"), "{error}");
    }
}
