//! Guests as WebAssembly components. No other crate uses wasmtime.
//!
//! ```text
//! bytes --Engine::load--> Guest --Guest::reconcile(observed, host)--> Run
//!          compile, check          a fresh instance per call
//!          imports, describe
//! ```
//!
//! The host makes one [`Engine`]. [`Engine::load`] compiles a component (in a child process, see
//! [`Compile`]; a [`CodeCache`] keeps the code), refuses one that is not a guest of the contract,
//! and calls its `describe`. [`Guest::reconcile`] runs the guest once, in an instance of that call
//! only, against a [`Host`] that answers its reads.
//!
//! # Guarantees
//!
//! - No state survives a call: every call has its own instance, and the sandbox resets its memory.
//! - A call ends: [`Limits::time`] bounds instantiation and the call together, by wall clock
//!   ([`Interruption::Epoch`]) or by a count of instructions ([`Interruption::Fuel`]).
//! - [`Limits`] bound the resources of a guest; a call that exceeds one fails with a [`CallError`].
//! - A guest reaches nothing but the functions of `wit/guest.wit`. The host refuses a component
//!   with another import, and names the import.
//! - The same component, input and answers give the same output: there is no randomness, and
//!   floating-point NaNs are canonical.
//!
//! # Assumptions
//!
//! - Calls are synchronous and take at most [`Limits::time`]: an async caller runs them on a
//!   thread that may block, after [`Permits::acquire`].
//! - The program of [`Compile::Child`] is this very build of Innkeeper: the host runs its output as
//!   code.
//! - The host trusts processes of its user, and others that have the key of the [`CodeCache`]: it
//!   runs the code that they write there.
//!
//! This crate has no async code but the semaphore, no Kubernetes, and no clock other than the one
//! that interrupts guests and measures them.

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
