//! A job that runs once on each node: a `DaemonSet` whose init containers do the work.

use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{condition, kinds, read};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A `DaemonJob`, as the guest reads it.
#[derive(Deserialize)]
pub struct DaemonJob {
    metadata: Metadata,
    spec: DaemonJobSpec,
    #[serde(default)]
    status: DaemonJobStatus,
}

/// Desired state of a `DaemonJob`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct DaemonJobSpec {
    /// Template of the pods; its containers end.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(with = "innkeeper_sdk::kinds::PodTemplate"))]
    template: Value,
    /// Image of the container that runs when the others have ended.
    #[serde(default = "pause_image")]
    pause_image: String,
}

/// Observed state of a `DaemonJob`.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct DaemonJobStatus {
    /// Number of nodes that should run the job.
    desired_number_scheduled: i32,
    /// Number of these that have run it.
    number_ready: i32,
}

impl DaemonJobStatus {
    fn is_complete(self) -> bool {
        self.number_ready > 0 && self.number_ready == self.desired_number_scheduled
    }
}

fn pause_image() -> String {
    "registry.k8s.io/pause:3.10".to_owned()
}

kind!(Primary for DaemonJob, "ctl.example.com/v1", "daemonjobs");

impl CustomResource for DaemonJob {
    type Spec = DaemonJobSpec;
    type Status = DaemonJobStatus;
    const SHORT_NAMES: &'static [&'static str] = &["dj"];
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = DaemonJob;

    fn describe() -> Manifest {
        Describe::reconciler_of::<DaemonJob>("daemon-job", "1.0.0")
            .owns::<kinds::DaemonSet>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<DaemonJob>) -> Outcome {
        let job = observed.primary();
        let name = format!("{}-dj", observed.name());
        let complete = condition::is_true("Complete", "AllNodes", "all nodes have run the job");
        // The DaemonSet goes only when the status says that the job is complete.
        if job.status.is_complete() {
            return Desired::new().status(&job.status).condition(complete).complete();
        }
        let found = observed.owned::<read::DaemonSet>(&name).map(|one| one.object.status);
        let read::DaemonSetStatus { desired_number_scheduled, number_ready, .. } =
            found.unwrap_or_default();
        let status = DaemonJobStatus { desired_number_scheduled, number_ready };
        let desired = Desired::new().object(daemon_set(&name, &job.spec)).status(&status);
        if status.is_complete() {
            // The host does not run the guest for a change of the status that it wrote itself.
            return desired.condition(complete).requeue_after(1).complete();
        }
        let running = condition::is_false("Complete", "Running", "not all nodes have run the job");
        desired.condition(running).complete()
    }
}

/// Returns the `DaemonSet`: the job's containers come first, and then one that only waits.
fn daemon_set(name: &str, spec: &DaemonJobSpec) -> Raw<kinds::DaemonSet> {
    let mut template = spec.template.clone();
    template["spec"]["initContainers"] = template["spec"]["containers"].take();
    template["spec"]["containers"] = json!([{
        "name": "pause",
        "image": spec.pause_image,
        "resources": { "requests": { "cpu": "10m" } },
    }]);
    let labels = template["metadata"]["labels"].clone();
    let selector = json!({ "matchLabels": labels });
    Raw::new(
        name,
        json!({
            "metadata": { "labels": labels },
            "spec": { "selector": selector, "template": template },
        }),
    )
}

innkeeper_sdk::export!(Guest);
