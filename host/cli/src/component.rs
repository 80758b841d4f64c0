//! A guest from a file, for the commands that need no cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use innkeeper_modules::{COMPILE_TIME_MAX, check_manifest, read_component};
use innkeeper_sandbox::{Compile, Engine, Guest, Limits};

/// A guest, and the component that it was loaded from.
pub(crate) struct Opened {
    /// The guest.
    pub(crate) guest: Guest,
    /// The component, unpacked.
    pub(crate) component: innkeeper_modules::Component,
}

/// Reads a component, plain or gzip, loads it, and checks what it describes.
pub(crate) fn open(path: &Path) -> anyhow::Result<Opened> {
    // Whoever calls this waits, and can end it: as long as a Module may give the compiler.
    let limits = Limits { compile_time: COMPILE_TIME_MAX, ..Limits::default() };
    let component = read_component(path, limits.component_bytes)?;
    let engine = Engine::builder().compile(compile()).guests(1).permits(1).build()?;
    let guest = engine
        .load(&component.bytes, &limits)
        .with_context(|| format!("{} is not a guest that can be run", path.display()))?;
    if let Err(errors) = check_manifest(guest.manifest()) {
        bail!(
            "{}: what the guest describes cannot be used:\n  {}",
            path.display(),
            errors.join("\n  ")
        );
    }
    Ok(Opened { guest, component })
}

/// In a child, as the operator does: it bounds the time and the memory. Without knowing this
/// program's file there is no child.
pub(crate) fn compile() -> Compile {
    std::env::current_exe().map_or(Compile::InProcess, |program: PathBuf| Compile::Child(program))
}
