//! The kinds: schemas, defaults, validation, definitions.

pub(crate) mod builtin;
pub(crate) mod crd;
pub(crate) mod cron;
pub(crate) mod descriptions;
pub(crate) mod field_path;
pub(crate) mod kind;
pub(crate) mod kinds;
pub(crate) mod label_selector;
pub(crate) mod members;
pub(crate) mod object;
pub(crate) mod object_key;
pub(crate) mod schema;
pub(crate) mod selector;
pub(crate) mod status_error;
pub(crate) mod value;
