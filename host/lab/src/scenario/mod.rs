//! Test cases in folders of numbered files, in the format of KUTTL, which Chainsaw also reads.
//!
//! A folder is a case; the files of one number are a step. `NN-assert.yaml` has the objects that
//! must exist at the end of the step, `NN-errors.yaml` (or `error`) those that must not,
//! `NN-never.yaml` those that must not at any moment of the step, `NN-order.yaml` the order in
//! which objects are created, and `NN-denied.yaml` those that the API server must refuse. The step
//! first applies the files with other names. In a lab the waits are in virtual time.
//!
//! - [`Suite`] finds the cases below a folder.
//! - [`Player`] runs one and returns an [`Outcome`].
//! - [`junit`] writes outcomes as `JUnit` XML.

mod backend;
mod case;
mod causes;
mod denied;
mod document;
mod files;
mod history;
mod matching;
mod outcome;
mod player;
mod suite;
mod update;

pub use backend::Backend;
pub use case::{Case, Step};
pub use causes::of_modules;
pub use files::CaseError;
pub use outcome::{Failure, Outcome, junit};
pub use player::Player;
pub use suite::Suite;
