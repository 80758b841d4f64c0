//! Blue-green deployments: a `Service` sends its traffic to one of two `ReplicaSets`, and changes
//! over when all pods of the other one run a new template.

use innkeeper_sdk::kinds::{ReplicaSet, Service};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{read, template_hash};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A `BlueGreenDeployment`, as the guest reads it.
#[derive(Deserialize)]
pub struct BlueGreenDeployment {
    metadata: Metadata,
    spec: BlueGreenDeploymentSpec,
}

/// Desired state of a `BlueGreenDeployment`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct BlueGreenDeploymentSpec {
    /// Number of pods that serve.
    replicas: i32,
    /// Seconds for which a pod must be ready before it counts.
    #[serde(default)]
    min_ready_seconds: u32,
    /// Labels of the pods.
    selector: Selector,
    /// Template of the pods.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(with = "innkeeper_sdk::kinds::PodTemplate"))]
    template: Value,
    /// Metadata and spec of the Service.
    service: ServiceTemplate,
}

/// Labels that all pods have.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Selector {
    /// The labels.
    match_labels: Labels,
}

/// Metadata and spec of the Service.
#[derive(Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ServiceTemplate {
    /// Name and labels.
    metadata: Value,
    /// Spec of the Service, as Kubernetes documents it.
    spec: Value,
}

/// Observed state of a `BlueGreenDeployment`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct BlueGreenDeploymentStatus {
    /// Color of the pods that serve: `blue` or `green`.
    active_color: String,
    /// Pods of this color.
    active: Pods,
    /// Pods of the other color.
    inactive: Pods,
}

/// Pods of a color.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Pods {
    /// Number of pods.
    replicas: i32,
    /// Number of these that are ready.
    ready_replicas: i32,
    /// Number of these that have been ready for `minReadySeconds`.
    available_replicas: i32,
}

kind!(Primary for BlueGreenDeployment, "ctl.enisoc.com/v1", "bluegreendeployments");

impl CustomResource for BlueGreenDeployment {
    type Spec = BlueGreenDeploymentSpec;
    type Status = BlueGreenDeploymentStatus;
    const SHORT_NAMES: &'static [&'static str] = &["bgd"];
}

/// Annotation of a `ReplicaSet`: hash of the template that its pods run.
const HASH: &str = "bluegreendeployments.ctl.enisoc.com/template-hash";

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = BlueGreenDeployment;

    fn describe() -> Manifest {
        Describe::reconciler_of::<BlueGreenDeployment>("blue-green", "1.0.0")
            .owns::<Service>()
            .owns::<ReplicaSet>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<BlueGreenDeployment>) -> Outcome {
        let spec = &observed.primary().spec;
        let service = spec.service.metadata["name"].as_str().unwrap_or_default();
        let selector = observed.owned::<read::Service>(service).map(|one| one.object.spec.selector);
        let is_green = selector.is_some_and(|one| one.get("color").is_some_and(|it| it == "green"));
        let [active, inactive] = if is_green { ["green", "blue"] } else { ["blue", "green"] };

        let name = |color| format!("{}-{color}", observed.name());
        let find = |color| observed.owned::<read::ReplicaSet>(&name(color)).map(|one| one.object);
        let hash = template_hash(&spec.template);
        let runs = |set: &read::ReplicaSet| set.metadata.annotations.get(HASH) == Some(&hash);
        let (old, new) = (find(active), find(inactive));
        let desired = Desired::new().status(&BlueGreenDeploymentStatus {
            active_color: active.to_owned(),
            active: Pods::of(old.as_ref()),
            inactive: Pods::of(new.as_ref()),
        });
        // The other ReplicaSet goes, with a third template it starts from nothing.
        if old.as_ref().is_none_or(runs) {
            let set = replica_set(name(active), active, &hash, spec);
            return desired.object(service_of(spec, service, active)).object(set).complete();
        }
        let desired = desired.keep::<ReplicaSet>("", &name(active));
        let replaces =
            |set: &read::ReplicaSet| runs(set) && set.status.available_replicas >= spec.replicas;
        let serving = if new.as_ref().is_some_and(replaces) { inactive } else { active };
        let desired = desired.object(service_of(spec, service, serving));
        if new.as_ref().is_none_or(runs) {
            let set = replica_set(name(inactive), inactive, &hash, spec);
            return desired.object(set).complete();
        }
        desired.complete()
    }
}

impl Pods {
    fn of(set: Option<&read::ReplicaSet>) -> Self {
        let status = set.map(|set| set.status.clone()).unwrap_or_default();
        Self {
            replicas: status.replicas,
            ready_replicas: status.ready_replicas,
            available_replicas: status.available_replicas,
        }
    }
}

/// Returns the Service, which selects the pods of one color.
fn service_of(spec: &BlueGreenDeploymentSpec, name: &str, color: &str) -> Raw<Service> {
    let ServiceTemplate { metadata, spec } = &spec.service;
    let mut service = json!({ "metadata": metadata, "spec": spec });
    service["spec"]["selector"]["color"] = color.into();
    Raw::new(name, service)
}

/// Returns the `ReplicaSet` of a color.
fn replica_set(
    name: String,
    color: &str,
    hash: &str,
    spec: &BlueGreenDeploymentSpec,
) -> Raw<ReplicaSet> {
    let (mut template, mut labels) = (spec.template.clone(), spec.selector.match_labels.clone());
    labels.insert("color".to_owned(), color.to_owned());
    template["metadata"]["labels"]["color"] = color.into();
    let set = json!({
        "metadata": { "labels": template["metadata"]["labels"], "annotations": { HASH: hash } },
        "spec": {
            "replicas": spec.replicas,
            "minReadySeconds": spec.min_ready_seconds,
            "selector": { "matchLabels": labels },
            "template": template,
        },
    });
    Raw::new(name, set)
}

innkeeper_sdk::export!(Guest);
