//! A core module becomes a component.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};

/// Where the component of this name lies.
pub(super) fn path(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.wasm"))
}

/// Makes a component of a core module that wit-bindgen has described, and checks it.
///
/// No WASI adapter is added: a module that wants WASI is an error here, by name, as it is in the host.
pub(super) fn module(module: &Path, component: &Path) -> Result<()> {
    let bytes = std::fs::read(module)
        .with_context(|| format!("cannot read the compiled guest {}", module.display()))?;
    let encoded = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .and_then(wit_component::ComponentEncoder::encode)
        .with_context(|| format!("{} cannot be made a component", module.display()))?;
    write(component, &encoded)
}

/// Makes a component of its text.
pub(super) fn text(text: &Path, component: &Path) -> Result<()> {
    let encoded =
        wat::parse_file(text).with_context(|| format!("{} is no component", text.display()))?;
    write(component, &encoded)
}

/// The size of `bytes` when compressed as well as gzip can.
pub(super) fn gzip_bytes(bytes: &[u8]) -> Result<u64> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len() as u64)
}

/// Writes aside and renames: whoever reads the component never sees half of it.
fn write(component: &Path, bytes: &[u8]) -> Result<()> {
    let aside = component.with_extension("wasm.new");
    std::fs::write(&aside, bytes).with_context(|| format!("cannot write {}", aside.display()))?;
    std::fs::rename(&aside, component)
        .with_context(|| format!("cannot write {}", component.display()))
}
