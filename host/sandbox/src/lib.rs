//! Guests as WebAssembly components. wasmtime lives here and nowhere else.
//!
//! ```text
//! bytes --Engine::load--> Guest --Guest::reconcile(observed, host)--> Run
//!          compile, check          a fresh instance per call
//!          imports, describe
//! ```
//!
//! An [`Engine`] is made once. [`Engine::load`] compiles a component (in a child process, see
//! [`Compile`]; a [`CodeCache`] keeps what was compiled), refuses what is not a guest of our
//! contract, and asks it to describe itself. [`Guest::reconcile`] runs it once, in an instance that
//! lives for that call only, against a [`Host`] that answers its reads.
//!
//! # Guarantees
//!
//! - No state survives a call: every call has its own instance and its memory is reset.
//! - A call ends: [`Limits::time`] bounds instantiation and the call together, by wall clock
//!   ([`Interruption::Epoch`]) or by a count of instructions ([`Interruption::Fuel`]).
//! - What a guest takes is bounded by [`Limits`]; going over one is a [`CallError`] of that call.
//! - A guest reaches nothing but the functions of `wit/guest.wit`. A component that imports
//!   anything else is refused and the import is named.
//! - The same component, input and answers give the same output: there is no randomness, and
//!   floating-point NaNs are canonical.
//!
//! # Assumptions
//!
//! - Calls are synchronous and take at most [`Limits::time`]: an async caller runs them on a
//!   thread that may block, after [`Permits::acquire`].
//! - The program of [`Compile::Child`] is this very build of Innkeeper: its output is run as code.
//! - Processes of this user are trusted, as are those who have the key of the [`CodeCache`]: what
//!   they write there is run as code.
//!
//! There is no async code here but the semaphore, no Kubernetes, and no clock other than the
//! one that interrupts guests and measures them.

mod cache;
mod child;
mod child_process;
mod compile;
mod confine;
mod contract;
mod engine;
mod error;
mod guest;
mod host;
mod limits;
mod output;
mod permits;
mod runtime;
pub mod schema;
mod settings;
mod state;
mod ticker;

pub use cache::{CACHE_BYTES_DEFAULT, CacheError, CacheFigures, CacheFolder, CacheKey, CodeCache};
pub use child::compile_child;
pub use confine::{confine, forbid_tracing};
pub use engine::{Engine, EngineBuilder, EngineError, GUESTS_DEFAULT};
pub use error::{Backtrace, CallError, Frame, LoadError, Trap};
pub use guest::{Figures, Guest, Outcome, Run};
pub use host::{Host, Level, ReadError, ResourceKind};
pub use limits::{
    COMPILE_TIME_DEFAULT, COMPONENT_BYTES_DEFAULT, LOG_BYTES_DEFAULT, Limits, MEMORY_BYTES_DEFAULT,
    OBJECTS_DEFAULT, OUTPUT_BYTES_DEFAULT, READS_DEFAULT, TABLE_ELEMENTS_DEFAULT, TIME_DEFAULT,
};
pub use permits::{Permit, Permits};
pub use settings::{Compile, FUEL_PER_MS, Interruption, TICK};
