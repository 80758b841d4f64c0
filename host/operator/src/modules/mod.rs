//! Modules, from a source to an active revision: what the driver of `innkeeper-modules` asks for is
//! carried out here.
//!
//! - Where modules come from: [`source`], which is the API server ([`cluster_source`], with
//!   components in `config_maps`) or a folder (`directory_source`).
//! - The task that owns them: [`supervisor`] with its inbox of [`event`]s, watched by [`liveness`].
//!   Its [`supervisor_report`] is what other tasks see of it. It carries out `actions`, the
//!   `activation` of revisions, `decisions` with their [`component_snapshots`], the
//!   `rollback_window`, `account_checks`, changes of `definitions` and the `crd_reinstallation`.
//! - What becomes of policies: `policy_handover` hands the decided ones over, `policy_opening`
//!   opens those that the leader itself reviews with, `settings_preview` previews other settings
//!   (`waiting_settings`), and `policy_rollback` counts failed reviews after a swap.
//! - What users see: `status` assembles the conditions of a Module, `policy_conditions` those of
//!   its policy and `readable` those of its kinds; `status_writer` writes them.
//! - Whose identity requests have: [`module_client`] makes a module's clients.
//! - What reconciles use: [`open_revision`] with its `viewed_kinds`, its [`health`] and its
//!   [`granted_secrets`]. Before a revision is active, [`declared`] compares its kinds with
//!   discovery and [`crds`] installs its definitions. [`teardown`] ends a module.

pub mod account_access;
mod account_checks;
mod actions;
mod activation;
pub mod cluster_source;
pub mod component_snapshots;
mod config_maps;
mod crd_reinstallation;
pub mod crds;
mod decisions;
pub mod declared;
mod definitions;
pub mod directory_source;
pub mod event;
pub mod granted_secrets;
pub mod health;
mod kind_resolution;
pub mod liveness;
pub mod module_client;
pub mod open_revision;
mod policy_conditions;
mod policy_handover;
mod policy_handovers;
mod policy_opening;
mod policy_rollback;
mod readable;
mod retry_wait;
mod rollback_window;
mod schema_reads;
mod settings_preview;
pub mod source;
mod status;
mod status_writer;
pub mod supervisor;
pub mod supervisor_report;
pub mod teardown;
mod viewed_kinds;
mod waiting_settings;
