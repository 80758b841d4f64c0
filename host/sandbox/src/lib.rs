//! Guests as WebAssembly components. No other crate uses wasmtime.
//!
//! ```text
//! bytes --Engine::load--> Guest --Guest::reconcile(observed, host)--> Run
//!          compile, check       --Guest::review(request, host)------> Review
//!          imports, describe       a fresh instance per call
//! ```
//!
//! The host makes one [`Engine`]. [`Engine::load`] compiles a component (in a child process, see
//! [`Compile`]; a [`CodeCache`] keeps the code), refuses one that is not a guest of the contract,
//! and calls its `describe`. [`Guest::reconcile`] runs the guest once, in an instance of that call
//! only, against a [`Host`] that answers its reads. [`Guest::review`] does the same for a policy. A
//! component exports one of the two, or both. A core module with the metadata of a Kubewarden
//! policy is a guest that only reviews; it speaks waPC instead of the contract.
//!
//! # Guarantees
//!
//! - No state survives a call: every call has its own instance, and the sandbox resets its memory.
//! - A call ends: [`Limits::time`] bounds instantiation and the call together, by wall clock
//!   ([`Interruption::Epoch`]) or by a count of instructions ([`Interruption::Fuel`]).
//! - [`Limits`] bound the resources of a guest; a call that exceeds one fails with a [`CallError`].
//! - A guest reaches nothing but the functions of `wit/guest.wit`, or those of waPC and stubs of
//!   WASI preview 1. The host refuses a guest with another import, and names the import.
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
mod call;
mod child;
mod child_process;
mod code;
mod compile;
mod confine;
mod contract;
mod engine;
mod error;
mod exports;
mod format;
mod guest;
mod host;
mod kubewarden;
mod limits;
mod load;
mod loaded;
mod output;
mod permits;
mod program;
mod review;
mod review_outcome;
mod runtime;
pub mod schema;
mod settings;
mod state;
mod ticker;
mod wapc;

pub use cache::{CACHE_BYTES_DEFAULT, CacheError, CacheFigures, CacheFolder, CacheKey, CodeCache};
pub use call::Figures;
pub use child::compile_child;
pub use confine::{confine, forbid_tracing};
pub use engine::{Engine, EngineBuilder, EngineError, GUESTS_DEFAULT};
pub use error::{Backtrace, CallError, Frame, LoadError, SettingsError, Trap};
pub use guest::{Guest, Outcome, Run};
pub use host::{Host, Level, ReadError, ResourceKind};
pub use kubewarden::metadata::{ContextAwareResource, KubewardenMetadata};
pub use limits::{
    COMPILE_TIME_DEFAULT, COMPONENT_BYTES_DEFAULT, LOG_BYTES_DEFAULT, Limits, MEMORY_BYTES_DEFAULT,
    OBJECTS_DEFAULT, OUTPUT_BYTES_DEFAULT, READS_DEFAULT, TABLE_ELEMENTS_DEFAULT, TIME_DEFAULT,
};
pub use permits::{Permit, Permits};
pub use review_outcome::{Review, ReviewOutcome};
pub use settings::{Compile, FUEL_PER_MS, Interruption, TICK};
