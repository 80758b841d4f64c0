//! Changes of a case that leave what it expects as it is.

use innkeeper_faults::{Fault, PlannedFault, Verb};

use crate::case_generator::CaseGenerator;
use crate::fault_lists::{crashes, failures, interruptions, late, outages, watch_faults};
use crate::incident::{Incident, PlannedIncident};
use crate::law::{Case, Expectation};
use crate::scenario::Step;

/// The most faults and incidents of a mutated case.
const FAULTS_MAX: usize = 6;

/// The longest wait that a mutation adds, in seconds.
const WAIT_MAX: u32 = 60;

/// The case with one to three changes: a fault or an incident more, less or elsewhere, the faults
/// of another case, or more time before a step. `None` if its expectation does not allow that.
pub(super) fn mutated(
    case: &Case,
    others: &[Case],
    generator: &CaseGenerator<'_>,
    random: &mut fastrand::Rng,
) -> Option<Case> {
    // Only these say that faults change nothing.
    let allows = matches!(
        case.expectation,
        Expectation::AsWithoutFaults | Expectation::NothingOwned | Expectation::AsAtTheBackup
    );
    // Without greater versions a restored backup is not noticed if watches are late and the host
    // has nothing to write.
    let goes_back = |one: Incident| matches!(one, Incident::Restore { bump: false });
    if !allows || case.scenario.all_incidents().any(goes_back) {
        return None;
    }
    let mut case = case.clone();
    case.scenario.needs_long_quiet = true;
    case.scenario.seed = random.u64(..);
    for _ in 0..random.u8(1..=3) {
        change(&mut case, others, generator, random);
    }
    case.scenario.faults.faults.truncate(FAULTS_MAX);
    case.scenario.incidents.truncate(FAULTS_MAX);
    Some(case)
}

fn change(
    case: &mut Case,
    others: &[Case],
    generator: &CaseGenerator<'_>,
    random: &mut fastrand::Rng,
) {
    let writes = generator.writes_max().max(1);
    let scenario = &mut case.scenario;
    let faults = &mut scenario.faults.faults;
    match random.u8(..8) {
        0 if !faults.is_empty() => drop(faults.remove(random.usize(..faults.len()))),
        1 if !faults.is_empty() => {
            let index = random.usize(..faults.len());
            moved(&mut faults[index], random);
        }
        2 => {
            let resources = generator.watched();
            let fault = random.choice(&watch_faults()).copied();
            if let (Some(resource), Some((fault, count))) = (random.choice(&resources), fault) {
                faults.push(late(resource, count, fault));
            }
        }
        3 => {
            if let Some(other) = random.choice(others) {
                faults.extend(other.scenario.faults.faults.iter().cloned());
                scenario.incidents.extend(other.scenario.incidents.iter().cloned());
            }
        }
        4 => {
            let incidents = [&interruptions()[..], &outages()].concat();
            if let Some(incident) = random.choice(&incidents) {
                let write = random.u32(1..=writes);
                scenario.incidents.push(PlannedIncident { write, incident: *incident });
            }
        }
        5 => {
            // Not between a state and the restart, deletion or backup that refers to it.
            let first = scenario.steps.iter().position(|step| matches!(step, Step::Apply(_)));
            let place = first.map_or(0, |first| random.usize(..=first));
            scenario.steps.insert(place, Step::Wait(random.u32(1..=WAIT_MAX)));
        }
        _ => {
            let all: Vec<Fault> = crashes().into_iter().chain(failures()).collect();
            if let Some(fault) = random.choice(&all) {
                faults.push(PlannedFault::at_write(random.u32(1..=writes), fault.clone()));
            }
        }
    }
}

/// A fault a request earlier or later, or of more requests.
fn moved(fault: &mut PlannedFault, random: &mut fastrand::Rng) {
    match random.u8(..3) {
        0 => fault.from = fault.from.saturating_sub(1).max(1),
        1 => fault.from += 1,
        _ if fault.requests.verbs.contains(&Verb::Watch) => fault.count = random.u32(1..=5),
        _ => fault.count = random.u32(1..=3),
    }
}
