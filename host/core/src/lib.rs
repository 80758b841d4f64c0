//! What should be written, from what is.
//!
//! Everything here is a function of its arguments: nothing is async, nothing does I/O,
//! nothing reads a clock, nothing is random, and no order comes from a hash. So the same
//! code plans in the running host, in `innkeeper render`, in tests and in replays.
//!
//! One noun a file:

pub mod additive;
pub mod churn;
pub mod consent;
pub mod contested;
pub mod decoration;
pub mod difference;
pub mod drift;
pub mod fieldset;
pub mod figures;
pub mod finalizer;
pub mod foreign;
pub mod host_names;
pub mod host_objects;
pub mod labels;
pub mod manager;
pub mod names;
pub mod object;
pub mod observed;
pub mod old_names;
pub mod order;
pub mod ownership;
pub mod plan;
pub mod readiness;
pub mod said;
pub mod schema;
pub mod selector;
pub mod settled;
pub mod status;
pub mod target;
pub mod wanted;

pub use figures::Figures;
pub use finalizer::Finalizer;
pub use labels::Labels;
pub use manager::Manager;
pub use object::{Key, Object};
pub use selector::Selector;
pub use target::Target;
