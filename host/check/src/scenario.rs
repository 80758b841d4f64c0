//! What users do to a cluster, and what goes wrong meanwhile.

use std::fmt;

use innkeeper_faults::FaultPlan;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::incident::{Incident, PlannedIncident};

/// Steps of users, and faults of the requests that the host sends meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// The seed of everything random in the cluster and the host: uids, generated names, waits.
    pub seed: u64,
    /// The steps. After the last one the host runs until nobody writes any more.
    pub steps: Vec<Step>,
    /// The faults. Writes are counted from the first step.
    pub faults: FaultPlan,
    /// What happens in the middle of writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<PlannedIncident>,
    /// Whether it takes longer without a write until the cluster counts as quiet: a fault may keep
    /// an event or an answer back.
    #[serde(default, rename = "isPatient")]
    pub needs_long_quiet: bool,
    /// Whether the host also runs the guest for changes of fields that it does not report.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wakes_for_every_field: bool,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// A user applies an object, as `kubectl apply --server-side --force-conflicts` does.
    Apply(Value),
    /// A user replaces an object by this one, as `kubectl replace` does; creates it if it is not
    /// there.
    Replace(Value),
    /// A user deletes the object with this kind, namespace and name.
    Delete(Value),
    /// Another client merges this into the object with its kind, namespace and name.
    #[serde(rename = "merge")]
    MergePatch(Value),
    /// Nobody does anything until nobody writes any more.
    Settle,
    /// Nobody does anything for as many seconds.
    #[serde(rename = "pass")]
    Wait(u32),
    /// The host stops in an orderly way and starts again.
    Restart,
    /// The same, and the Module has the new component from here on. Before, it has the earlier one.
    Upgrade,
    /// A user deletes the object with this kind, namespace and name, waits until it is gone, and
    /// applies this one.
    Recreate(Value),
    /// Something happens to the host or the cluster.
    Incident(Incident),
}

impl Scenario {
    /// A scenario without faults.
    pub fn new(seed: u64, steps: Vec<Step>) -> Self {
        Self {
            seed,
            steps,
            faults: FaultPlan::default(),
            incidents: Vec::new(),
            needs_long_quiet: false,
            wakes_for_every_field: false,
        }
    }

    /// The same with other faults, or without, in the same time.
    #[must_use]
    pub fn with_faults(&self, faults: FaultPlan) -> Self {
        Self { faults, needs_long_quiet: true, ..self.clone() }
    }

    /// The same with incidents in the middle of writes.
    #[must_use]
    pub fn with_incidents(&self, incidents: Vec<PlannedIncident>) -> Self {
        Self { incidents, needs_long_quiet: true, ..self.clone() }
    }

    /// Whether it has faults or incidents.
    pub(crate) fn is_disturbed(&self) -> bool {
        !self.faults.faults.is_empty() || self.all_incidents().next().is_some()
    }

    /// The same without faults, and without the incidents that must not change the result, in the
    /// same time.
    #[must_use]
    pub fn undisturbed(&self) -> Self {
        let disturbs = |step: &Step| matches!(step, Step::Incident(one) if one.is_disturbance());
        let steps = self.steps.iter().filter(|step| !disturbs(step)).cloned().collect();
        Self { steps, incidents: Vec::new(), ..self.with_faults(FaultPlan::default()) }
    }

    /// All incidents.
    pub(crate) fn all_incidents(&self) -> impl Iterator<Item = Incident> {
        let in_steps = self.steps.iter().filter_map(|step| match step {
            Step::Incident(incident) => Some(*incident),
            _ => None,
        });
        in_steps.chain(self.incidents.iter().map(|planned| planned.incident))
    }

    /// Whether hosts elect a leader.
    pub(crate) fn has_election(&self) -> bool {
        self.all_incidents().any(|one| matches!(one, Incident::TakeOver { .. }))
    }

    /// Whether the hostile guest runs on the host.
    pub(crate) fn needs_hostile_module(&self) -> bool {
        self.all_incidents().any(|one| one == Incident::Neighbor {})
    }
}

/// Kind, namespace and name of an object.
pub(crate) fn name_of(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/metadata/namespace") {
        "" => format!("{} {}", text("/kind"), text("/metadata/name")),
        namespace => format!("{} {namespace}/{}", text("/kind"), text("/metadata/name")),
    }
}

/// The owner references of an object that are its controller: at most one, if all is well.
pub(crate) fn controllers(object: &Value) -> impl Iterator<Item = &Value> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.filter(|owner| owner["controller"] == true)
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply(object) => write!(f, "apply {}", name_of(object)),
            Self::Replace(object) => write!(f, "replace {}", name_of(object)),
            Self::Delete(object) => write!(f, "delete {}", name_of(object)),
            Self::MergePatch(object) => write!(f, "another client changes {}", name_of(object)),
            Self::Settle => f.write_str("wait until nobody writes any more"),
            Self::Wait(seconds) => write!(f, "wait {seconds} s"),
            Self::Restart => f.write_str("restart the host"),
            Self::Upgrade => f.write_str("upgrade from the earlier component"),
            Self::Recreate(object) => {
                write!(f, "delete {}, wait until it is gone, and apply it", name_of(object))
            }
            Self::Incident(incident) => write!(f, "{incident}"),
        }
    }
}
