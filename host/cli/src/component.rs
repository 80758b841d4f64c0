//! A guest from a file.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use innkeeper_core::foreign;
use innkeeper_modules::{COMPILE_TIME_MAX, check_manifest, read_component};
use innkeeper_sandbox::{CodeCache, Engine, Guest, Interruption, Limits};

use crate::compiler::compile;
use crate::{code_cache, out};

/// A guest and the component that it was loaded from.
pub(crate) struct Opened {
    /// The guest.
    pub(crate) guest: Guest,
    /// The component, decompressed.
    pub(crate) component: innkeeper_modules::Component,
    /// The file of the component.
    pub(crate) path: PathBuf,
}

/// Reads a component, plain or gzip, loads it, and checks its manifest. Prints the warnings that
/// the guest logs when it describes itself. Takes its compiled code from [`code_cache`].
///
/// # Errors
/// If the file cannot be read, is no guest, or has a manifest that the host does not accept; or if
/// the folder cannot be used.
pub(crate) fn open(path: &Path) -> anyhow::Result<Opened> {
    open_with(path, Interruption::Epoch, code_cache::open()?)
}

/// The same with code that is interrupted in this way, and from this cache.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_with(
    path: &Path,
    interruption: Interruption,
    cache: Option<CodeCache>,
) -> anyhow::Result<Opened> {
    // The user waits and can interrupt: the longest time that a Module may allow the compiler.
    let limits = Limits { compile_time: COMPILE_TIME_MAX, ..Limits::default() };
    let component = read_component(path, limits.component_bytes)?;
    let mut engine = Engine::builder()
        .interruption(interruption)
        .compile(compile())
        .guests(1)
        .permits(1)
        .review_permits(1);
    if let Some(cache) = cache {
        engine = engine.cache(cache);
    }
    let guest = engine
        .build()?
        .load(&component.bytes, &limits)
        .with_context(|| format!("{} is not a guest that can be run", path.display()))?;
    if let Err(errors) = check_manifest(guest.manifest()) {
        bail!(
            "{}: the host does not accept the guest's manifest:\n  {}",
            path.display(),
            errors.join("\n  ")
        );
    }
    for warning in guest.describe_warnings() {
        let line = format_args!("warning: {warning}");
        out::eprint(&foreign::one_line(line, foreign::LINE_BYTES_MAX));
    }
    Ok(Opened { guest, component, path: path.to_owned() })
}
