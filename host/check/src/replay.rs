//! Runs one case again.

use std::time::Duration;

use innkeeper_faults::PlannedFault;

use crate::law::{Case, Judgement};
use crate::oracle::Oracle;
use crate::run_error::RunError;
use crate::runner::ScenarioRunner;
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
    /// How many scenarios were run: that of the case, and those that it is compared with.
    pub scenarios_run: u64,
    /// The virtual time of all of these.
    pub simulated: Duration,
}

/// Runs a case, and what it is compared with, and decides about it. Does not make it smaller.
///
/// # Errors
/// If a scenario cannot be run.
pub fn replay(runner: &ScenarioRunner, case: Case) -> Result<Replay, RunError> {
    let mut oracle = Oracle::new(runner);
    let judgement = oracle.judge(&case)?;
    let faults = &case.scenario.faults.faults;
    let unused = oracle.unused_faults.iter().filter_map(|index| faults.get(*index));
    let unused_faults = unused.cloned().collect();
    let trace = match &judgement {
        Judgement::Broken(violation) => {
            let shrunk =
                Shrunk { case, violation: violation.clone(), tried: 0, took: Duration::ZERO };
            Some(Trace::of(runner, shrunk)?)
        }
        Judgement::Holds | Judgement::Inconclusive => None,
    };
    Ok(Replay {
        judgement,
        unused_faults,
        trace,
        scenarios_run: oracle.scenarios_run,
        simulated: oracle.simulated,
    })
}
