//! Compiled dependencies of the user: a fresh clone copies those of an earlier run into its target
//! folder, and compiles its own packages only. Cargo compares fingerprints as for its own results,
//! so what does not fit is compiled.

mod snapshot;
mod units;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use innkeeper_toolchain::command::ask;
use innkeeper_toolchain::lock;
use serde::Deserialize;

use crate::command::{cargo, line, target_of};
use crate::guests::digest_of;
use crate::metadata::metadata;
use crate::progress::{complain, say};
use crate::user_folder::user_folder;

/// How many snapshots of a workspace are kept: those of a change of dependencies, and of the
/// revision before.
const SNAPSHOTS: usize = 2;

/// The prefix of a snapshot that is not complete.
const INCOMPLETE: &str = ".new-";

/// Variables that change what a compiler makes of a dependency.
const VARIABLES: [&str; 2] = ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"];

/// The compiled dependencies of a workspace.
pub(super) struct Dependencies {
    workspace: &'static str,
    root: PathBuf,
    /// The calls of cargo whose units are kept.
    builds: Vec<Vec<&'static str>>,
}

/// Where a workspace has its snapshots.
struct Place {
    snapshots: PathBuf,
    /// The start of the names of those that this compiler can use.
    prefix: String,
    /// The snapshot of the present dependencies.
    name: String,
}

impl Dependencies {
    /// Those of the workspace in the folder `root`, as these calls of cargo compile them. Its name
    /// is part of the names of its snapshots.
    pub(super) fn new(workspace: &'static str, root: PathBuf, builds: &[&[&'static str]]) -> Self {
        Self { workspace, root, builds: builds.iter().map(|build| build.to_vec()).collect() }
    }

    /// Copies the dependencies of an earlier run into the target folder, if it has none. Says what
    /// it does; an error only costs time.
    pub(super) fn restore(&self) {
        let workspace = self.workspace;
        match self.try_restore() {
            Ok(None) => {}
            Ok(Some(units)) => {
                say(&format!("{workspace}: {units} compiled dependencies of an earlier run"));
            }
            Err(error) => {
                complain(&format!("{workspace}: compiles all dependencies: {error:#}"));
            }
        }
    }

    /// Keeps the dependencies of the target folder for later runs, in place of those that this run
    /// may have restored. Says why if it cannot.
    pub(super) fn keep(&self) {
        if let Err(error) = self.try_keep() {
            complain(&format!("{}: keeps no compiled dependencies: {error:#}", self.workspace));
        }
    }

    fn try_restore(&self) -> Result<Option<usize>> {
        let profile = self.profile();
        if profile.join(".fingerprint").exists() {
            return Ok(None);
        }
        let place = self.place()?;
        let _lock = lock(&place.snapshots, &mut |line| say(line))?;
        let Some(snapshot) = place.best()? else { return Ok(None) };
        snapshot::restore(&snapshot, &profile).map(Some)
    }

    fn try_keep(&self) -> Result<()> {
        let mut hashes = BTreeSet::new();
        for build in &self.builds {
            hashes.extend(units::of_registry(&self.messages(build)?)?);
        }
        let profile = self.profile();
        let units = units::files(&profile, &hashes)?;
        let place = self.place()?;
        let _lock = lock(&place.snapshots, &mut |line| say(line))?;
        place.replace(|folder| snapshot::write(&profile, &units, folder))
    }

    /// The messages of a call of cargo that has nothing left to do.
    fn messages(&self, build: &[&str]) -> Result<String> {
        let (task, arguments) = build.split_first().context("no call of cargo")?;
        let mut command = cargo(&[task, "--message-format=json"]);
        command.args(arguments).current_dir(&self.root);
        let output = command.stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot run `{}`", line(&command)))?;
        if !output.status.success() {
            bail!("`{}` failed ({})", line(&command), output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The folder of the profile in which cargo compiles.
    fn profile(&self) -> PathBuf {
        target_of(&self.root).join("debug")
    }

    fn place(&self) -> Result<Place> {
        let version = ask(Command::new(rustc()).arg("-vV").current_dir(&self.root))?;
        let compiler = digest_of(&self.root, &[version.as_bytes()], Vec::new())?;
        let compiler: String = compiler.chars().take(8).collect();
        let prefix = format!("{}-{compiler}-", self.workspace);
        let name = format!("{prefix}{}", self.key()?);
        Ok(Place { snapshots: user_folder("dependencies")?, prefix, name })
    }

    /// A digest of what decides which dependencies cargo compiles and how.
    fn key(&self) -> Result<String> {
        #[derive(Deserialize)]
        struct Metadata {
            packages: Vec<Package>,
        }
        #[derive(Deserialize)]
        struct Package {
            manifest_path: PathBuf,
        }
        let metadata: Metadata = metadata(&self.root, &["--no-deps"])?;
        let manifests = metadata.packages.into_iter().map(|package| package.manifest_path);
        let files = manifests.chain(["Cargo.toml", "Cargo.lock"].map(|file| self.root.join(file)));
        let files: BTreeSet<PathBuf> = files.collect();
        let flags = VARIABLES.map(|name| std::env::var(name).unwrap_or_default());
        let flags: Vec<&[u8]> = flags.iter().map(String::as_bytes).collect();
        let digest = digest_of(&self.root, &flags, files.into_iter().collect())?;
        Ok(digest.chars().take(12).collect())
    }
}

impl Place {
    /// The snapshot of the present dependencies, or the latest one of others: most of them are the
    /// same.
    fn best(&self) -> Result<Option<PathBuf>> {
        let own = self.snapshots.join(&self.name);
        if own.is_dir() {
            return Ok(Some(own));
        }
        Ok(self.all()?.into_iter().next())
    }

    /// Puts a new snapshot, which `write` writes into its folder, in place of that of the present
    /// dependencies. Then removes incomplete snapshots of runs that were killed, and those that
    /// were not used for longest.
    fn replace(&self, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let folder = tempfile::Builder::new().prefix(INCOMPLETE).tempdir_in(&self.snapshots);
        let folder =
            folder.with_context(|| format!("cannot write in {}", self.snapshots.display()))?;
        write(folder.path())?;
        let own = self.snapshots.join(&self.name);
        remove(&own)?;
        let folder = folder.keep();
        fs::rename(&folder, &own).with_context(|| format!("cannot write {}", own.display()))?;
        for old in self.all()?.into_iter().skip(SNAPSHOTS) {
            remove(&old)?;
        }
        for incomplete in self.with_prefix(INCOMPLETE)? {
            remove(&incomplete)?;
        }
        Ok(())
    }

    /// The snapshots that this compiler can use, the one that was used last first.
    fn all(&self) -> Result<Vec<PathBuf>> {
        let mut all = self.with_prefix(&self.prefix)?;
        let used = |path: &PathBuf| -> Option<SystemTime> {
            path.join(snapshot::LIST).metadata().ok()?.modified().ok()
        };
        all.sort_by_cached_key(|path| std::cmp::Reverse(used(path)));
        Ok(all)
    }

    fn with_prefix(&self, prefix: &str) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        let entries = self.snapshots.read_dir();
        for entry in entries.with_context(|| self.snapshots.display().to_string())? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                paths.push(entry.path());
            }
        }
        Ok(paths)
    }
}

/// Whether a line of cargo's output is about compiling a package of a registry: those of the clone
/// have a path at their end.
pub(super) fn is_compiled(line: &str) -> bool {
    let line = line.trim_start();
    let is_unit = line.starts_with("Compiling ") || line.starts_with("Checking ");
    is_unit && !line.ends_with(')')
}

fn rustc() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;

    fn place(snapshots: &Path, name: &str) -> Place {
        let (prefix, name) = ("host-1-".to_owned(), format!("host-1-{name}"));
        Place { snapshots: snapshots.to_owned(), prefix, name }
    }

    /// Writes a snapshot that was last used some hours ago.
    fn add(place: &Place, hours: u32) {
        place.replace(|folder| Ok(fs::write(folder.join(snapshot::LIST), "{}")?)).unwrap();
        let list = place.snapshots.join(&place.name).join(snapshot::LIST);
        let used = SystemTime::now() - Duration::from_hours(1) * hours;
        File::options().append(true).open(list).unwrap().set_modified(used).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = folder.read_dir().unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn best_snapshot_is_that_of_the_same_dependencies_then_the_latest_of_this_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let snapshots = folder.path();
        let best = |name: &str| {
            let best = place(snapshots, name).best().unwrap()?;
            Some(best.file_name().unwrap().to_str().unwrap().to_owned())
        };
        assert_eq!(best("a"), None);
        add(&place(snapshots, "a"), 2);
        add(&place(snapshots, "b"), 1);
        let other_compiler = Place { prefix: "host-2-".into(), ..place(snapshots, "c") };
        assert_eq!(other_compiler.best().unwrap(), None);
        assert_eq!(best("a").unwrap(), "host-1-a");
        assert_eq!(best("c").unwrap(), "host-1-b");
    }

    #[test]
    fn snapshots_that_were_not_used_for_longest_and_incomplete_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let snapshots = folder.path();
        fs::create_dir(snapshots.join("guests-1-a")).unwrap();
        fs::create_dir(snapshots.join(".new-x")).unwrap();
        add(&place(snapshots, "a"), 1);
        add(&place(snapshots, "b"), 2);
        assert_eq!(names(snapshots), ["guests-1-a", "host-1-a", "host-1-b"]);
        add(&place(snapshots, "c"), 0);
        assert_eq!(names(snapshots), ["guests-1-a", "host-1-a", "host-1-c"]);
    }

    #[test]
    fn snapshot_that_cannot_be_written_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path(), "a");
        add(&place, 1);
        let failed = place.replace(|folder| {
            fs::write(folder.join("half"), "x")?;
            bail!("the disk is full")
        });
        assert!(failed.is_err());
        assert_eq!(names(folder.path()), ["host-1-a"]);
        assert_eq!(names(&folder.path().join("host-1-a")), [snapshot::LIST]);
    }

    #[test]
    fn key_is_the_same_in_each_clone_and_changes_with_a_manifest() {
        let key = |root: &Path| Dependencies::new("host", root.to_owned(), &[]).key().unwrap();
        let clone = || {
            let clone = tempfile::tempdir().unwrap();
            let manifest = "[package]\nname = \"a\"\nedition = \"2024\"\n";
            fs::write(clone.path().join("Cargo.toml"), manifest).unwrap();
            let lock = "version = 4\n[[package]]\nname = \"a\"\nversion = \"0.0.0\"\n";
            fs::write(clone.path().join("Cargo.lock"), lock).unwrap();
            fs::create_dir(clone.path().join("src")).unwrap();
            fs::write(clone.path().join("src/lib.rs"), "").unwrap();
            clone
        };
        let (one, other) = (clone(), clone());
        assert_eq!(key(one.path()), key(other.path()));
        fs::write(other.path().join("src/lib.rs"), "fn changed() {}").unwrap();
        assert_eq!(key(one.path()), key(other.path()));
        let manifest = other.path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap() + "[profile.dev]\nopt-level = 1\n";
        fs::write(manifest, text).unwrap();
        assert_ne!(key(one.path()), key(other.path()));
    }

    #[test]
    fn target_folder_with_results_is_left_alone() {
        let clone = tempfile::tempdir().unwrap();
        fs::create_dir_all(clone.path().join("target/debug/.fingerprint")).unwrap();
        let dependencies = Dependencies::new("host", clone.path().to_owned(), &[]);
        if std::env::var_os("CARGO_TARGET_DIR").is_none() {
            assert_eq!(dependencies.try_restore().unwrap(), None);
        }
    }

    #[test]
    fn compiled_dependency_is_recognised_in_the_output_of_cargo() {
        assert!(is_compiled("   Compiling ring v0.17.14"));
        assert!(is_compiled("    Checking kube v5.0.0"));
        assert!(!is_compiled("   Compiling innkeeper-core v0.1.0 (/clone/host/core)"));
        assert!(!is_compiled("    Finished `dev` profile [unoptimized] target(s) in 1s"));
    }
}
