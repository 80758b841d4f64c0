//! The engine, which loads guests: [`Engine`].

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use wasmtime::component::{HasSelf, Linker};

use crate::cache::CodeCache;
use crate::child_process::{self, Gate, Shares};
use crate::contract::bindings::reconciler::ReconcilerGuest;
use crate::error::LoadError;
use crate::guest::Guest;
use crate::limits::Limits;
use crate::loaded::LoadedComponents;
use crate::permits::{self, Permits};
use crate::runtime::Runtime;
use crate::schema::{self, SchemaError};
use crate::settings::{self, Compile, Interruption};
use crate::ticker::Ticker;
use crate::wapc::module;

/// Default of [`EngineBuilder::guests`]. More warm memories saved no time that stood out of the
/// noise (docs/benchmarks.md, "Idle modules"), and each holds its pages while its guest is idle.
pub const GUESTS_DEFAULT: u32 = 16;

/// Calls that may run at once without a permit (`describe` of guests being loaded).
const CALLS_WITHOUT_PERMIT: u32 = 8;

/// Loads guests and runs them. Clones are cheap and the same engine. The last clone or [`Guest`]
/// ends its thread and frees its memory.
#[derive(Clone)]
pub struct Engine {
    runtime: Arc<Runtime>,
}

/// The reason why an engine cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// wasmtime refuses the settings, or there is too little address space for the pool.
    #[error(
        "cannot set up the sandbox for {guests} guests: {what} (fewer guests need less address \
         space; `ulimit -v` must not bound it)"
    )]
    Setup {
        /// See [`EngineBuilder::guests`].
        guests: u32,
        /// The error of wasmtime.
        what: String,
    },
    /// The thread that interrupts guests does not start.
    #[error("cannot start the thread that interrupts guests: {0}")]
    Ticker(#[from] std::io::Error),
}

/// Settings of an [`Engine`].
#[derive(Clone, Debug)]
pub struct EngineBuilder {
    interruption: Interruption,
    compile: Compile,
    permits: usize,
    review_permits: usize,
    guests: u32,
    artifacts: Option<PathBuf>,
    cache: Option<CodeCache>,
    memory: Option<u64>,
}

impl Engine {
    /// The default settings: an engine that interrupts by epoch and compiles in this process, with
    /// a permit per core, and another one for reviews.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Compiles a component (or finds its code in the cache), checks that it is a guest of the
    /// contract, and calls its `describe`. A core module with the metadata of a Kubewarden policy
    /// is a guest too; its manifest is made from the metadata. If this engine has a guest of the
    /// same bytes, the new one shares its code, and nothing is compiled.
    ///
    /// Takes from milliseconds to [`Limits::compile_time`] and blocks the thread: an async caller
    /// uses `spawn_blocking`. `limits` bound the loading and become the guest's
    /// ([`Guest::with_limits`] changes them later).
    ///
    /// # Errors
    /// [`LoadError`]; [`LoadError::is_temporary`] is true if the same bytes may load later.
    pub fn load(&self, bytes: &[u8], limits: &Limits) -> Result<Guest, LoadError> {
        Guest::load(&self.runtime, bytes, limits)
    }

    /// Checks a document against a JSON Schema that a guest describes, in a child process if the
    /// engine compiles in one.
    ///
    /// Blocks the thread for up to [`VALIDATE_TIME`](crate::schema::VALIDATE_TIME), after the
    /// callers before this one.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn validate(&self, schema: &Value, document: &Value) -> Result<(), SchemaError> {
        schema::validate_confined(&self.runtime, schema, document)
    }

    /// The permits for calls of this engine's guests.
    pub fn permits(&self) -> &Permits {
        &self.runtime.permits
    }

    /// The permits for reviews ([`Guest::review`]), apart from [`Engine::permits`]: neither
    /// reconciles nor previews delay a review.
    pub fn review_permits(&self) -> &Permits {
        &self.runtime.review_permits
    }

    /// The cache of compiled code; `None` without one.
    pub fn cache(&self) -> Option<&CodeCache> {
        self.runtime.cache.as_ref()
    }

    /// How this engine interrupts guests.
    pub fn interruption(&self) -> Interruption {
        self.runtime.interruption
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("interruption", &self.runtime.interruption)
            .field("compile", &self.runtime.compile)
            .finish_non_exhaustive()
    }
}

impl Default for EngineBuilder {
    fn default() -> Self {
        Self {
            interruption: Interruption::default(),
            compile: Compile::InProcess,
            permits: permits::cores(),
            review_permits: permits::cores(),
            guests: GUESTS_DEFAULT,
            artifacts: None,
            cache: None,
            memory: None,
        }
    }
}

impl EngineBuilder {
    /// Sets how the engine interrupts guests; the default is by epoch.
    #[must_use]
    pub fn interruption(mut self, interruption: Interruption) -> Self {
        self.interruption = interruption;
        self
    }

    /// Sets where the engine compiles components; the default is in this process.
    #[must_use]
    pub fn compile(mut self, compile: Compile) -> Self {
        self.compile = compile;
        self
    }

    /// Sets how many calls run at once (at least two); the default is one per core.
    #[must_use]
    pub fn permits(mut self, permits: usize) -> Self {
        self.permits = permits;
        self
    }

    /// Sets how many reviews run at once (at least two), in addition to the other calls; the
    /// default is one per core.
    #[must_use]
    pub fn review_permits(mut self, permits: usize) -> Self {
        self.review_permits = permits;
        self
    }

    /// Sets how many memories of guests stay warm: each of the last ones that ran keeps its place
    /// in the pool, with the pages that the guest wrote. Most guests have one memory. A host may
    /// load more guests; they then take each other's places, which costs some microseconds a call.
    /// On ten cores or more each thread keeps so many. The default is [`GUESTS_DEFAULT`].
    #[must_use]
    pub fn guests(mut self, guests: u32) -> Self {
        self.guests = guests;
        self
    }

    /// Sets the folder for artifacts of [`Compile::Child`] while they are mapped; the default is
    /// the system's temporary folder. Its file system must allow executable mappings.
    #[must_use]
    pub fn artifacts(mut self, folder: impl Into<PathBuf>) -> Self {
        self.artifacts = Some(folder.into());
        self
    }

    /// Sets the memory of the host in bytes, of which the children of [`Compile::Child`] may take
    /// two thirds; the default is the limit of the control group, or the memory of the machine.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets the cache that keeps compiled code; the default is none.
    #[must_use]
    pub fn cache(mut self, cache: CodeCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Makes the engine, and starts the thread that interrupts its guests.
    ///
    /// # Errors
    /// [`EngineError`] if wasmtime refuses the settings or the thread does not start.
    pub fn build(self) -> Result<Engine, EngineError> {
        let permits = Permits::new(self.permits);
        let review_permits = Permits::new(self.review_permits);
        let calls = permits.available().saturating_add(review_permits.available());
        let calls = u32::try_from(calls).unwrap_or(u32::MAX).saturating_add(CALLS_WITHOUT_PERMIT);
        let setup = |error: wasmtime::Error| EngineError::Setup {
            guests: self.guests,
            what: format!("{error:#}"),
        };
        let wasm = wasmtime::Engine::new(&settings::runtime(self.interruption, self.guests, calls))
            .map_err(setup)?;
        let mut linker = Linker::new(&wasm);
        // The other worlds import the same interfaces.
        ReconcilerGuest::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)
            .map_err(setup)?;
        let module_linker = module::linker(&wasm).map_err(setup)?;
        let ticker = match self.interruption {
            Interruption::Epoch => Some(Ticker::start(&wasm)?),
            Interruption::Fuel | Interruption::Never => None,
        };
        let shares = self.memory.map_or_else(child_process::shares, Shares::of);
        Ok(Engine {
            runtime: Arc::new(Runtime {
                compilers: Gate::new(shares.compilers),
                validators: Gate::new(1),
                shares,
                wasm,
                linker,
                module_linker,
                interruption: self.interruption,
                compile: self.compile,
                artifacts: self.artifacts.unwrap_or_else(std::env::temp_dir),
                cache: self.cache,
                permits,
                review_permits,
                loaded: LoadedComponents::default(),
                ticker,
            }),
        })
    }
}
