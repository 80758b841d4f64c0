//! Compiled code of a guest: [`Code`].

use std::path::Path;

use wasmtime::component::Component;
use wasmtime::{Engine, Module, Result};

use crate::format::Format;

/// Compiled code of a guest, in memory.
pub(crate) enum Code {
    /// The code of a component.
    Component(Component),
    /// The code of a core module.
    Module(Module),
}

impl Code {
    /// Compiles bytes in this process.
    ///
    /// # Errors
    /// That of wasmtime.
    pub(crate) fn compile(engine: &Engine, format: Format, bytes: &[u8]) -> Result<Self> {
        match format {
            Format::Component => Component::from_binary(engine, bytes).map(Self::Component),
            Format::Module => Module::from_binary(engine, bytes).map(Self::Module),
        }
    }

    /// Compiles bytes to an artifact, without loading it.
    ///
    /// # Errors
    /// That of wasmtime.
    pub(crate) fn artifact(engine: &Engine, format: Format, bytes: &[u8]) -> Result<Vec<u8>> {
        match format {
            Format::Component => engine.precompile_component(bytes),
            Format::Module => engine.precompile_module(bytes),
        }
    }

    /// The artifact of this code.
    ///
    /// # Errors
    /// That of wasmtime.
    pub(crate) fn serialize(&self) -> Result<Vec<u8>> {
        match self {
            Self::Component(component) => component.serialize(),
            Self::Module(module) => module.serialize(),
        }
    }

    /// Maps an artifact.
    ///
    /// # Errors
    /// That of wasmtime; also for an artifact of the other format.
    ///
    /// # Safety
    /// The file is an artifact of this build of wasmtime, and nobody changes it while it is mapped.
    #[expect(unsafe_code, reason = "mapping native code is unsafe by nature")]
    pub(crate) unsafe fn map(engine: &Engine, format: Format, artifact: &Path) -> Result<Self> {
        // SAFETY: the caller keeps the same contract for both formats.
        unsafe {
            match format {
                Format::Component => {
                    Component::deserialize_file(engine, artifact).map(Self::Component)
                }
                Format::Module => Module::deserialize_file(engine, artifact).map(Self::Module),
            }
        }
    }
}
