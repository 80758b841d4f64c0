use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::Toolchain;
use crate::command::{ask, line};

/// The crate of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The name of the crate.
    pub name: String,
    /// The folder of the crate.
    pub folder: PathBuf,
    /// The target folder of cargo.
    pub target_dir: PathBuf,
}

/// The used parts of `cargo metadata`.
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

/// A line of cargo's output with `--message-format=json`.
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
    /// Reads the `Cargo.toml` in a folder.
    ///
    /// # Errors
    /// If there is none, it cannot be read, or the crate is no guest.
    pub fn read(toolchain: &Toolchain, folder: &Path) -> Result<Self> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("cannot read the folder {}", folder.display()))?;
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            bail!(
                "{} has no Cargo.toml; give the folder of a guest's crate, or create one with `innkeeper new`",
                folder.display()
            );
        }
        let mut cargo = toolchain.cargo();
        cargo
            .current_dir(&folder)
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(&manifest);
        let metadata: Metadata = serde_json::from_str(&ask(&mut cargo)?)
            .with_context(|| format!("cannot parse the output of `{}`", line(&cargo)))?;
        let Some(package) =
            metadata.packages.into_iter().find(|package| package.manifest_path == manifest)
        else {
            bail!("{} is a workspace, not a crate; give the folder of one crate", folder.display());
        };
        if !package.targets.iter().any(Target::is_guest) {
            bail!(
                "{} is no guest: add to its Cargo.toml\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]",
                package.name
            );
        }
        Ok(Self { name: package.name, folder, target_dir: metadata.target_directory })
    }

    /// The call of cargo that builds the crate. The compiler prints to standard error; standard
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

    /// Finds the core module of a build in its output.
    ///
    /// # Errors
    /// If the output names no core module.
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
                format!("cargo built {}, but its output names no WebAssembly file", self.name)
            })
    }

    /// The default path of the component.
    pub fn component(&self) -> PathBuf {
        self.folder.join("target/components").join(format!("{}.wasm", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain() -> Toolchain {
        // The tests use only its cargo.
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
    fn package_is_read_with_its_name_and_component() {
        let folder = crate_with("[lib]\ncrate-type = [\"cdylib\", \"rlib\"]");
        let package = Package::read(&toolchain(), folder.path()).unwrap();
        assert_eq!(package.name, "hello");
        assert!(package.component().ends_with("target/components/hello.wasm"));
    }

    #[test]
    fn read_fails_with_advice_when_the_folder_has_no_guest() {
        let error = |folder: &Path| Package::read(&toolchain(), folder).unwrap_err().to_string();
        assert!(error(crate_with("").path()).contains("crate-type = [\"cdylib\", \"rlib\"]"));
        let empty = tempfile::tempdir().unwrap();
        assert!(error(empty.path()).contains("has no Cargo.toml"));
        assert!(error(&empty.path().join("gone")).contains("cannot read the folder"));
    }

    #[test]
    fn artifact_is_the_module_of_the_crate_and_not_of_dependencies() {
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
        assert!(
            package.artifact("").unwrap_err().to_string().contains("names no WebAssembly file")
        );
    }
}
