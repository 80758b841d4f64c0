use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::command::{ask, line};
use crate::{TARGET, Toolchain};

/// The crate of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// The name of the crate.
    pub name: String,
    /// The folder of the crate.
    pub folder: PathBuf,
    /// The name of the crate's library, which names the file of the core module.
    pub library: String,
    /// The target folder for the build. Crates share it if cargo compiles std and neither the
    /// environment nor the configuration of cargo names another.
    pub target_dir: PathBuf,
}

/// The used parts of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    #[serde(default)]
    name: String,
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
                "{} has neither Cargo.toml nor go.mod; give the folder of a guest, or create one with `innkeeper new`",
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
        let Some(library) = package.targets.into_iter().find(Target::is_guest) else {
            bail!(
                "{} is no guest: add to its Cargo.toml\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]",
                package.name
            );
        };
        let default = metadata.workspace_root.join("target");
        let is_default = metadata.target_directory == default;
        let shared = if is_default { toolchain.user_target_dir()? } else { None };
        let target_dir = shared.unwrap_or(metadata.target_directory);
        Ok(Self { name: package.name, folder, library: library.name, target_dir })
    }

    /// Makes cargo build the crate again if another crate with a library of its name was built in
    /// the target folder: the module has the same file name, and cargo would take it for this
    /// crate's. The caller holds the [`lock`](crate::lock) of the folder.
    ///
    /// # Errors
    /// If a file of the target folder cannot be read, written or removed.
    pub fn claim(&self) -> Result<()> {
        let libraries = self.target_dir.join("innkeeper-libraries");
        // Cargo writes `my-lib` and `my_lib` to one file.
        let file = libraries.join(self.library.replace('-', "_"));
        let owner = format!("{}\n{}", self.name, self.folder.display());
        let previous = std::fs::read_to_string(&file).ok();
        if previous.as_deref() == Some(&*owner) {
            return Ok(());
        }
        self.remove_fingerprints(&self.name)?;
        if let Some((name, _)) = previous.as_deref().and_then(|owner| owner.split_once('\n')) {
            self.remove_fingerprints(name)?;
        }
        std::fs::create_dir_all(&libraries)
            .and_then(|()| std::fs::write(&file, owner.as_bytes()))
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Removes what cargo knows of the builds of a crate.
    fn remove_fingerprints(&self, name: &str) -> Result<()> {
        let fingerprints = self.target_dir.join(TARGET).join("release/.fingerprint");
        let prefix = format!("{name}-");
        for entry in fingerprints.read_dir().into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                std::fs::remove_dir_all(entry.path())
                    .with_context(|| format!("cannot remove {}", entry.path().display()))?;
            }
        }
        Ok(())
    }

    /// The call of cargo that builds the crate. The compiler prints to standard error; standard
    /// output is for [`Self::artifact`].
    pub fn build(&self, toolchain: &Toolchain) -> Command {
        let mut cargo = toolchain.build();
        cargo
            .current_dir(&self.folder)
            .args(["--lib", "--message-format=json-render-diagnostics", "--manifest-path"])
            .arg(self.folder.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&self.target_dir)
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
        assert_eq!(package.library, "hello");
        assert!(package.component().ends_with("target/components/hello.wasm"));
    }

    #[test]
    fn crate_is_built_again_after_another_crate_of_its_name() {
        let target = tempfile::tempdir().unwrap();
        let fingerprints = target.path().join(TARGET).join("release/.fingerprint");
        let (mine, other) = (fingerprints.join("hello-0123"), fingerprints.join("serde-0123"));
        std::fs::create_dir_all(&other).unwrap();
        let package = |folder: &str| Package {
            name: "hello".into(),
            folder: folder.into(),
            library: "hello".into(),
            target_dir: target.path().to_owned(),
        };
        let claim = |folder: &str| {
            std::fs::create_dir_all(&mine).unwrap();
            package(folder).claim().unwrap();
            mine.exists()
        };
        assert!(!claim("/a/hello"), "cargo's own state may be of a build before");
        assert!(claim("/a/hello"), "the same crate is not built again");
        assert!(!claim("/b/hello"));
        assert!(!claim("/a/hello"));
        assert!(other.exists(), "the dependencies stay");
    }

    #[test]
    fn crate_is_built_again_after_a_crate_of_another_name_with_its_library() {
        let target = tempfile::tempdir().unwrap();
        let fingerprints = target.path().join(TARGET).join("release/.fingerprint");
        let claim = |name: &str, library: &str| {
            let package = Package {
                name: name.into(),
                folder: format!("/guests/{name}").into(),
                library: library.into(),
                target_dir: target.path().to_owned(),
            };
            package.claim().unwrap();
            let of = |name: &str| fingerprints.join(format!("{name}-0123"));
            let exist = (of("first").exists(), of("second").exists());
            std::fs::create_dir_all(of("first")).unwrap();
            std::fs::create_dir_all(of("second")).unwrap();
            exist
        };
        claim("first", "my_guest");
        assert_eq!(claim("second", "my-guest"), (false, false));
        assert_eq!(claim("second", "my-guest"), (true, true));
        assert_eq!(claim("first", "my_guest"), (false, false));
    }

    #[test]
    fn read_fails_with_advice_when_the_folder_has_no_guest() {
        let error = |folder: &Path| Package::read(&toolchain(), folder).unwrap_err().to_string();
        assert!(error(crate_with("").path()).contains("crate-type = [\"cdylib\", \"rlib\"]"));
        let empty = tempfile::tempdir().unwrap();
        assert!(error(empty.path()).contains("has neither Cargo.toml nor go.mod"));
        assert!(error(&empty.path().join("gone")).contains("cannot read the folder"));
    }

    #[test]
    fn artifact_is_the_module_of_the_crate_and_not_of_dependencies() {
        let package = Package {
            name: "hello".into(),
            folder: "hello".into(),
            library: "hello".into(),
            target_dir: "target".into(),
        };
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
