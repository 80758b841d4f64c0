//! Makes components from core modules.

use std::path::Path;

use anyhow::{Context as _, Result};

/// Makes a component from a core module with the metadata of wit-bindgen, and validates it.
///
/// Adds no WASI adapter: the error for a module that imports WASI names the import.
///
/// # Errors
/// If the module cannot be read or imports WASI, or the component cannot be written.
pub fn module(module: &Path, component: &Path) -> Result<()> {
    let bytes = std::fs::read(module)
        .with_context(|| format!("cannot read the compiled guest {}", module.display()))?;
    let encoded = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .and_then(|mut encoder| encoder.encode())
        .with_context(|| format!("cannot make a component from {}", module.display()))?;
    write(component, &encoded)
}

/// Writes a component by a rename, so that readers never see a part of it. Creates its folder.
///
/// # Errors
/// If the folder or the file cannot be written.
pub fn write(component: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = component.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let new = component.with_extension("wasm.new");
    std::fs::write(&new, bytes).with_context(|| format!("cannot write {}", new.display()))?;
    std::fs::rename(&new, component)
        .with_context(|| format!("cannot write {}", component.display()))
}
