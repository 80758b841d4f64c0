//! Cases as documents: what a check prints for a broken law, and runs again.

use std::fmt;

use innkeeper_core::foreign;
use innkeeper_faults::{Fault, PlannedFault, WatchFault, bounded_json, bounded_yaml};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::incident::Incident;
use crate::law::{Case, Expectation, Law};
use crate::scenario::{Scenario, Step};

/// The largest document of a case, in bytes.
pub const CASE_BYTES_MAX: usize = 1 << 20;

/// The longest part of a document that an error quotes, in bytes.
const QUOTED_BYTES_MAX: usize = 512;

/// The most bytes of the values of a document: aliases of YAML name values several times.
const EXPANDED_BYTES_MAX: usize = 4 << 20;

/// The most steps.
const STEPS_MAX: usize = 1_000;

/// The most faults and incidents.
const FAULTS_MAX: usize = 100;

/// The longest time of all waits and delays together, in virtual milliseconds.
const WAITS_MAX_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// The shortest time after which each watch may end, in virtual milliseconds.
const WATCH_MIN_MS: u64 = 1_000;

/// By how much the clock may be set in all incidents together, in seconds.
const CLOCK_MAX_SECONDS: u64 = 366 * 24 * 3_600;

/// The most crashes of all faults together.
const CRASHES_MAX: u64 = 1_000;

/// Why a text is no case that can be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadCaseError {
    /// The text is too large.
    #[error("the document has {0} bytes; the most are {CASE_BYTES_MAX}")]
    TooLarge(usize),
    /// The text is neither YAML nor JSON, or is no case.
    #[error("the document is no case: {0}; give one as `innkeeper check -o json` prints it")]
    Malformed(String),
    /// No law has this name.
    #[error("there is no law \"{0}\"; the laws are {laws}", laws = law_names())]
    UnknownLaw(String),
    /// There is too much of something.
    #[error("the scenario has {count} {what}; the most are {most}")]
    TooMany {
        /// What it is.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        most: u64,
    },
    /// A step cannot be carried out.
    #[error("step {number} ({step}): {why}")]
    Step {
        /// Its number, from 1.
        number: usize,
        /// What it does.
        step: &'static str,
        /// Why it cannot be carried out.
        why: &'static str,
    },
    /// A fault cannot be injected.
    #[error("fault {number}: {why}")]
    Fault {
        /// Its number, from 1.
        number: usize,
        /// Why it cannot be injected.
        why: &'static str,
    },
}

fn law_names() -> String {
    Law::ALL.map(Law::name).join(", ")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseDocument {
    law: String,
    expectation: Expectation,
    scenario: Scenario,
}

impl Case {
    /// Reads a case from YAML or JSON: an object with the members `law`, `expectation` and
    /// `scenario`, as [`Case`] is serialized. The text may come from anyone.
    ///
    /// # Errors
    /// If the text is larger than 1 MiB or is no case; or if the scenario has more than 1,000
    /// steps, 100 faults and incidents or 1,000 crashes, waits for more than 7 days, sets the clock
    /// by more than 366 days, or has a step or a fault that cannot be carried out.
    pub fn read(text: &str) -> Result<Self, ReadCaseError> {
        if text.len() > CASE_BYTES_MAX {
            return Err(ReadCaseError::TooLarge(text.len()));
        }
        let malformed = |error: &dyn fmt::Display| {
            ReadCaseError::Malformed(foreign::one_line(error, QUOTED_BYTES_MAX))
        };
        let value = read_value(text).map_err(|error| malformed(&error))?;
        let document: CaseDocument =
            serde_json::from_value(value).map_err(|error| malformed(&error))?;
        let CaseDocument { law, expectation, scenario } = document;
        let law = Law::named(&law)
            .ok_or_else(|| ReadCaseError::UnknownLaw(foreign::one_line(&law, QUOTED_BYTES_MAX)))?;
        check_scenario(&scenario)?;
        Ok(Self { law, scenario, expectation })
    }
}

impl Serialize for Law {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

fn at_most(what: &'static str, count: u64, most: u64) -> Result<(), ReadCaseError> {
    if count > most { Err(ReadCaseError::TooMany { what, count, most }) } else { Ok(()) }
}

fn check_scenario(scenario: &Scenario) -> Result<(), ReadCaseError> {
    let faults = &scenario.faults.faults;
    at_most("steps", scenario.steps.len() as u64, STEPS_MAX as u64)?;
    let planned = faults.len() + scenario.incidents.len();
    at_most("faults and incidents", planned as u64, FAULTS_MAX as u64)?;
    let (mut waits, mut clock) = (0_u64, 0_u64);
    for incident in scenario.all_incidents() {
        match incident {
            Incident::Pause { seconds }
            | Incident::CutOff { seconds }
            | Incident::TakeOver { seconds } => {
                waits = waits.saturating_add(u64::from(seconds) * 1_000);
            }
            Incident::SetClock { seconds } => clock = clock.saturating_add(seconds.unsigned_abs()),
            Incident::Swap {}
            | Incident::SwapBack {}
            | Incident::Neighbor {}
            | Incident::Defaulting {}
            | Incident::Backup {}
            | Incident::Restore { .. } => {}
        }
    }
    at_most("seconds by which the clock is set", clock, CLOCK_MAX_SECONDS)?;
    for (index, step) in scenario.steps.iter().enumerate() {
        let number = index + 1;
        match step {
            Step::Apply(object) => check_object(number, "apply", object)?,
            Step::Replace(object) => check_object(number, "replace", object)?,
            Step::Delete(object) => check_object(number, "delete", object)?,
            Step::MergePatch(object) => check_object(number, "merge", object)?,
            Step::Recreate(object) => check_object(number, "recreate", object)?,
            Step::Wait(seconds) => waits = waits.saturating_add(u64::from(*seconds) * 1_000),
            Step::Incident(Incident::Restore { .. }) if !has_backup(&scenario.steps[..index]) => {
                let why = "there is no step with the incident backup before";
                return Err(ReadCaseError::Step { number, step: "restore", why });
            }
            Step::Settle | Step::Restart | Step::Upgrade | Step::Incident(_) => {}
        }
    }
    let mut crashes = 0_u64;
    for (index, planned) in faults.iter().enumerate() {
        check_fault(index + 1, planned)?;
        waits = waits.saturating_add(delay(&planned.fault));
        if matches!(planned.fault, Fault::Crash { .. }) {
            crashes += u64::from(planned.count);
        }
    }
    at_most("crashes", crashes, CRASHES_MAX)?;
    at_most("milliseconds of waits and delays", waits, WAITS_MAX_MS)
}

fn has_backup(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Incident(Incident::Backup {})))
}

/// The runner identifies objects by these members.
fn check_object(number: usize, step: &'static str, object: &Value) -> Result<(), ReadCaseError> {
    let error = |why| Err(ReadCaseError::Step { number, step, why });
    let is_text = |pointer| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.is_some_and(|text| !text.is_empty())
    };
    if !is_text("/apiVersion") || !is_text("/kind") {
        return error("the object has no apiVersion or no kind");
    }
    if !is_text("/metadata/name") {
        return error("the object has no metadata.name");
    }
    Ok(())
}

fn check_fault(number: usize, planned: &PlannedFault) -> Result<(), ReadCaseError> {
    let error = |why| Err(ReadCaseError::Fault { number, why });
    match &planned.fault {
        Fault::Crash { .. } if planned.count == 0 => {
            error("a host that crashes at each request never starts; give a count")
        }
        Fault::Watch(fault) if planned.count == 0 && ends_at_once(*fault) => {
            error("the host watches again for ever if each watch ends at once; give a count")
        }
        Fault::Refuse(refusal) if !refusal.is_error() => {
            error("the code of a refusal is no HTTP status from 400 to 599")
        }
        _ => Ok(()),
    }
}

/// Whether a watch ends before time passes and before anything happens in the cluster.
fn ends_at_once(fault: WatchFault) -> bool {
    match fault {
        WatchFault::Close { after_events } | WatchFault::Expire { after_events } => {
            after_events == 0
        }
        WatchFault::Gap { events, milliseconds } => events == 0 || milliseconds < WATCH_MIN_MS,
        WatchFault::Lag { .. }
        | WatchFault::Freeze { .. }
        | WatchFault::Repeat { .. }
        | WatchFault::Bookmark {} => false,
    }
}

/// For how long a fault keeps something back at most, in milliseconds.
fn delay(fault: &Fault) -> u64 {
    match fault {
        Fault::DelayAnswer { milliseconds }
        | Fault::DelayRequest { milliseconds }
        | Fault::Watch(
            WatchFault::Lag { milliseconds, .. }
            | WatchFault::Freeze { milliseconds }
            | WatchFault::Gap { milliseconds, .. },
        ) => *milliseconds,
        Fault::Refuse(refusal) => u64::from(refusal.retry_after_seconds.unwrap_or(0)) * 1_000,
        _ => 0,
    }
}

/// Reads a value from JSON or YAML.
fn read_value(text: &str) -> Result<Value, String> {
    let text = text.as_bytes();
    // Flow mappings of YAML begin as JSON does. JSON may have brackets in its texts.
    if let Some(b'{') = text.trim_ascii_start().first()
        && let Ok(value) = bounded_json(text, EXPANDED_BYTES_MAX)
    {
        return Ok(value);
    }
    bounded_yaml(text, EXPANDED_BYTES_MAX)
}

#[cfg(test)]
mod tests;
