//! A component of the same code with another digest.

use std::io;
use std::path::Path;

use serde_json::Value;

/// The file of the component in a Module.
const FILE: &str = "/spec/source/file";

/// The name of the custom section that makes the difference.
const SECTION: &[u8] = b"check-rebuilt";

/// The Module with the rebuilt component, which is written to a folder.
///
/// # Errors
/// If the component cannot be read, or the other one not be written.
pub(super) fn module(module: &Value, folder: &Path) -> io::Result<Value> {
    let path = folder.join("rebuilt.wasm");
    if !path.exists() {
        std::fs::write(&path, component(component_of(module)?))?;
    }
    let mut module = module.clone();
    if let Some(file) = module.pointer_mut(FILE) {
        *file = path.to_string_lossy().into();
    }
    Ok(module)
}

/// The component of a Module.
///
/// # Errors
/// If the Module names no file, or the file cannot be read.
pub(super) fn component_of(module: &Value) -> io::Result<Vec<u8>> {
    let file = module.pointer(FILE).and_then(Value::as_str).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the Module has no spec.source.file")
    })?;
    std::fs::read(file)
}

/// A component with one more custom section, which no engine reads.
fn component(mut bytes: Vec<u8>) -> Vec<u8> {
    // Both lengths are below 128, so each takes one byte.
    let length = u8::try_from(SECTION.len()).unwrap_or(u8::MAX);
    bytes.extend([0, length + 1, length]);
    bytes.extend(SECTION);
    bytes
}
