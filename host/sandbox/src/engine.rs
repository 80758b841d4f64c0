//! The engine: what all guests share.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use wasmtime::component::{HasSelf, Linker};

use crate::cache::CodeCache;
use crate::child::{self, Gate, Shares};
use crate::compile::Compile;
use crate::contract::bindings::ReconcilerGuest;
use crate::error::LoadError;
use crate::guest::Guest;
use crate::limits::Limits;
use crate::permits::{self, Permits};
use crate::schema::{self, SchemaError};
use crate::settings::{self, Interruption};
use crate::state::State;
use crate::ticker::Ticker;

/// Default of [`EngineBuilder::guests`].
pub const GUESTS_DEFAULT: u32 = 128;

/// Calls that may run at once without a permit (`describe` of guests being loaded).
const CALLS_WITHOUT_PERMIT: u32 = 8;

/// Loads guests and runs them. Cloning is cheap and gives the same engine; its thread and its
/// memory go with the last clone and the last [`Guest`].
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) wasm: wasmtime::Engine,
    pub(crate) linker: Linker<State>,
    pub(crate) interruption: Interruption,
    pub(crate) compile: Compile,
    pub(crate) artifacts: PathBuf,
    pub(crate) cache: Option<CodeCache>,
    /// The memory of children.
    pub(crate) shares: Shares,
    /// Compilers that run at once.
    pub(crate) compilers: Gate,
    /// Children that evaluate schemas at once: a lane of its own, so that no compiler holds them
    /// up.
    pub(crate) validators: Gate,
    permits: Permits,
    _ticker: Option<Ticker>,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// wasmtime refuses the settings, or the address space for the pool is not to be had.
    #[error(
        "cannot set up the sandbox for {guests} guests: {what} (fewer guests need less address \
         space; `ulimit -v` must not bound it)"
    )]
    Setup {
        /// As asked of the builder.
        guests: u32,
        /// What wasmtime says.
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
    guests: u32,
    artifacts: Option<PathBuf>,
    cache: Option<CodeCache>,
    memory: Option<u64>,
}

impl Engine {
    /// An engine that interrupts by epoch and compiles in this process, with a permit per core.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Compiles a component (or finds its code in the cache), checks that it is a guest of our
    /// contract, and asks what it is.
    ///
    /// Takes from milliseconds to [`Limits::compile_time`] and blocks the thread meanwhile: an
    /// async caller uses `spawn_blocking`. `limits` bound the loading and become the guest's
    /// ([`Guest::with_limits`] changes them later).
    ///
    /// # Errors
    /// [`LoadError`]; [`LoadError::is_temporary`] tells whether the same bytes may do later.
    pub fn load(&self, bytes: &[u8], limits: &Limits) -> Result<Guest, LoadError> {
        Guest::load(self, bytes, limits)
    }

    /// Checks a document against a JSON Schema that a guest describes, where components are
    /// compiled.
    ///
    /// Blocks the thread for up to [`VALIDATE_TIME`](crate::schema::VALIDATE_TIME), and for as long
    /// as it takes other callers before this one.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn validate(&self, schema: &Value, document: &Value) -> Result<(), SchemaError> {
        schema::validate_confined(&self.shared, schema, document)
    }

    /// The permits for calls of this engine's guests.
    pub fn permits(&self) -> &Permits {
        &self.shared.permits
    }

    /// The cache that it was given.
    pub fn cache(&self) -> Option<&CodeCache> {
        self.shared.cache.as_ref()
    }

    /// How this engine interrupts guests.
    pub fn interruption(&self) -> Interruption {
        self.shared.interruption
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("interruption", &self.shared.interruption)
            .field("compile", &self.shared.compile)
            .finish_non_exhaustive()
    }
}

impl Default for EngineBuilder {
    fn default() -> Self {
        Self {
            interruption: Interruption::default(),
            compile: Compile::InProcess,
            permits: permits::cores(),
            guests: GUESTS_DEFAULT,
            artifacts: None,
            cache: None,
            memory: None,
        }
    }
}

impl EngineBuilder {
    /// How guests are interrupted; by epoch if not said.
    #[must_use]
    pub fn interruption(mut self, interruption: Interruption) -> Self {
        self.interruption = interruption;
        self
    }

    /// Where components are compiled; in this process if not said.
    #[must_use]
    pub fn compile(mut self, compile: Compile) -> Self {
        self.compile = compile;
        self
    }

    /// How many calls run at once (at least two); one per core if not said.
    #[must_use]
    pub fn permits(mut self, permits: usize) -> Self {
        self.permits = permits;
        self
    }

    /// How many guests stay warm: the memory of each keeps its place in the pool. More can be
    /// loaded; they then take each other's places, which costs some microseconds a call.
    /// [`GUESTS_DEFAULT`] if not said.
    #[must_use]
    pub fn guests(mut self, guests: u32) -> Self {
        self.guests = guests;
        self
    }

    /// The folder in which artifacts of [`Compile::Child`] lie while they are mapped; the
    /// system's temporary folder if not said. Its file system must allow executable mappings.
    #[must_use]
    pub fn artifacts(mut self, folder: impl Into<PathBuf>) -> Self {
        self.artifacts = Some(folder.into());
        self
    }

    /// The memory of the host in bytes, of which the children of [`Compile::Child`] may take two
    /// thirds; what the control group and the machine have if not said.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Where code that was compiled once is kept; nowhere if not said.
    #[must_use]
    pub fn cache(mut self, cache: CodeCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Makes the engine, and starts the thread that interrupts its guests.
    ///
    /// # Errors
    /// [`EngineError`].
    pub fn build(self) -> Result<Engine, EngineError> {
        let permits = Permits::new(self.permits);
        let calls = u32::try_from(permits.available())
            .unwrap_or(u32::MAX)
            .saturating_add(CALLS_WITHOUT_PERMIT);
        let setup = |error: wasmtime::Error| EngineError::Setup {
            guests: self.guests,
            what: format!("{error:#}"),
        };
        let wasm = wasmtime::Engine::new(&settings::runtime(self.interruption, self.guests, calls))
            .map_err(setup)?;
        let mut linker = Linker::new(&wasm);
        ReconcilerGuest::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)
            .map_err(setup)?;
        let ticker = match self.interruption {
            Interruption::Epoch => Some(Ticker::start(&wasm)?),
            Interruption::Fuel | Interruption::Never => None,
        };
        let shares = self.memory.map_or_else(child::shares, Shares::of);
        Ok(Engine {
            shared: Arc::new(Shared {
                compilers: Gate::new(shares.compilers),
                validators: Gate::new(1),
                shares,
                wasm,
                linker,
                interruption: self.interruption,
                compile: self.compile,
                artifacts: self.artifacts.unwrap_or_else(std::env::temp_dir),
                cache: self.cache,
                permits,
                _ticker: ticker,
            }),
        })
    }
}
