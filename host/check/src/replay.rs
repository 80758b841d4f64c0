//! Plays one case again.

use std::time::Duration;

use innkeeper_faults::PlannedFault;

use crate::law::{Case, Judgement};
use crate::oracle::Oracle;
use crate::play_error::PlayError;
use crate::player::Player;
use crate::shrink::Shrunk;
use crate::trace::Trace;

/// What a case shows.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What the law says about it.
    pub judgement: Judgement,
    /// The faults of the case that affected no request.
    pub unused_faults: Vec<PlannedFault>,
    /// What happened, if the case breaks the law.
    pub trace: Option<Trace>,
    /// How many scenarios were played: that of the case, and those that it is compared with.
    pub played: u64,
    /// The virtual time of all of these.
    pub simulated: Duration,
}

/// Plays a case, and what it is compared with, and decides about it. Does not make it smaller.
///
/// # Errors
/// If a scenario cannot be played.
pub fn replay(player: &Player, case: Case) -> Result<Replay, PlayError> {
    let mut oracle = Oracle::new(player);
    let judgement = oracle.judge(&case)?;
    let faults = &case.scenario.faults.faults;
    let unused = oracle.unused_faults.iter().filter_map(|index| faults.get(*index));
    let unused_faults = unused.cloned().collect();
    let trace = match &judgement {
        Judgement::Broken(violation) => {
            let shrunk =
                Shrunk { case, violation: violation.clone(), tried: 0, took: Duration::ZERO };
            Some(Trace::of(player, shrunk)?)
        }
        Judgement::Holds | Judgement::NotJudged => None,
    };
    Ok(Replay {
        judgement,
        unused_faults,
        trace,
        played: oracle.played,
        simulated: oracle.simulated,
    })
}
