//! Makes a scenario that breaks a law smaller, as long as it breaks the law.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::incident::Incident;
use crate::law::{Case, Expectation, Judgement, Violation};
use crate::oracle::Oracle;
use crate::run_error::RunError;
use crate::scenario::Step;

/// The smallest case that was found, what it breaks, how many cases were tried, and for how long.
pub(crate) struct Shrunk {
    pub(crate) case: Case,
    pub(crate) violation: Violation,
    pub(crate) tried: u32,
    pub(crate) took: Duration,
}

/// Removes faults, steps and fields of objects, one after the other, until each of them is needed
/// or `may_go_on` returns false.
///
/// # Errors
/// If a scenario cannot be run.
pub(crate) fn shrink(
    oracle: &mut Oracle<'_>,
    case: Case,
    violation: Violation,
    mut may_go_on: impl FnMut() -> bool,
) -> Result<Shrunk, RunError> {
    let began = Instant::now();
    let mut best = Shrunk { case, violation, tried: 0, took: Duration::ZERO };
    loop {
        let mut is_smaller = false;
        let mut index = 0;
        // The candidates of a smaller case are others, so they are made again after each success.
        while let Some(candidate) = candidates(&best.case).into_iter().nth(index) {
            best.took = began.elapsed();
            if !may_go_on() {
                return Ok(best);
            }
            best.tried += 1;
            match oracle.judge(&candidate)? {
                // Another violation can be one of the smaller scenario only.
                Judgement::Broken(violation) if violation.what == best.violation.what => {
                    best.case = candidate;
                    best.violation = violation;
                    is_smaller = true;
                }
                _ => index += 1,
            }
        }
        if !is_smaller {
            best.took = began.elapsed();
            return Ok(best);
        }
    }
}

/// Cases with one thing less.
fn candidates(case: &Case) -> Vec<Case> {
    let with = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        smaller
    };
    let scenario = &case.scenario;
    let mut smaller = Vec::new();
    for index in 0..scenario.faults.faults.len() {
        smaller.push(with(&|case| drop(case.scenario.faults.faults.remove(index))));
    }
    for index in 0..scenario.incidents.len() {
        smaller.push(with(&|case| {
            case.scenario.incidents.remove(index);
        }));
    }
    for index in 0..scenario.steps.len() {
        if is_needed(case.expectation, &scenario.steps[index]) {
            continue;
        }
        smaller.push(with(&|case| drop(case.scenario.steps.remove(index))));
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        let (Step::Apply(object) | Step::Replace(object) | Step::MergePatch(object)) = step else {
            continue;
        };
        for pointer in members(object) {
            smaller.push(with(&|case| {
                if let Step::Apply(object) | Step::Replace(object) | Step::MergePatch(object) =
                    &mut case.scenario.steps[index]
                {
                    remove(object, &pointer);
                }
            }));
        }
    }
    smaller
}

/// Whether what a law expects makes no sense without a step.
fn is_needed(expectation: Expectation, step: &Step) -> bool {
    match expectation {
        Expectation::NothingOwned => matches!(step, Step::Delete(_)),
        Expectation::NoWriteAfterRestart => matches!(step, Step::Restart | Step::Settle),
        Expectation::AsAtTheBackup => {
            matches!(step, Step::Settle | Step::Incident(Incident::Backup {}))
        }
        Expectation::OthersAsBefore
        | Expectation::ControllersStay
        | Expectation::AsBeforeTheOtherClient => *step == Step::Settle,
        _ => false,
    }
}

/// The paths of the members and items below `spec` and of labels and annotations, the largest
/// first.
pub(crate) fn members(object: &Value) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for root in [&["spec"][..], &["metadata", "labels"], &["metadata", "annotations"]] {
        let path: Vec<String> = root.iter().map(|&part| part.to_owned()).collect();
        let pointer = format!("/{}", root.join("/"));
        if let Some(value) = object.pointer(&pointer) {
            walk(value, &path, &mut paths);
        }
    }
    paths.sort_by_key(Vec::len);
    paths
}

fn walk(value: &Value, path: &[String], paths: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        let mut path = path.to_vec();
        path.push(name);
        walk(child, &path, paths);
        paths.push(path);
    }
}

/// Removes the member or item at a path.
pub(crate) fn remove(object: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, part| match value {
        Value::Object(members) => members.get_mut(part),
        Value::Array(items) => items.get_mut(part.parse::<usize>().ok()?),
        _ => None,
    });
    match parent {
        Some(Value::Object(members)) => {
            members.remove(last);
        }
        Some(Value::Array(items)) => {
            if let Some(index) = last.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}
