use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::Toolchain;
use crate::command::{ask, line};

/// The crate of a folder, as far as a guest is made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Where cargo builds it.
    pub target_dir: PathBuf,
}

/// The parts of `cargo metadata` that are used here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    crate_types: Vec<String>,
}

impl Target {
    fn is_guest(&self) -> bool {
        self.crate_types.iter().any(|one| one == "cdylib")
    }
}

/// A line of what cargo prints with `--message-format=json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    manifest_path: PathBuf,
    target: Option<Target>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

impl Package {
    /// The crate whose `Cargo.toml` lies in this folder.
    ///
    /// # Errors
    /// If there is none, it cannot be read, or it is no guest: says what to do.
    pub fn read(toolchain: &Toolchain, folder: &Path) -> Result<Self> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("the folder {} cannot be read", folder.display()))?;
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            bail!(
                "{} has no Cargo.toml: give the folder of a guest's crate; `innkeeper new` makes one",
                folder.display()
            );
        }
        let mut cargo = toolchain.cargo();
        cargo
            .current_dir(&folder)
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(&manifest);
        let metadata: Metadata = serde_json::from_str(&ask(&mut cargo)?)
            .with_context(|| format!("`{}` gave something unreadable", line(&cargo)))?;
        let Some(package) =
            metadata.packages.into_iter().find(|package| package.manifest_path == manifest)
        else {
            bail!("{} is a workspace, not a crate: give the folder of one crate", folder.display());
        };
        if !package.targets.iter().any(Target::is_guest) {
            bail!(
                "{} is no guest: its Cargo.toml needs\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]",
                package.name
            );
        }
        Ok(Self { name: package.name, folder, target_dir: metadata.target_directory })
    }

    /// The call of cargo that builds it. What the compiler says goes to standard error; standard
    /// output is for [`Self::artifact`].
    pub fn build(&self, toolchain: &Toolchain) -> Command {
        let mut cargo = toolchain.build();
        cargo
            .current_dir(&self.folder)
            .args(["--lib", "--message-format=json-render-diagnostics", "--manifest-path"])
            .arg(self.folder.join("Cargo.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        cargo
    }

    /// The core module that a build has made, by what it printed.
    pub fn artifact(&self, printed: &str) -> Result<PathBuf> {
        let manifest = self.folder.join("Cargo.toml");
        printed
            .lines()
            .filter_map(|line| serde_json::from_str::<Message>(line).ok())
            .filter(|message| {
                message.reason == "compiler-artifact"
                    && message.manifest_path == manifest
                    && message.target.as_ref().is_some_and(Target::is_guest)
            })
            .flat_map(|message| message.filenames)
            .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
            .with_context(|| {
                format!(
                    "cargo has built {} and names no file of WebAssembly that it made",
                    self.name
                )
            })
    }

    /// Where its component is put, unless one says otherwise.
    pub fn component(&self) -> PathBuf {
        self.folder.join("target/components").join(format!("{}.wasm", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain() -> Toolchain {
        // No more than its cargo is used here.
        Toolchain::Target { version: String::new() }
    }

    fn crate_with(lib: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let manifest =
            format!("[package]\nname = \"hello\"\nedition = \"2024\"\n{lib}\n[workspace]\n");
        std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/lib.rs"), "").unwrap();
        folder
    }

    #[test]
    fn a_guest_is_read_with_its_name_and_place() {
        let folder = crate_with("[lib]\ncrate-type = [\"cdylib\", \"rlib\"]");
        let package = Package::read(&toolchain(), folder.path()).unwrap();
        assert_eq!(package.name, "hello");
        assert!(package.component().ends_with("target/components/hello.wasm"));
    }

    #[test]
    fn what_is_no_guest_is_said_with_what_it_needs() {
        let told = |folder: &Path| Package::read(&toolchain(), folder).unwrap_err().to_string();
        assert!(told(crate_with("").path()).contains("crate-type = [\"cdylib\", \"rlib\"]"));
        let empty = tempfile::tempdir().unwrap();
        assert!(told(empty.path()).contains("has no Cargo.toml"));
        assert!(told(&empty.path().join("gone")).contains("gone cannot be read"));
    }

    #[test]
    fn the_module_is_found_among_what_cargo_says_of_dependencies() {
        let package =
            Package { name: "hello".into(), folder: "hello".into(), target_dir: "target".into() };
        let message = |manifest: &str, types: &str, file: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","target":{{"crate_types":["{types}"]}},"filenames":["{file}"]}}"#
            )
        };
        let printed = [
            r#"{"reason":"build-script-executed","package_id":"x"}"#.to_owned(),
            message("serde/Cargo.toml", "cdylib", "serde.wasm"),
            message("hello/Cargo.toml", "bin", "tool.wasm"),
            message("hello/Cargo.toml", "cdylib", "hello.wasm"),
        ];
        assert_eq!(package.artifact(&printed.join("\n")).unwrap(), Path::new("hello.wasm"));
        assert!(package.artifact("").unwrap_err().to_string().contains("names no file"));
    }
}
