//! Components from text, and the sizes of all components.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};

/// The path of the component of a guest.
pub(super) fn path(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.wasm"))
}

/// Makes a component from its text.
///
/// # Errors
/// If the text is no component, or the component cannot be written.
pub(super) fn text(text: &Path, component: &Path) -> Result<()> {
    let encoded =
        wat::parse_file(text).with_context(|| format!("{} is no component", text.display()))?;
    innkeeper_toolchain::componentize::write(component, &encoded)
}

/// Puts a core module that stays one where the components are.
///
/// # Errors
/// If the module cannot be read or written.
pub(super) fn copy(module: &Path, to: &Path) -> Result<()> {
    let bytes = std::fs::read(module)
        .with_context(|| format!("cannot read the compiled policy {}", module.display()))?;
    innkeeper_toolchain::componentize::write(to, &bytes)
}

/// Compresses `bytes` with the best compression of gzip.
///
/// # Errors
/// Those of the encoder.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
