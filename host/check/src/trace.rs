//! A scenario that breaks a law, for people.

use std::fmt;

use crate::law::{Case, Violation};
use crate::player::{PlayError, Player};
use crate::scenario::Step;
use crate::shrink::Shrunk;

/// A scenario that breaks a law: what users do, what goes wrong, what the host writes.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The smallest case that was found.
    pub case: Case,
    /// What it breaks.
    pub violation: Violation,
    /// The requests of the host, one line each.
    pub writes: Vec<String>,
    /// How many smaller scenarios were tried.
    pub tried: u32,
}

impl Trace {
    /// Plays the case once more, and describes it.
    ///
    /// # Errors
    /// If it cannot be played.
    pub(crate) fn of(player: &Player, shrunk: Shrunk) -> Result<Self, PlayError> {
        let Shrunk { case, violation, tried } = shrunk;
        let outcome = player.play(&case.scenario)?;
        let faults = &case.scenario.faults.faults;
        let writes = outcome.writes().map(|request| {
            let answer = match request.code {
                Some(code) => format!("{code}"),
                None => "no answer".to_owned(),
            };
            let number = request.write.unwrap_or_default();
            let fault = request.fault.and_then(|index| faults.get(index));
            let fault = fault.map(|one| format!(" <- {}", one.fault)).unwrap_or_default();
            format!("{number:3}. {}: {answer}{fault}", request.info)
        });
        let writes = writes.collect();
        Ok(Self { case, violation, writes, tried })
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scenario = &self.case.scenario;
        writeln!(f, "{}: {}", self.case.law, self.violation.what)?;
        for line in &self.violation.details {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "Seed {}. Steps:", scenario.seed)?;
        for (index, step) in scenario.steps.iter().enumerate() {
            writeln!(f, "{:3}. {step}", index + 1)?;
            if let Step::Apply(object) | Step::Replace(object) | Step::Merge(object) = step {
                let text = serde_json::to_string(object).unwrap_or_default();
                writeln!(f, "     {text}")?;
            }
        }
        if !scenario.faults.faults.is_empty() {
            writeln!(f, "Faults:")?;
            for fault in &scenario.faults.faults {
                writeln!(f, "  - {fault}")?;
            }
        }
        writeln!(f, "Writes of the host:")?;
        for line in &self.writes {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}
