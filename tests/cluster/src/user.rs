//! A user at a terminal: a folder with the sources' manifests, kubectl and innkeeper.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use innkeeper_controlplane::{ControlPlane, Programs};
use tempfile::TempDir;

use crate::stage::{component_path, prints, program, root};

/// The guests that deploy/guests installs.
pub(crate) const GUESTS: [&str; 6] =
    ["imo", "kabocha", "kuri", "maintpage", "podroute", "postgres"];

/// The folder in which a user works: a copy of `deploy/`, the components where
/// `cargo xtask guests [--deploy]` puts them, and the programs of the user's `PATH`.
#[derive(Debug)]
pub struct UserFolder {
    folder: TempDir,
}

impl UserFolder {
    /// A new one.
    ///
    /// # Errors
    /// What is missing, by name.
    pub fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("innkeeper-deploy-").tempdir()?;
        let path = folder.path();
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(root().join("deploy")).arg(path);
        let copied = copy.status().context("running cp")?;
        ensure!(copied.success(), "{copy:?}: {copied}");
        let (deployed, built) =
            (path.join("deploy/guests/components"), path.join("guests/target/components"));
        fs::create_dir_all(&deployed)?;
        fs::create_dir_all(&built)?;
        for guest in GUESTS {
            let (component, file) = (component_path(guest)?, format!("{guest}.wasm"));
            fs::copy(&component, deployed.join(&file))?;
            symlink(component, built.join(file))?;
        }
        let programs = path.join("bin");
        fs::create_dir(&programs)?;
        symlink(program()?, programs.join("innkeeper"))?;
        let kubectl = Programs::find(&mut |_| ())?.command("kubectl")?;
        // Its program may be one of many in one file.
        let words = std::iter::once(kubectl.get_program()).chain(kubectl.get_args());
        let words: Vec<_> = words.map(|word| format!("'{}'", word.display())).collect();
        let user = Self { folder };
        user.add_program("kubectl", &format!("exec {} \"$@\"", words.join(" ")))?;
        Ok(user)
    }

    /// Where the commands work.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a script that command lines can use as a program.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_program(&self, name: &str, script: &str) -> Result<()> {
        let path = self.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(())
    }

    /// Command lines as a user types them, with all rights; the first that fails ends them.
    pub fn shell(&self, plane: &ControlPlane, lines: &str) -> Command {
        let mut path = self.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command.args(["-e", "-c", lines]).current_dir(self.path()).env("PATH", path);
        command.env("KUBECONFIG", plane.kubeconfig()).stdin(Stdio::null());
        command
    }

    /// What such command lines print.
    ///
    /// # Errors
    /// The lines and their output, if one fails.
    pub async fn run(&self, plane: &ControlPlane, lines: &str) -> Result<String> {
        prints(self.shell(plane, lines)).await
    }
}
