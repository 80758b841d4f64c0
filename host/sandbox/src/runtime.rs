//! The parts that an engine and its guests share: [`Runtime`].

use std::path::PathBuf;

use wasmtime::component::Linker;

use crate::cache::CodeCache;
use crate::child_process::{Gate, Shares};
use crate::loaded::LoadedComponents;
use crate::permits::Permits;
use crate::settings::{Compile, Interruption};
use crate::state::State;
use crate::ticker::Ticker;

/// The parts that an engine and its guests share. The last of them drops it.
pub(crate) struct Runtime {
    pub(crate) wasm: wasmtime::Engine,
    pub(crate) linker: Linker<State>,
    /// The imports of core modules.
    pub(crate) module_linker: wasmtime::Linker<State>,
    pub(crate) interruption: Interruption,
    pub(crate) compile: Compile,
    /// The folder of artifacts.
    pub(crate) artifacts: PathBuf,
    pub(crate) cache: Option<CodeCache>,
    /// The memory of children.
    pub(crate) shares: Shares,
    /// Bounds the number of compilers that run at once.
    pub(crate) compilers: Gate,
    /// Bounds the number of children that evaluate schemas at once. They do not wait for compilers.
    pub(crate) validators: Gate,
    pub(crate) permits: Permits,
    /// The permits of reviews: no other call delays one.
    pub(crate) review_permits: Permits,
    /// The components that guests hold.
    pub(crate) loaded: LoadedComponents,
    /// Interrupts guests under [`Interruption::Epoch`].
    pub(crate) ticker: Option<Ticker>,
}
