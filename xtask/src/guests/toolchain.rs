//! A Rust that compiles for wasm: what the machine has, else what can be installed on it.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use super::TARGET;
use crate::command;
use crate::progress::say;

/// Debian's packages: a compiler with the wasm backend, its cargo, and std's sources.
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

const HOW_TO_INSTALL: &str = "no Rust on this machine compiles for wasm32-unknown-unknown.\n\
    With rustup:    rustup target add wasm32-unknown-unknown\n\
    On Debian:      apt-get install rustc-web cargo-web rust-web-src";

/// A Rust that compiles for wasm.
#[derive(Debug)]
pub(super) enum Toolchain {
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
    /// Looks for one, in this order: the current Rust with the target added; Debian's
    /// packages; these packages installed now, where we may. An error says what to install.
    pub(super) fn find() -> Result<Self> {
        if let Some(found) = with_target()? {
            return Ok(found);
        }
        if let Some(found) = debian() {
            return Ok(found);
        }
        install()?;
        debian().with_context(|| {
            format!(
                "{} are installed and yet not usable: {DEBIAN_RUSTC} or its sources are missing",
                DEBIAN_PACKAGES.join(", ")
            )
        })
    }

    /// In a few words.
    pub(super) fn description(&self) -> String {
        let (version, how) = match self {
            Self::Target { version } => (version, ""),
            Self::Sources { version, .. } => (
                version,
                " from Debian (the first time on a machine std is built along, about 40 s)",
            ),
        };
        format!("{}{how}", version.lines().next().unwrap_or_default())
    }

    /// What tells this toolchain from others that make other code.
    pub(super) fn identity(&self) -> &str {
        match self {
            Self::Target { version } | Self::Sources { version, .. } => version,
        }
    }

    /// Its cargo.
    pub(super) fn cargo(&self) -> Command {
        match self {
            Self::Target { .. } => command::cargo(&[]),
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

    /// Arguments of every `cargo build`.
    pub(super) fn arguments(&self) -> Vec<String> {
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
        // `--config` adds to the flags of guests/.cargo/config.toml; the environment would replace them.
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

    /// Where cargo builds. Where std is built along, that is shared by all clones with the same
    /// dependencies; otherwise it is the guests' own.
    pub(super) fn target_dir(&self, root: &Path) -> Result<PathBuf> {
        let Self::Sources { version, .. } = self else {
            return Ok(root.join("guests/target"));
        };
        let lockfile = root.join("guests/Cargo.lock");
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

/// Waits until nobody else builds guests in this folder; until the file is dropped nobody does.
pub(super) fn lock(target_dir: &Path) -> Result<File> {
    std::fs::create_dir_all(target_dir)?;
    let path = target_dir.join("innkeeper.lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    if file.try_lock().is_err() {
        say(&format!("guests: waiting for another build in {}", target_dir.display()));
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

/// The Rust that runs us, if it has the target's std.
fn with_target() -> Result<Option<Toolchain>> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let libraries = ask(&rustc, &["--print", "target-libdir", "--target", TARGET])
        .context("cannot ask rustc for its libraries")?;
    let has_std = Path::new(libraries.trim()).read_dir().is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
    });
    if !has_std {
        return Ok(None);
    }
    Ok(Some(Toolchain::Target { version: ask(&rustc, &["--version", "--verbose"])? }))
}

/// Debian's Rust, if it is there with its sources and a linker.
fn debian() -> Option<Toolchain> {
    if !Path::new(DEBIAN_CARGO).is_file() {
        return None;
    }
    let rustc = OsStr::new(DEBIAN_RUSTC);
    let version = ask(rustc, &["--version", "--verbose"]).ok()?;
    let sysroot = ask(rustc, &["--print", "sysroot"]).ok()?;
    // As the compiler names it, which is not where the link leads.
    let sources = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
    if !sources.join("library/std/Cargo.toml").is_file() {
        return None;
    }
    Some(Toolchain::Sources { version, sources, linker: linker()? })
}

/// A linker for wasm: Debian's, or the one of the Rust that runs us.
fn linker() -> Option<PathBuf> {
    let debian = PathBuf::from("/usr/bin/rust-lld");
    if debian.is_file() {
        return Some(debian);
    }
    let rustc = OsStr::new("rustc");
    let sysroot = ask(rustc, &["--print", "sysroot"]).ok()?;
    let version = ask(rustc, &["--version", "--verbose"]).ok()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?;
    let rustup =
        Path::new(sysroot.trim()).join("lib/rustlib").join(host.trim()).join("bin/rust-lld");
    rustup.is_file().then_some(rustup)
}

/// Installs Debian's packages, where there is apt-get and we are root.
fn install() -> Result<()> {
    let is_root = ask(OsStr::new("id"), &["-u"]).is_ok_and(|uid| uid.trim() == "0");
    if !is_root || ask(OsStr::new("apt-get"), &["--version"]).is_err() {
        bail!("{HOW_TO_INSTALL}");
    }
    say(&format!(
        "guests: no Rust here compiles for {TARGET}: installing Debian's {} (about 100 MB)",
        DEBIAN_PACKAGES.join(", ")
    ));
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "-y", "--no-install-recommends"]).args(arguments);
        command::run(apt.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update"]).context(HOW_TO_INSTALL)?;
    apt(&[&["install"][..], &DEBIAN_PACKAGES].concat()).context(HOW_TO_INSTALL)
}

/// What a program prints; an error if it is missing or fails.
fn ask(program: &OsStr, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    let output =
        command.output().with_context(|| format!("cannot run `{}`", command::line(&command)))?;
    if !output.status.success() {
        bail!("`{}` failed:\n{}", command::line(&command), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Where cargo keeps the sources of dependencies.
fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

/// The user's cache folder for this project.
fn cache_folder() -> Result<PathBuf> {
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
