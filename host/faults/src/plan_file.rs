//! A file with a plan, in our own format or in Sieve's.

use serde::Deserialize as _;
use serde_json::Value;

use crate::bounded_document::bounded_yaml;
use crate::fault::{Fault, WatchFault};
use crate::plan::FaultPlan;
use crate::plan_error::PlanError;
use crate::sieve::SievePlan;

/// The maximum length of a plan in bytes.
pub const PLAN_BYTES_MAX: usize = 1024 * 1024;
/// The maximum size in bytes of a plan whose aliases are replaced.
const EXPANDED_BYTES_MAX: usize = 8 * PLAN_BYTES_MAX;
/// The maximum number of faults of a plan.
const FAULTS_MAX: usize = 1000;
/// The maximum time of a fault: an hour.
const MILLISECONDS_MAX: u64 = 3_600_000;
/// The maximum number of events that a watch is behind, or loses.
const EVENTS_MAX: u32 = 10_000;

/// A plan as a file gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanFile {
    /// Faults of requests and watches.
    Faults(FaultPlan),
    /// A test plan of Sieve (github.com/sieve-project/sieve).
    Sieve(SievePlan),
}

impl PlanFile {
    /// Reads the content of a file, YAML or JSON. A document with `faults` is our own format, one
    /// with `actions` is a test plan of Sieve.
    ///
    /// # Errors
    /// If the content is too long, is no plan, or has a value out of its bounds.
    pub fn parse(content: &[u8]) -> Result<Self, PlanError> {
        if content.len() > PLAN_BYTES_MAX {
            return Err(PlanError::TooLong { bytes: content.len(), max: PLAN_BYTES_MAX });
        }
        let document = bounded_yaml(content, EXPANDED_BYTES_MAX)
            .map_err(|problem| PlanError::text(&problem))?;
        if document.get("actions").is_some() {
            return SievePlan::parse(&document).map(Self::Sieve);
        }
        if document.get("faults").is_none_or(Value::is_null) {
            return Err(PlanError::Unknown);
        }
        let plan = FaultPlan::deserialize(document)?;
        check(&plan)?;
        Ok(Self::Faults(plan))
    }

    /// The names of the API servers that the plan needs, the one to which the client under test
    /// connects first at the beginning.
    pub fn servers(&self) -> Vec<String> {
        match self {
            Self::Faults(_) => vec![SievePlan::LEADING.to_owned()],
            Self::Sieve(plan) => plan.servers(),
        }
    }

    /// Whether the plan ends the client under test, so that somebody has to start it again.
    pub fn restarts(&self) -> bool {
        match self {
            Self::Faults(plan) => {
                plan.faults.iter().any(|planned| matches!(planned.fault, Fault::Crash { .. }))
            }
            Self::Sieve(plan) => plan.restarts(),
        }
    }
}

/// Checks the values of a plan.
fn check(plan: &FaultPlan) -> Result<(), PlanError> {
    if plan.faults.len() > FAULTS_MAX {
        let problem = format!("there are {}; at most {FAULTS_MAX} are allowed", plan.faults.len());
        return Err(PlanError::value("faults", &problem));
    }
    for (index, planned) in plan.faults.iter().enumerate() {
        check_fault(&planned.fault)
            .map_err(|problem| PlanError::value(&format!("faults[{index}].fault"), &problem))?;
    }
    Ok(())
}

fn check_fault(fault: &Fault) -> Result<(), String> {
    let time = |milliseconds: u64| {
        if milliseconds > MILLISECONDS_MAX {
            return Err(format!("{milliseconds} ms is too long; at most {MILLISECONDS_MAX} ms"));
        }
        Ok(())
    };
    let count = |events: u32| {
        if events > EVENTS_MAX {
            return Err(format!("{events} events are too many; at most {EVENTS_MAX}"));
        }
        Ok(())
    };
    match fault {
        Fault::Refuse(refusal) if !refusal.is_error() => {
            Err(format!("{} refuses nothing; write a code from 400 to 599", refusal.code))
        }
        Fault::DelayAnswer { milliseconds } | Fault::DelayRequest { milliseconds } => {
            time(*milliseconds)
        }
        Fault::ConcurrentWriter(other) => {
            let request = http::Request::builder()
                .method(other.method.as_str())
                .uri(&other.path)
                .header("content-type", &other.content_type);
            if !other.path.starts_with('/') {
                return Err(format!("the path `{}` does not begin with `/`", other.path));
            }
            match request.body(()) {
                Ok(_) => Ok(()),
                Err(error) => Err(format!("the request of the other client is invalid: {error}")),
            }
        }
        Fault::Watch(
            WatchFault::Lag { events, milliseconds } | WatchFault::Gap { events, milliseconds },
        ) => {
            time(*milliseconds)?;
            count(*events)
        }
        Fault::Watch(WatchFault::Freeze { milliseconds }) => time(*milliseconds),
        Fault::Watch(
            WatchFault::Close { after_events: events }
            | WatchFault::Expire { after_events: events }
            | WatchFault::Repeat { events },
        ) => count(*events),
        Fault::Refuse(_)
        | Fault::LoseAnswer {}
        | Fault::Hang {}
        | Fault::Duplicate {}
        | Fault::Crash { .. }
        | Fault::Watch(WatchFault::Bookmark {}) => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by it")]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        PlanFile::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn plan_in_yaml_is_read() {
        let text = "faults:\n- from: 2\n  fault:\n    crash: {point: beforeAnswer}\n\
                    - requests: {verbs: [watch], resource: apps/deployments}\n  count: 0\n  \
                    fault: {watch: {gap: {events: 2, milliseconds: 5000}}}\n";
        let PlanFile::Faults(plan) = PlanFile::parse(text.as_bytes()).unwrap() else {
            panic!("no plan of faults");
        };
        let lines: Vec<String> = plan.faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "write number 2: the client crashes after it, before the answer",
                "each watch of apps/deployments: 2 events are lost, then it ends with 410, after \
                 5000 ms at most",
            ]
        );
    }

    #[test]
    fn value_out_of_bounds_is_refused_with_its_place() {
        let of = |fault: &str| error(&format!("faults: [{{fault: {fault}}}]"));
        assert_eq!(
            of("{delayAnswer: {milliseconds: 3600001}}"),
            "faults[0].fault: 3600001 ms is too long; at most 3600000 ms"
        );
        assert_eq!(
            of("{refuse: {code: 200}}"),
            "faults[0].fault: 200 refuses nothing; write a code from 400 to 599"
        );
        assert!(of("{otherWriter: {method: 'A B', path: /api}}").contains("is invalid"));
        assert!(of("{otherWriter: {method: GET, path: api}}").contains("does not begin"));
        assert!(of("{watch: {lag: {events: 10001, milliseconds: 1}}}").contains("too many"));
        assert!(of("{unplug: {}}").contains("unknown variant"));
        let many = format!("faults: [{}]", "{fault: {hang: {}}},".repeat(FAULTS_MAX + 1));
        assert!(error(&many).contains("at most 1000"));
    }

    #[test]
    fn hostile_text_is_refused_in_bounded_memory() {
        assert!(error(&" ".repeat(PLAN_BYTES_MAX + 1)).contains("at most 1048576"));
        let long = "x".repeat(PLAN_BYTES_MAX / 2);
        let aliases = format!("a: &a {long}\nfaults: [{}]", "*a,".repeat(10_000));
        assert!(error(&aliases).contains("too large"), "{}", error(&aliases));
        let deep = format!("faults: {}", "[".repeat(100_000));
        assert!(error(&deep).contains("opening brackets"));
        // Texts with closing ones do not hide them.
        let quoted = format!("faults: {}", "[\"]\",".repeat(40_000));
        assert!(error(&quoted).contains("opening brackets"));
        let deep = format!("faults:\n{}x", "- ".repeat(100_000));
        assert!(error(&deep).contains("cannot be read"));
        for text in ["", "[]", "faults:", "x: 1", "\u{0}", "faults: [}"] {
            error(text);
        }
    }
}
