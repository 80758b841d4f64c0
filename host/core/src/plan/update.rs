//! Which writes of a plan the update groups let through in this round.

mod progress;

use super::input::Input;
use super::step::Step;

pub use progress::{UpdateProgress, UpdateState};

/// Limits the writes to the members of update groups: turns writes into skips, or applies into
/// recreates, and adds no write. `steps` are those of the desired objects, in the same order.
///
/// Returns the progress of each group.
pub(super) fn limit(_steps: &mut [Step], _input: &Input<'_>) -> Vec<UpdateProgress> {
    Vec::new()
}
