//! A scenario that breaks a law, for people.

use std::fmt::{self, Display};
use std::time::Duration;

use innkeeper_core::foreign;
use innkeeper_faults::{LogEntry, RequestRecord};
use serde::Serialize;
use serde_json::Value;

use crate::findings::shown_body;
use crate::law::{Case, Violation};
use crate::oracle::secret_texts;
use crate::outcome::Outcome;
use crate::run_error::RunError;
use crate::runner::ScenarioRunner;
use crate::scenario::Step;
use crate::shrink::Shrunk;

/// The longest line of a trace, in bytes.
const LINE_BYTES_MAX: usize = 4 << 10;

/// The most lines of what the host read before a write.
const READS_MAX: usize = 20;

/// How much of the body of a write a trace shows, in bytes.
const BODY_BYTES_MAX: usize = 500;

/// The most writes that a trace shows.
const WRITES_MAX: usize = 200;

/// A scenario that breaks a law: what users do, what goes wrong, what the host writes.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The smallest case that was found.
    pub case: Case,
    /// What it breaks.
    pub violation: Violation,
    /// The writes of the host, in order; the first 200.
    pub writes: Vec<TracedWrite>,
    /// What the host read after the last one.
    pub read_last: Vec<String>,
    /// How many more there were.
    pub more_writes: usize,
    /// How many smaller scenarios were tried.
    pub tried: u32,
    /// How long that took.
    pub took: Duration,
}

/// A write of the host, and what happened to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TracedWrite {
    /// What the host read before, since the write before this one: the events of its watches, and
    /// lists. Only names and versions; the last 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// The request.
    pub request: String,
    /// The HTTP status of the answer; `None` if none came.
    pub answer: Option<u16>,
    /// The fault that affected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The beginning of the body, without values of Secrets.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
}

impl Trace {
    /// Runs the case once more, and describes it.
    ///
    /// # Errors
    /// If it cannot be run.
    pub(crate) fn of(runner: &ScenarioRunner, shrunk: Shrunk) -> Result<Self, RunError> {
        let Shrunk { case, violation, tried, took } = shrunk;
        // The host of a scenario may not become active again; that is what the trace shows.
        let (writes, read_last, more_writes) = match runner.run_with_reads(&case.scenario) {
            Ok(outcome) => written(&case, &outcome, &secret_texts(runner.subject())),
            Err(RunError::Inactive(_)) => (Vec::new(), Vec::new(), 0),
            Err(error) => return Err(error),
        };
        Ok(Self { case, violation, writes, read_last, more_writes, tried, took })
    }
}

/// The last lines, and before them how many there are more.
fn last_lines(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > READS_MAX {
        let more = lines.len() - READS_MAX;
        lines.drain(..more);
        lines.insert(0, format!("{more} more before"));
    }
    lines
}

/// The writes of an outcome that a trace shows, what was read after the last one, and how many
/// writes there are more.
fn written(
    case: &Case,
    outcome: &Outcome,
    secrets: &[String],
) -> (Vec<TracedWrite>, Vec<String>, usize) {
    let faults = &case.scenario.faults.faults;
    let traced = |request: &RequestRecord, read: Vec<String>| {
        let mut body =
            shown_body(&request.info, &String::from_utf8_lossy(&request.body)).to_owned();
        for value in secrets {
            body = body.replace(value, "(a value of a Secret)");
        }
        let fault = request.fault.and_then(|index| faults.get(index));
        TracedWrite {
            read: last_lines(read),
            request: request.info.to_string(),
            answer: request.code,
            fault: fault.map(|one| one.fault.to_string()),
            body: foreign::one_line(body, BODY_BYTES_MAX),
        }
    };
    let (mut writes, mut read) = (Vec::new(), Vec::new());
    for entry in &outcome.log {
        match entry {
            LogEntry::Read(line) => read.push(line.clone()),
            LogEntry::Request(request) if request.write.is_none() => {}
            LogEntry::Request(_) if writes.len() == WRITES_MAX => break,
            LogEntry::Request(request) => writes.push(traced(request, std::mem::take(&mut read))),
        }
    }
    (writes, last_lines(read), outcome.writes().count().saturating_sub(WRITES_MAX))
}

/// Writes one line, whatever the text holds: names and messages come from guests and objects.
fn line(f: &mut fmt::Formatter<'_>, text: impl Display) -> fmt::Result {
    writeln!(f, "{}", foreign::one_line(text, LINE_BYTES_MAX))
}

/// What a step is about, as its serialisation has it: an object, or the members of another step.
fn content(step: &Step) -> Option<Value> {
    let Ok(Value::Object(named)) = serde_json::to_value(step) else { return None };
    named.into_iter().map(|(_, content)| content).find(|content| {
        // A number is in the sentence already.
        content.as_object().is_some_and(|members| !members.is_empty())
    })
}

impl Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { law, scenario, .. } = &self.case;
        let (bug, source) = law.published_bug();
        line(f, format_args!("{law}: {}", self.violation.what))?;
        for detail in &self.violation.details {
            line(f, format_args!("  {detail}"))?;
        }
        line(f, format_args!("The law: {}", law.sentence()))?;
        line(f, format_args!("A published bug of this kind: {bug} ({source})"))?;
        line(f, format_args!("Steps, with seed {}:", scenario.seed))?;
        for (index, step) in scenario.steps.iter().enumerate() {
            line(f, format_args!("{:3}. {step}", index + 1))?;
            let yaml = content(step).and_then(|content| serde_yaml_ng::to_string(&content).ok());
            for text in yaml.unwrap_or_default().lines() {
                line(f, format_args!("       {text}"))?;
            }
        }
        if !scenario.faults.faults.is_empty() {
            line(f, "Faults:")?;
            for fault in &scenario.faults.faults {
                line(f, format_args!("  - {fault}"))?;
            }
        }
        if !scenario.incidents.is_empty() {
            line(f, "Incidents:")?;
            for incident in &scenario.incidents {
                line(f, format_args!("  - {incident}"))?;
            }
        }
        line(f, "Writes of the host, with the answers, and what it read before each:")?;
        for (index, write) in self.writes.iter().enumerate() {
            for read in &write.read {
                line(f, format_args!("     read {read}"))?;
            }
            line(f, format_args!("{:3}. {write}", index + 1))?;
            if !write.body.is_empty() {
                line(f, format_args!("       {}", write.body))?;
            }
        }
        for read in &self.read_last {
            line(f, format_args!("     read {read}"))?;
        }
        match (self.more_writes, self.writes.len()) {
            (0, 0) => line(f, "  none"),
            (0, _) => Ok(()),
            (more, _) => line(f, format_args!("  and {more} more")),
        }
    }
}

impl Display for TracedWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.request)?;
        match self.answer {
            Some(code) => write!(f, "{code}")?,
            None => f.write_str("no answer")?,
        }
        match &self.fault {
            Some(fault) => write!(f, " <- {fault}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_faults::{CrashPoint, Fault, FaultPlan, PlannedFault};
    use serde_json::json;

    use super::*;
    use crate::law::{Expectation, Law};
    use crate::scenario::Scenario;

    fn trace(object: Value) -> Trace {
        let mut scenario = Scenario::new(7, vec![Step::Apply(object), Step::Wait(3), Step::Settle]);
        let crash = Fault::Crash { point: CrashPoint::BeforeAnswer };
        scenario.faults = FaultPlan { faults: vec![PlannedFault::at_write(2, crash)] };
        let write = TracedWrite {
            read: vec!["ADDED Shop a, resourceVersion 3".to_owned()],
            request: "apply configmaps default/a".to_owned(),
            answer: None,
            fault: Some("the client crashes".to_owned()),
            body: r#"{"data":{}}"#.to_owned(),
        };
        Trace {
            case: Case { law: Law::Crash, scenario, expectation: Expectation::AsWithoutFaults },
            violation: Violation::new("it differs", vec!["ConfigMap a: is missing".to_owned()]),
            writes: vec![write],
            read_last: vec!["DELETED ConfigMap a, resourceVersion 4".to_owned()],
            more_writes: 2,
            tried: 0,
            took: Duration::ZERO,
        }
    }

    #[test]
    fn trace_shows_law_bug_steps_as_yaml_faults_writes_and_seed() {
        let object = json!({"kind": "Shop", "metadata": {"name": "a"}, "spec": {"replicas": 2}});
        let text = trace(object).to_string();
        let (bug, source) = Law::Crash.published_bug();
        let expected = format!(
            "crash: it differs
  ConfigMap a: is missing
The law: {}
A published bug of this kind: {bug} ({source})
Steps, with seed 7:
  1. apply Shop a
       kind: Shop
       metadata:
         name: a
       spec:
         replicas: 2
  2. wait 3 s
  3. wait until nobody writes any more
Faults:
  - write number 2: the client crashes after it, before the answer
Writes of the host, with the answers, and what it read before each:
     read ADDED Shop a, resourceVersion 3
  1. apply configmaps default/a: no answer <- the client crashes
       {{\"data\":{{}}}}
     read DELETED ConfigMap a, resourceVersion 4
  and 2 more
",
            Law::Crash.sentence()
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn text_of_an_object_sends_no_command_to_a_terminal() {
        let name = "a\u{1b}[2J\r\nok    all laws\u{202e}";
        let mut trace = trace(json!({"kind": "Shop", "metadata": {"name": name}, "spec": {}}));
        trace.violation.details.push(format!("{name}: is missing"));
        trace.writes[0].request = name.to_owned();
        let text = trace.to_string();
        assert!(text.chars().all(|c| c == '\n' || foreign::is_visible(c)), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("ok ")), "{text}");
    }
}
