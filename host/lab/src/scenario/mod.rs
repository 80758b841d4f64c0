//! Scenarios: folders of numbered files, as KUTTL has them and Chainsaw takes them.
//!
//! A folder is a case; the files of one number are a step. `NN-assert.yaml` says what must be there
//! in the end, `NN-errors.yaml` (or `error`) what must not, any other name what is applied first.
//! In a lab time passes as fast as it can; on a real cluster it is waited for.
//!
//! - [`Suite`] finds the cases below a folder.
//! - [`Player`] plays one, and gives an [`Outcome`].
//! - [`junit`] writes outcomes for machines.

mod backend;
mod case;
mod document;
mod matching;
mod outcome;
mod player;
mod suite;
mod update;

pub use backend::Backend;
pub use case::{Case, CaseError, Step};
pub use outcome::{Failure, Outcome, junit};
pub use player::Player;
pub use suite::Suite;
