//! A Rust that compiles for wasm: what the machine has, else what can be installed on it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use innkeeper_toolchain::command::ask;
use innkeeper_toolchain::{DEBIAN_PACKAGES, HOW_TO_INSTALL, TARGET, Toolchain};

use crate::command;
use crate::progress::say;

/// The one that is here, or Debian's, installed now where we may. An error says what to install.
///
/// # Errors
/// If there is no toolchain, and none can be installed.
pub(super) fn toolchain(root: &Path) -> Result<Toolchain> {
    let missing = match Toolchain::find(root) {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    let is_root = ask(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0");
    if !is_root || ask(Command::new("apt-get").arg("--version")).is_err() {
        return Err(missing);
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
    apt(&[&["install"][..], &DEBIAN_PACKAGES].concat()).context(HOW_TO_INSTALL)?;
    Toolchain::find(root)
        .with_context(|| format!("{} are installed and yet not usable", DEBIAN_PACKAGES.join(", ")))
}
