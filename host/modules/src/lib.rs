//! The life of a module: from a source to a checked component to what serves.
//!
//! ```text
//! Module, ConfigMap or file --> Driver --> Action: load, install CRDs, write status, ...
//!                                 |
//!                                 +-- Machine: decides, pure
//!                                 +-- Modules: what serves now, swapped in one step
//! ```
//!
//! - [`Module`] is the resource as users write it, [`Settings`] is its spec checked, and
//!   [`crd()`] its CustomResourceDefinition.
//! - [`source`] takes a component out of a ConfigMap or a file, within bounds; [`parts`] is how it lies
//!   in ConfigMaps.
//! - [`consent`] is what a ServiceAccount says of the modules that may act as it.
//! - [`Machine`] is the state machine of one module.
//! - [`Driver`] holds a machine for each module and carries out what needs no I/O; the rest it
//!   hands out as [`Action`]s. [`Modules`] is what reconciling reads.
//! - [`Folder`] feeds a driver from a folder, for local development.
//!
//! Nothing here is async, nothing knows the kube client, and nothing reads a clock: who owns
//! the driver watches, fetches, waits and writes.

pub mod consent;
mod crd;
pub mod definitions;
pub mod driver;
mod finalizers;
pub mod folder;
pub mod machine;
pub mod manifest;
pub mod module;
pub mod parameters;
pub mod parts;
mod registry;
mod renamed;
mod rivals;
pub mod rollout;
mod settings;
pub mod source;
#[cfg(test)]
mod testing;

pub use crd::{crd, crd_yaml};
pub use definitions::CrdWish;
pub use driver::{Action, Driver, Input, LoadJob, ParametersJob, Report};
pub use folder::{Change, Folder, read_component};
pub use machine::{Again, Machine, Verdict};
pub use manifest::check as check_manifest;
pub use module::Module;
pub use registry::{Loaded, Modules, Served};
pub use rollout::{Deed, Rehearsal, Rollout, Strategy};
pub use settings::{
    COMPILE_TIME_MAX, MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX, Place, RESYNC_MIN, RUN_TIME_MAX,
    Settings, SourceRef, SpecError, SpecErrors, is_reserved_group, resync_period,
};
pub use source::{Component, Digest, SourceError};
