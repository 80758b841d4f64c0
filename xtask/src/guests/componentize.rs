//! Components that are not made of a Rust crate, and what is told of all.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};

/// Where the component of this name lies.
pub(super) fn path(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.wasm"))
}

/// Makes a component of its text.
pub(super) fn text(text: &Path, component: &Path) -> Result<()> {
    let encoded =
        wat::parse_file(text).with_context(|| format!("{} is no component", text.display()))?;
    innkeeper_toolchain::componentize::write(component, &encoded)
}

/// The size of `bytes` when compressed as well as gzip can.
pub(super) fn gzip_bytes(bytes: &[u8]) -> Result<u64> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len() as u64)
}
