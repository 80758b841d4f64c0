//! Server-side apply: which manager owns which field, and how the objects of several managers are
//! merged.

pub(crate) mod compare;
pub(crate) mod field_manager_conflict;
pub(crate) mod fields_v1;
pub(crate) mod fieldset;
pub(crate) mod item;
pub(crate) mod last_applied;
pub(crate) mod ledger;
pub(crate) mod managed_fields;
pub(crate) mod managed_object;
pub(crate) mod merge;
pub(crate) mod node;
pub(crate) mod owned;
pub(crate) mod remove;
pub(crate) mod shape;
pub(crate) mod updater;
