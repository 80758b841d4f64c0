use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::TARGET;
use crate::command::ask;
use crate::private_folder;

/// Debian's packages: a compiler with the wasm backend, its cargo, and the sources of std.
pub const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

/// The error on a machine without a toolchain.
pub const HOW_TO_INSTALL: &str = "no Rust on this machine compiles for wasm32-unknown-unknown.\n\
    With rustup:    rustup target add wasm32-unknown-unknown\n\
    On Debian:      apt-get install rustc-web cargo-web rust-web-src";

/// A Rust toolchain that compiles for wasm.
#[derive(Debug)]
pub enum Toolchain {
    /// The current Rust has the std of the target.
    Target {
        /// `rustc --version --verbose`.
        version: String,
    },
    /// Debian's Rust has the sources of std, which cargo compiles with the guest.
    Sources {
        /// `rustc --version --verbose`.
        version: String,
        /// The folder with the sources of std.
        sources: PathBuf,
        /// The linker for wasm.
        linker: PathBuf,
    },
}

impl Toolchain {
    /// Finds a toolchain: the current Rust of `folder` if it has the target, or Debian's packages.
    ///
    /// # Errors
    /// If there is none. The error says what to install.
    pub fn find(folder: &Path) -> Result<Self> {
        if let Some(found) = with_target(folder) {
            return Ok(found);
        }
        match debian(folder)? {
            Some(found) => Ok(found),
            None => bail!("{HOW_TO_INSTALL}"),
        }
    }

    /// A short description.
    pub fn description(&self) -> String {
        let (version, how) = match self {
            Self::Target { version } => (version, ""),
            Self::Sources { version, .. } => (version, " from Debian"),
        };
        format!("{}{how}", version.lines().next().unwrap_or_default())
    }

    /// Identifies the toolchain: another one may generate different code.
    pub fn identity(&self) -> &str {
        match self {
            Self::Target { version } | Self::Sources { version, .. } => version,
        }
    }

    /// A call of its cargo.
    pub fn cargo(&self) -> Command {
        match self {
            // Cargo sets CARGO when it runs this program: the same toolchain.
            Self::Target { .. } => {
                Command::new(variable("CARGO").unwrap_or_else(|| "cargo".into()))
            }
            Self::Sources { linker, .. } => {
                let mut cargo = Command::new(DEBIAN_CARGO);
                cargo
                    .env("RUSTC", DEBIAN_RUSTC)
                    // Allows the -Z flags in a stable compiler.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                    // Rustup and cargo set these for the toolchain that runs this program.
                    .env_remove("RUSTUP_TOOLCHAIN")
                    .env_remove("RUSTDOC")
                    .env_remove("LD_LIBRARY_PATH");
                cargo
            }
        }
    }

    /// A call of `cargo build` for guests, in release mode for [`TARGET`]. The caller adds the
    /// package and the folder.
    pub fn build(&self) -> Command {
        let mut cargo = self.cargo();
        cargo
            .args(["build", "--release", "--target", TARGET])
            .args(self.arguments())
            // They would replace the linker flags of the guest's .cargo/config.toml.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("CARGO_BUILD_RUSTFLAGS");
        cargo
    }

    fn arguments(&self) -> Vec<String> {
        // Panic messages contain paths of source files. Without the folders of this machine every
        // machine builds the same component. (Paths in the workspace are relative already.)
        let mut remaps = Vec::new();
        if let Some(cargo_home) = cargo_home() {
            remaps.push((cargo_home.join("registry/src"), "crates"));
        }
        if let Self::Sources { sources, .. } = self {
            remaps.push((sources.clone(), "rust"));
        }
        let flags: Vec<String> = remaps
            .iter()
            .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
            .collect();
        // `--config` adds to the flags of .cargo/config.toml; the environment would replace them.
        let mut arguments = vec![
            "--config".to_owned(),
            format!("target.{TARGET}.rustflags={}", serde_json::json!(flags)),
        ];
        if let Self::Sources { .. } = self {
            arguments.push("-Zbuild-std=std,panic_abort".to_owned());
            // Several clones share the target folder: cargo must compare contents, not times.
            arguments.push("-Zchecksum-freshness".to_owned());
        }
        arguments
    }

    /// Whether cargo has to compile std first, because this target folder does not have it.
    pub fn must_compile_std(&self, target_dir: &Path) -> bool {
        let Self::Sources { .. } = self else { return false };
        !has_std(&target_dir.join(TARGET).join("release/deps"))
    }

    /// The user's target folder for crates that have only cargo's default, if cargo compiles std:
    /// all these crates share it, so that cargo compiles std once. `None` if std is installed.
    ///
    /// # Errors
    /// If the environment names no cache folder.
    pub fn user_target_dir(&self) -> Result<Option<PathBuf>> {
        let Self::Sources { version, .. } = self else { return Ok(None) };
        let key: String = hex::encode(Sha256::digest(version)).chars().take(12).collect();
        Ok(Some(builds_folder()?.join(key)))
    }

    /// The target folder for the guests of a workspace. If cargo compiles std, all clones with the
    /// same dependencies share it; otherwise the workspace has its own.
    ///
    /// # Errors
    /// If Cargo.lock cannot be read, or the folder cannot be made.
    pub fn shared_target_dir(&self, guests: &Path) -> Result<PathBuf> {
        let Self::Sources { version, .. } = self else {
            return Ok(guests.join("target"));
        };
        let lockfile = guests.join("Cargo.lock");
        let lock = std::fs::read(&lockfile)
            .with_context(|| format!("cannot read {}", lockfile.display()))?;
        let mut digest = Sha256::new();
        digest.update(version);
        digest.update(lock);
        let key: String = hex::encode(digest.finalize()).chars().take(12).collect();
        let cache = cache_folder()?;
        let target_dir = cache.join("guests").join(key);
        private_folder::create(&target_dir, &cache)?;
        Ok(target_dir)
    }
}

/// The current Rust of the folder, if it has the std of the target.
fn with_target(folder: &Path) -> Option<Toolchain> {
    let rustc = variable("RUSTC").unwrap_or_else(|| "rustc".into());
    let libraries =
        rustc_output(&rustc, folder, &["--print", "target-libdir", "--target", TARGET])?;
    if !has_std(Path::new(libraries.trim())) {
        return None;
    }
    Some(Toolchain::Target { version: rustc_output(&rustc, folder, &["--version", "--verbose"])? })
}

/// Whether a folder has a compiled std.
fn has_std(libraries: &Path) -> bool {
    libraries.read_dir().is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
    })
}

/// Debian's Rust, if it is installed with the sources of std.
///
/// # Errors
/// If only the linker is missing.
fn debian(folder: &Path) -> Result<Option<Toolchain>> {
    let Some((version, sources)) = debian_sources(folder) else { return Ok(None) };
    let Some(linker) = linker(folder) else {
        bail!(
            "no linker for wasm (rust-lld) found for {DEBIAN_RUSTC}; install a Rust with rustup, and add its rustc to PATH"
        );
    };
    Ok(Some(Toolchain::Sources { version, sources, linker }))
}

fn debian_sources(folder: &Path) -> Option<(String, PathBuf)> {
    if !Path::new(DEBIAN_CARGO).is_file() {
        return None;
    }
    let rustc = OsStr::new(DEBIAN_RUSTC);
    let version = rustc_output(rustc, folder, &["--version", "--verbose"])?;
    let sysroot = rustc_output(rustc, folder, &["--print", "sysroot"])?;
    // The path as the compiler names it, without following links.
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    sources.join("library/std/Cargo.toml").is_file().then_some((version, sources))
}

/// A linker for wasm: Debian's, or the one of the current Rust.
fn linker(folder: &Path) -> Option<PathBuf> {
    let debian = PathBuf::from("/usr/bin/rust-lld");
    if debian.is_file() {
        return Some(debian);
    }
    let rustc = OsStr::new("rustc");
    let sysroot = rustc_output(rustc, folder, &["--print", "sysroot"])?;
    let version = rustc_output(rustc, folder, &["--version", "--verbose"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?;
    let rustup =
        Path::new(sysroot.trim()).join("lib/rustlib").join(host.trim()).join("bin/rust-lld");
    rustup.is_file().then_some(rustup)
}

/// The output of a rustc in a folder, which may choose the toolchain; `None` if it is missing or
/// fails.
fn rustc_output(rustc: &OsStr, folder: &Path, arguments: &[&str]) -> Option<String> {
    ask(Command::new(rustc).args(arguments).current_dir(folder)).ok()
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The folder in which cargo keeps the sources of dependencies.
fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

/// The user's cache folder for this project.
///
/// # Errors
/// If the environment names no folder.
pub fn cache_folder() -> Result<PathBuf> {
    // The specification of the variable says to ignore a relative path.
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = match named.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder,
        None => std::env::home_dir()
            .context("no cache folder: neither XDG_CACHE_HOME nor HOME is set; set one of them")?
            .join(".cache"),
    };
    Ok(cache.join("innkeeper"))
}

/// The folder with the user's target folders of [`Toolchain::user_target_dir`].
///
/// # Errors
/// If the environment names no cache folder.
pub(crate) fn builds_folder() -> Result<PathBuf> {
    Ok(cache_folder()?.join("builds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(version: &str) -> Toolchain {
        let (sources, linker) = (PathBuf::new(), PathBuf::new());
        Toolchain::Sources { version: version.to_owned(), sources, linker }
    }

    #[test]
    fn user_has_one_target_folder_for_each_compiler_that_compiles_std() {
        let folder = |version: &str| sources(version).user_target_dir().unwrap().unwrap();
        assert_eq!(folder("1.96"), folder("1.96"));
        assert_ne!(folder("1.96"), folder("1.97"));
        assert!(folder("1.96").starts_with(cache_folder().unwrap().join("builds")));
        let installed = Toolchain::Target { version: "1.96".to_owned() };
        assert_eq!(installed.user_target_dir().unwrap(), None);
    }

    #[test]
    fn std_is_compiled_only_if_neither_the_toolchain_nor_the_target_folder_has_it() {
        let target = tempfile::tempdir().unwrap();
        assert!(sources("1.96").must_compile_std(target.path()));
        let installed = Toolchain::Target { version: "1.96".to_owned() };
        assert!(!installed.must_compile_std(target.path()));
        let libraries = target.path().join(TARGET).join("release/deps");
        std::fs::create_dir_all(&libraries).unwrap();
        std::fs::write(libraries.join("libstd-0123.rlib"), "").unwrap();
        assert!(!sources("1.96").must_compile_std(target.path()));
    }
}
