use innkeeper_sdk::serde_json::Value;
use innkeeper_sdk::{Condition, Time, condition};
use serde::{Deserialize, Deserializer};

use crate::{KuriPhase, KuriResult, KuriRun, KuriStatus};

/// Maximum number of runs in the history.
pub(crate) const HISTORY_MAX: usize = 5;

/// What earlier runs of the guest have written to the Kuri's status. Everybody who may write the
/// status can change it, so no run starts earlier because of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PreviousStatus {
    /// Whether the phase is that of a run that has ended.
    pub(crate) has_ended_phase: bool,
    /// The last runs of the Job, newest first.
    pub(crate) history: Vec<KuriRun>,
    /// Number of ended runs; `None` if the Kuri was never periodic, or if its
    /// CustomResourceDefinition has no such field.
    pub(crate) runs: Option<i64>,
    /// The condition `Ready` if it describes the end of a run.
    pub(crate) ready: Option<Condition>,
    /// Whether there is a condition `Periodic`.
    pub(crate) has_periodic: bool,
}

impl PreviousStatus {
    /// Returns whether the history has this run. No two runs start in the same second.
    pub(crate) fn has(&self, run: &KuriRun) -> bool {
        self.history.iter().any(|one| one.start == run.start)
    }

    /// Adds a run if it is not there yet.
    pub(crate) fn add(&mut self, run: KuriRun) {
        if self.has(&run) {
            return;
        }
        self.history.insert(0, run);
        self.history.truncate(HISTORY_MAX);
        self.runs = Some(self.runs.unwrap_or_default().saturating_add(1));
    }

    /// Returns the status with this phase and these runs.
    pub(crate) fn status(&self, phase: KuriPhase) -> KuriStatus {
        KuriStatus { phase, history: self.history.clone(), runs: self.runs, next_run: None }
    }

    fn of(status: &Value) -> Self {
        let items = |name: &str| status[name].as_array().into_iter().flatten();
        let conditions = || items("conditions");
        let is = |one: &&Value, type_: &str| one["type"] == type_;
        Self {
            has_ended_phase: matches!(status["phase"].as_str(), Some("done" | "failed")),
            history: items("history").filter_map(run).take(HISTORY_MAX).collect(),
            runs: status["runs"].as_i64().map(|runs| runs.max(0)),
            ready: conditions().find(|one| is(one, "Ready")).and_then(end_of_a_run),
            has_periodic: conditions().any(|one| is(&one, "Periodic")),
        }
    }
}

/// Returns a run of the history; `None` if the item is not one.
fn run(item: &Value) -> Option<KuriRun> {
    let time = |name: &str| item[name].as_str().filter(|text| Time::parse(text).is_some());
    let result = match item["result"].as_str()? {
        "Succeeded" => KuriResult::Succeeded,
        "Failed" => KuriResult::Failed,
        _ => return None,
    };
    Some(KuriRun { start: time("start")?.to_owned(), end: time("end")?.to_owned(), result })
}

/// Returns the condition `Ready` if it describes the end of a run.
fn end_of_a_run(ready: &Value) -> Option<Condition> {
    let message = ready["message"].as_str()?;
    match (ready["status"].as_str()?, ready["reason"].as_str()?) {
        ("True", reason @ "Succeeded") => Some(condition::ready(reason, message)),
        ("False", reason @ "Failed") => Some(condition::not_ready(reason, message)),
        _ => None,
    }
}

/// Reads whatever is in a status: one that the guest cannot use counts as empty.
impl<'de> Deserialize<'de> for PreviousStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&Value::deserialize(deserializer)?))
    }
}
