//! Decides which writes bring the observed state of a primary to its desired state.
//!
//! Every function depends on its arguments only: nothing is async, does I/O, reads a clock or is
//! random, and no order comes from a hash. So the same code plans in the running host, in
//! `innkeeper render`, in tests and in replays.

pub mod audit;
pub mod consent;
pub mod control;
pub mod counted;
pub mod crd_compat;
pub mod desired;
pub mod diff;
pub mod drift;
pub mod extra_rights;
pub mod field_fights;
pub mod field_mask;
pub mod field_path;
pub mod fieldset;
pub mod finalizer;
pub mod foreign;
pub mod guest_status;
pub mod host_names;
pub mod host_objects;
pub mod in_sync;
pub mod kind_masks;
pub mod known_masks;
pub mod known_noops;
pub mod labels;
pub mod last_run;
pub mod manager;
pub mod names;
pub mod object;
pub mod object_change;
pub mod object_key;
pub mod object_ref;
pub mod observed;
pub mod old_names;
pub mod order;
pub mod ownership;
pub mod plan;
pub mod primary_revision;
pub mod primary_selector;
pub mod readiness;
pub mod review;
pub mod review_scope;
pub mod run_result;
pub mod schema;
pub mod selector;
pub mod status;
pub mod value_source;
pub mod well_known;

pub use counted::{counted, counted_len};
pub use field_mask::FieldMask;
pub use finalizer::Finalizer;
pub use kind_masks::KindMasks;
pub use known_masks::KnownMasks;
pub use labels::Labels;
pub use last_run::LastRun;
pub use manager::Manager;
pub use object::Object;
pub use object_key::ObjectKey;
pub use object_ref::ObjectRef;
pub use primary_selector::PrimarySelector;
pub use run_result::ResultRenewal;
pub use selector::Selector;
