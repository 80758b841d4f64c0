//! Pods with claims that are made, updated and deleted in order, as those of a `StatefulSet`.

use std::collections::BTreeMap;

use innkeeper_sdk::kinds::{
    ControllerRevision, LabelSelector, PersistentVolumeClaim as Claim, Pod, PodTemplate, Volume,
};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{IntoObject as _, RevisionHistory, Scale, UpdateGroup, read};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A `CatSet`, as the guest reads it.
#[derive(Deserialize)]
pub struct CatSet {
    metadata: Metadata,
    spec: CatSetSpec,
}

/// Desired state of a `CatSet`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct CatSetSpec {
    /// Name of the Service that gives the pods their host names.
    service_name: String,
    /// Labels of the pods.
    selector: LabelSelector,
    /// Number of pods.
    replicas: usize,
    /// Template of the pods.
    template: PodTemplate,
    /// Templates of the claims that each pod has; their names are those of the volumes.
    #[serde(default)]
    volume_claim_templates: Vec<ClaimTemplate>,
}

/// Metadata and spec of claims.
#[derive(Clone, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ClaimTemplate {
    /// Name, labels and annotations.
    metadata: Value,
    /// Spec of the claims, as Kubernetes documents it.
    spec: Value,
}

/// Observed state of a `CatSet`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct CatSetStatus {
    /// Number of pods.
    replicas: usize,
    /// Number of pods up to the first one that is not ready.
    ready_replicas: usize,
}

kind!(Primary for CatSet, "ctl.enisoc.com/v1", "catsets");

impl CustomResource for CatSet {
    type Spec = CatSetSpec;
    type Status = CatSetStatus;
    const SCALE: Option<Scale> = Some(Scale::at(".spec.replicas", ".status.replicas"));
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = CatSet;

    fn describe() -> Manifest {
        Describe::reconciler_of::<CatSet>("cat-set", "1.0.0")
            .owns::<Pod>()
            .owns::<Claim>()
            .owns::<ControllerRevision>()
            .finalizes("")
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<CatSet>) -> Outcome {
        let set = observed.primary();
        let pods: BTreeMap<usize, read::Pod> = observed
            .all_owned::<read::Pod>()
            .into_iter()
            .filter_map(|pod| Some((set.ordinal(&pod.object.metadata.name)?, pod.object)))
            .collect();
        let replicas = if observed.is_deleting() { 0 } else { set.spec.replicas };
        let is_ready = |ordinal: &usize| pods.get(ordinal).is_some_and(read::Pod::is_serving);
        let ready = (0..replicas).take_while(is_ready).count();

        // One pod more or less at a time, and only when the lower ones are ready.
        let mut ordinals: Vec<_> = pods.keys().copied().collect();
        if ready < replicas && !pods.contains_key(&ready) {
            ordinals.push(ready);
        } else if ready == replicas && ordinals.last().is_some_and(|last| *last >= replicas) {
            ordinals.pop();
        }
        // The host updates them in this order.
        ordinals.sort_unstable_by(|one, other| other.cmp(one));

        let status = CatSetStatus { replicas: pods.len(), ready_replicas: ready };
        let mut desired = Desired::new()
            .update_group(UpdateGroup::rolling_recreate("pods").check("Ready"))
            .update_group(UpdateGroup::on_delete("claims"))
            .revision_history(RevisionHistory::of(["spec.template"]))
            .status(&status);
        for ordinal in ordinals {
            desired = if observed.is_deleting() {
                desired.keep::<Pod>("", &set.pod_name(ordinal))
            } else {
                desired.object(set.pod(ordinal).in_update_group("pods"))
            };
        }
        // Claims stay when pods go, until the CatSet is deleted.
        let claims: BTreeMap<_, _> =
            (0..replicas).flat_map(|ordinal| set.claims(ordinal)).collect();
        for Owned { object, .. } in observed.all_owned::<read::PersistentVolumeClaim>() {
            if !claims.contains_key(&object.metadata.name) {
                desired = desired.keep::<Claim>("", &object.metadata.name);
            }
        }
        desired = desired.objects(claims.into_values().map(|one| one.in_update_group("claims")));
        if pods.is_empty() { desired.finalized() } else { desired }.complete()
    }
}

impl CatSet {
    fn pod_name(&self, ordinal: usize) -> String {
        format!("{}-{ordinal}", self.metadata.name)
    }

    /// Returns the ordinal of the pod with this name.
    fn ordinal(&self, pod: &str) -> Option<usize> {
        pod.strip_prefix(&self.metadata.name)?.strip_prefix('-')?.parse().ok()
    }

    fn pod(&self, ordinal: usize) -> Pod {
        let name = self.pod_name(ordinal);
        let mut template = self.spec.template.clone();
        template.metadata.labels.extend(self.spec.selector.match_labels.clone());
        let template =
            template.field("hostname", &*name).field("subdomain", &*self.spec.service_name);
        let templates = self.spec.volume_claim_templates.iter();
        let template = templates.fold(template, |template, claim| {
            template.volume(Volume::of_claim(claim.name(), claim.name_for(&name)))
        });
        Pod::new(name, template)
    }

    /// Returns the claims of a pod, by name.
    fn claims(&self, ordinal: usize) -> impl Iterator<Item = (String, Raw<Claim>)> {
        let pod = self.pod_name(ordinal);
        self.spec.volume_claim_templates.iter().map(move |template| {
            let name = template.name_for(&pod);
            let claim = json!({ "metadata": template.metadata, "spec": template.spec });
            (name.clone(), Raw::new(name, claim))
        })
    }
}

impl ClaimTemplate {
    fn name(&self) -> &str {
        self.metadata["name"].as_str().unwrap_or_default()
    }

    /// Returns the name of the claim of a pod.
    fn name_for(&self, pod: &str) -> String {
        format!("{}-{pod}", self.name())
    }
}

innkeeper_sdk::export!(Guest);
