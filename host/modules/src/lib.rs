//! The life of a module: from a source to a checked component to an active revision.
//!
//! ```text
//! Module, ConfigMap or file --> Driver --> Action: load, install CRDs, write status, ...
//!                                 |
//!                                 +-- Machine: decides, pure
//! ```
//!
//! - [`Module`] is the resource as users write it, [`ValidatedSpec`] is its spec checked, and
//!   [`crd()`] its CustomResourceDefinition.
//! - [`source`] reads a component from a ConfigMap or a file, within bounds; [`chunks`] is its
//!   layout in ConfigMaps.
//! - [`account_annotation`] is the annotation of a ServiceAccount that names the modules which may
//!   act as it.
//! - [`Machine`] is the state machine of one module. It alone says which revision is active.
//! - [`Driver`] holds a machine and the [`Revision`]s of each module and carries out what needs no
//!   I/O; it returns the rest as [`Action`]s.
//! - [`ModuleDirectory`] feeds a driver from a folder, for local development.
//!
//! Nothing here is async, nothing knows the kube client, and nothing reads a clock: the owner of
//! the driver watches, fetches, waits and writes.

pub mod abandoned;
pub mod account_annotation;
pub mod chunks;
mod crd;
mod crd_installation;
mod crd_refusal;
pub mod definitions;
pub mod directory;
pub mod driver;
mod finalizers;
mod installed_crds;
pub mod kind_parameters;
pub mod machine;
pub mod manifest;
pub mod module;
mod overlap;
pub mod parameters;
mod policy_grant;
mod policy_manifest;
pub mod policy_preview;
mod renamed;
pub mod resolved_manifest;
mod revision;
pub mod rollout;
pub mod source;
#[cfg(test)]
mod testing;
mod validated_spec;

pub use crd::{crd, crd_yaml};
pub use crd_installation::{CrdGrant, CrdInstallation, CrdPurpose, FinishedInstallation};
pub use crd_refusal::{CrdRefusal, HeldCrds};
pub use definitions::CrdRequest;
pub use directory::{Change, ModuleDirectory, read_component};
pub use driver::{Action, Driver, Input, LoadJob, ParametersJob, Report};
pub use installed_crds::{AdoptedCrd, InstalledCrds};
pub use machine::{DirectEffect, Event, Machine, Rejection, RetryPolicy};
pub use manifest::check as check_manifest;
pub use module::Module;
pub use policy_preview::{PolicyPreview, ReviewChange};
pub use revision::{GuestHandle, Revision};
pub use rollout::{Example, PlannedChange, Preview, Rollout, Strategy};
pub use source::{Component, Digest, SourceError};
pub use validated_spec::{
    COMPILE_TIME_MAX, MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX, RESYNC_MIN, REVIEW_TIME_MAX,
    RUN_TIME_MAX, SourceKind, SourceRef, SpecContext, SpecError, SpecErrors, ValidatedPolicy,
    ValidatedSpec, is_reserved_group, resync_period,
};
