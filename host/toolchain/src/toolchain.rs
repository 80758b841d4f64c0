use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use crate::TARGET;
use crate::command::ask;

/// Debian's packages: a compiler with the wasm backend, its cargo, and std's sources.
pub const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

/// What is said where there is none.
pub const HOW_TO_INSTALL: &str = "no Rust on this machine compiles for wasm32-unknown-unknown.\n\
    With rustup:    rustup target add wasm32-unknown-unknown\n\
    On Debian:      apt-get install rustc-web cargo-web rust-web-src";

/// A Rust that compiles for wasm.
#[derive(Debug)]
pub enum Toolchain {
    /// The Rust that runs us has the target's std.
    Target {
        /// `rustc --version --verbose`.
        version: String,
    },
    /// Debian's, which brings std as sources: it is built along.
    Sources {
        /// `rustc --version --verbose`.
        version: String,
        /// Where std's sources lie.
        sources: PathBuf,
        /// Links wasm.
        linker: PathBuf,
    },
}

impl Toolchain {
    /// Looks for one, in this order: the Rust that is current in `folder`, with the target added;
    /// Debian's packages.
    ///
    /// # Errors
    /// If there is none: what to install.
    pub fn find(folder: &Path) -> Result<Self> {
        if let Some(found) = with_target(folder) {
            return Ok(found);
        }
        match debian(folder)? {
            Some(found) => Ok(found),
            None => bail!("{HOW_TO_INSTALL}"),
        }
    }

    /// In a few words.
    pub fn description(&self) -> String {
        let (version, how) = match self {
            Self::Target { version } => (version, ""),
            Self::Sources { version, .. } => {
                (version, " from Debian, which builds std along (about 40 s the first time)")
            }
        };
        format!("{}{how}", version.lines().next().unwrap_or_default())
    }

    /// What tells this toolchain from others that make other code.
    pub fn identity(&self) -> &str {
        match self {
            Self::Target { version } | Self::Sources { version, .. } => version,
        }
    }

    /// Its cargo.
    pub fn cargo(&self) -> Command {
        match self {
            // Set by cargo when it runs us: the same toolchain.
            Self::Target { .. } => {
                Command::new(variable("CARGO").unwrap_or_else(|| "cargo".into()))
            }
            Self::Sources { linker, .. } => {
                let mut cargo = Command::new(DEBIAN_CARGO);
                cargo
                    .env("RUSTC", DEBIAN_RUSTC)
                    // For -Z below, in a stable compiler.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                    // Set by rustup and cargo for the toolchain that runs us.
                    .env_remove("RUSTUP_TOOLCHAIN")
                    .env_remove("RUSTDOC")
                    .env_remove("LD_LIBRARY_PATH");
                cargo
            }
        }
    }

    /// `cargo build` of guests: in release, for [`TARGET`]. What is to be built, and where, is
    /// added.
    pub fn build(&self) -> Command {
        let mut cargo = self.cargo();
        cargo
            .args(["build", "--release", "--target", TARGET])
            .args(self.arguments())
            // They would displace the link settings of a guest's .cargo/config.toml.
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("CARGO_BUILD_RUSTFLAGS");
        cargo
    }

    fn arguments(&self) -> Vec<String> {
        // Panic messages name source files: without this machine's folders a component is the
        // same wherever it was built. (Files of the workspace are relative already.)
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
            // Several clones share the target folder: what is fresh must be told by contents.
            arguments.push("-Zchecksum-freshness".to_owned());
        }
        arguments
    }

    /// Where cargo builds the guests of a workspace in `guests`. Where std is built along, that is
    /// shared by all clones with the same dependencies; otherwise it is the workspace's own.
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
        let target_dir = cache_folder()?.join("guests").join(key);
        std::fs::create_dir_all(&target_dir)
            .with_context(|| format!("cannot make {}", target_dir.display()))?;
        Ok(target_dir)
    }
}

/// The Rust that is current in the folder, if it has the target's std.
fn with_target(folder: &Path) -> Option<Toolchain> {
    let rustc = variable("RUSTC").unwrap_or_else(|| "rustc".into());
    let libraries = rustc_says(&rustc, folder, &["--print", "target-libdir", "--target", TARGET])?;
    let has_std = Path::new(libraries.trim()).read_dir().is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
    });
    if !has_std {
        return None;
    }
    Some(Toolchain::Target { version: rustc_says(&rustc, folder, &["--version", "--verbose"])? })
}

/// Debian's Rust, if it is there with its sources; an error if all is there but a linker.
fn debian(folder: &Path) -> Result<Option<Toolchain>> {
    let Some((version, sources)) = debian_sources(folder) else { return Ok(None) };
    let Some(linker) = linker(folder) else {
        bail!(
            "{DEBIAN_RUSTC} and the sources of std are here, but no linker for wasm (rust-lld), which comes with a Rust of rustup: install one, and put its rustc into PATH"
        );
    };
    Ok(Some(Toolchain::Sources { version, sources, linker }))
}

fn debian_sources(folder: &Path) -> Option<(String, PathBuf)> {
    if !Path::new(DEBIAN_CARGO).is_file() {
        return None;
    }
    let rustc = OsStr::new(DEBIAN_RUSTC);
    let version = rustc_says(rustc, folder, &["--version", "--verbose"])?;
    let sysroot = rustc_says(rustc, folder, &["--print", "sysroot"])?;
    // As the compiler names it, which is not where the link leads.
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
    let sysroot = rustc_says(rustc, folder, &["--print", "sysroot"])?;
    let version = rustc_says(rustc, folder, &["--version", "--verbose"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?;
    let rustup =
        Path::new(sysroot.trim()).join("lib/rustlib").join(host.trim()).join("bin/rust-lld");
    rustup.is_file().then_some(rustup)
}

/// What this rustc prints in this folder, where a file may choose the toolchain; `None` if it is
/// not there or refuses.
fn rustc_says(rustc: &OsStr, folder: &Path, arguments: &[&str]) -> Option<String> {
    ask(Command::new(rustc).args(arguments).current_dir(folder)).ok()
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Where cargo keeps the sources of dependencies.
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
    let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => std::env::home_dir()
            .context(
                "neither XDG_CACHE_HOME nor HOME is set: there is no folder to cache builds in",
            )?
            .join(".cache"),
    };
    Ok(cache.join("innkeeper"))
}
