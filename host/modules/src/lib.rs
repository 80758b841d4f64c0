//! The life of a module: from a source to a checked component to what serves.
//!
//! ```text
//! Module, ConfigMap or file --> Driver --> Action: load, install CRDs, write status, ...
//!                                 |
//!                                 +-- Machine: decides, pure
//!                                 +-- Modules: what serves now, swapped in one step
//! ```
//!
//! - [`Module`] is the resource as users write it, [`ValidatedSpec`] is its spec checked, and
//!   [`crd()`] its CustomResourceDefinition.
//! - [`source`] takes a component out of a ConfigMap or a file, within bounds; [`chunks`] is how it
//!   lies in ConfigMaps.
//! - [`account_annotation`] is the annotation of a ServiceAccount that names the modules which may
//!   act as it.
//! - [`Machine`] is the state machine of one module.
//! - [`Driver`] holds a machine for each module and carries out what needs no I/O; the rest it
//!   hands out as [`Action`]s. [`Modules`] is what reconciling reads.
//! - [`ModuleDirectory`] feeds a driver from a folder, for local development.
//!
//! Nothing here is async, nothing knows the kube client, and nothing reads a clock: who owns
//! the driver watches, fetches, waits and writes.

pub mod account_annotation;
pub mod chunks;
mod crd;
pub mod definitions;
pub mod directory;
pub mod driver;
mod finalizers;
pub mod machine;
pub mod manifest;
pub mod module;
mod overlap;
pub mod parameters;
mod registry;
mod renamed;
pub mod rollout;
pub mod source;
#[cfg(test)]
mod testing;
mod validated_spec;

pub use crd::{crd, crd_yaml};
pub use definitions::CrdRequest;
pub use directory::{Change, ModuleDirectory, read_component};
pub use driver::{Action, Driver, Input, LoadJob, ParametersJob, Report};
pub use machine::{Machine, Rejection, RetryPolicy};
pub use manifest::check as check_manifest;
pub use module::Module;
pub use registry::{Loaded, Modules, Revision};
pub use rollout::{PlannedChange, Preview, Rollout, Strategy};
pub use source::{Component, Digest, SourceError};
pub use validated_spec::{
    COMPILE_TIME_MAX, MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX, RESYNC_MIN, RUN_TIME_MAX, SourceKind,
    SourceRef, SpecError, SpecErrors, ValidatedSpec, is_reserved_group, resync_period,
};
