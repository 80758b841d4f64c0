//! Copies of one Secret in the namespaces with some labels. The host copies the values: the guest
//! never sees them.

use innkeeper_sdk::kinds::{LabelSelector, Secret};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{IntoObject as _, ValueSource, read};
use serde::{Deserialize, Serialize};

/// A `SecretPropagation`, as the guest reads it.
#[derive(Deserialize)]
pub struct SecretPropagation {
    metadata: Metadata,
    spec: SecretPropagationSpec,
}

/// Desired state of a `SecretPropagation`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct SecretPropagationSpec {
    /// Name of the Secret, and of its copies.
    source_name: String,
    /// Namespace of the Secret.
    source_namespace: String,
    /// Labels of the namespaces of the copies.
    target_namespace_label_selector: LabelSelector,
}

/// Observed state of a `SecretPropagation`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct SecretPropagationStatus {
    /// Number of copies.
    copies: usize,
}

kind!(
    Primary for SecretPropagation,
    "examples.metacontroller.io/v1alpha1", "secretpropagations", Cluster
);

impl CustomResource for SecretPropagation {
    type Spec = SecretPropagationSpec;
    type Status = SecretPropagationStatus;
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = SecretPropagation;

    fn describe() -> Manifest {
        Describe::reconciler_of::<SecretPropagation>("secret-propagation", "1.0.0")
            .owns::<Secret>()
            .reads::<read::Secret>()
            .reads::<read::Namespace>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<SecretPropagation>) -> Outcome {
        let copies = observed.count_owned::<Secret>();
        match desired(context, &observed.primary().spec) {
            Ok(desired) => desired.status(&SecretPropagationStatus { copies }).complete(),
            Err(error) => error.into(),
        }
    }
}

/// Returns the copies; none if the source does not exist.
fn desired(context: &Context, spec: &SecretPropagationSpec) -> Result<Desired, ReadError> {
    let (namespace, name) = (&*spec.source_namespace, &*spec.source_name);
    if context.find::<read::Secret>(namespace, name)?.is_none() {
        return Ok(Desired::new());
    }
    let selector = spec.target_namespace_label_selector.to_string();
    let targets = context.list::<read::Namespace>("", &selector)?.into_iter().filter(|target| {
        target.object.metadata.name != namespace && !target.object.is_terminating()
    });
    Ok(Desired::new().objects(targets.map(|target| {
        let copy = Secret::new(name).namespace(target.object.metadata.name);
        copy.values_from(ValueSource::secret(namespace, name))
    })))
}

innkeeper_sdk::export!(Guest);
