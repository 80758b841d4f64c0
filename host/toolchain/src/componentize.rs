//! A core module becomes a component.

use std::path::Path;

use anyhow::{Context as _, Result};

/// Makes a component of a core module that wit-bindgen has described, and checks it.
///
/// No WASI adapter is added: a module that wants WASI is an error here, by name, as it is in the
/// host.
pub fn module(module: &Path, component: &Path) -> Result<()> {
    let bytes = std::fs::read(module)
        .with_context(|| format!("cannot read the compiled guest {}", module.display()))?;
    let encoded = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .and_then(|mut encoder| encoder.encode())
        .with_context(|| format!("{} cannot be made a component", module.display()))?;
    write(component, &encoded)
}

/// Writes aside and renames: whoever reads the component never sees half of it. Its folder is made.
pub fn write(component: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = component.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let aside = component.with_extension("wasm.new");
    std::fs::write(&aside, bytes).with_context(|| format!("cannot write {}", aside.display()))?;
    std::fs::rename(&aside, component)
        .with_context(|| format!("cannot write {}", component.display()))
}
