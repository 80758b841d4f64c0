//! A job whose pods each have an index, in the environment variable `JOB_INDEX`.

use std::collections::BTreeMap;

use innkeeper_sdk::condition;
use innkeeper_sdk::kinds::Pod;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read::{self, PodPhase};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An `IndexedJob`, as the guest reads it.
#[derive(Deserialize)]
pub struct IndexedJob {
    metadata: Metadata,
    spec: IndexedJobSpec,
    #[serde(default)]
    status: IndexedJobStatus,
}

/// Desired state of an `IndexedJob`.
#[derive(Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct IndexedJobSpec {
    /// Number of pods that must succeed.
    #[serde(default = "one")]
    completions: usize,
    /// Number of pods that may run at the same time.
    #[serde(default = "one")]
    parallelism: usize,
    /// Template of the pods.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(with = "innkeeper_sdk::kinds::PodTemplate"))]
    template: Value,
}

/// Observed state of an `IndexedJob`.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
#[serde(default)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct IndexedJobStatus {
    /// Number of pods that run or wait.
    active: usize,
    /// Number of pods that have succeeded.
    succeeded: usize,
    /// Number of pods that have failed.
    failed: usize,
}

fn one() -> usize {
    1
}

kind!(Primary for IndexedJob, "ctl.enisoc.com/v1", "indexedjobs");

impl CustomResource for IndexedJob {
    type Spec = IndexedJobSpec;
    type Status = IndexedJobStatus;
    const SHORT_NAMES: &'static [&'static str] = &["ij", "idxj"];
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = IndexedJob;

    fn describe() -> Manifest {
        Describe::reconciler_of::<IndexedJob>("indexed-job", "1.0.0")
            .owns::<Pod>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<IndexedJob>) -> Outcome {
        let IndexedJob { spec, status, .. } = observed.primary();
        let name = |index: usize| format!("{}-{index}", observed.name());
        let pods: BTreeMap<String, PodPhase> = observed
            .all_owned::<read::Pod>()
            .into_iter()
            .map(|pod| (pod.object.metadata.name, pod.object.status.phase))
            .collect();
        let kept = pods.keys().fold(Desired::new(), |desired, pod| desired.keep::<Pod>("", pod));
        let complete = condition::is_true("Complete", "AllSucceeded", "all pods have succeeded");
        // Later somebody may delete the pods: they are not made again.
        if status.succeeded >= spec.completions {
            return kept.status(status).condition(complete).complete();
        }

        let count = |phase| pods.values().filter(|one| **one == phase).count();
        let (succeeded, failed) = (count(PodPhase::Succeeded), count(PodPhase::Failed));
        let active = pods.len() - succeeded - failed;
        let missing = (0..spec.completions).filter(|index| !pods.contains_key(&name(*index)));
        let new = missing.take(spec.parallelism.saturating_sub(active));
        let running = condition::is_false("Complete", "Running", "not all pods have succeeded");
        kept.objects(new.map(|index| pod(name(index), index, &spec.template)))
            .status(&IndexedJobStatus { active, succeeded, failed })
            .condition(if succeeded == spec.completions { complete } else { running })
            .complete()
    }
}

/// Returns the pod with this index.
fn pod(name: String, index: usize, template: &Value) -> Raw<Pod> {
    let mut pod = template.clone();
    for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
        let mut env = container["env"].as_array().cloned().unwrap_or_default();
        env.push(json!({ "name": "JOB_INDEX", "value": index.to_string() }));
        container["env"] = Value::Array(env);
    }
    Raw::new(name, pod)
}

innkeeper_sdk::export!(Guest);
