//! A ConfigMap that lists the Namespaces with some labels.

use innkeeper_sdk::kinds::{ConfigMap, LabelSelector};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read::Namespace;
use serde::{Deserialize, Serialize};

/// A `NamespaceList`, as the guest reads it.
#[derive(Deserialize)]
pub struct NamespaceList {
    metadata: Metadata,
    spec: NamespaceListSpec,
}

/// Desired state of a `NamespaceList`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct NamespaceListSpec {
    /// Labels of the listed Namespaces; all if left out.
    #[serde(default)]
    label_selector: LabelSelector,
}

/// Observed state of a `NamespaceList`.
#[derive(Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct NamespaceListStatus {
    /// Number of Namespaces.
    count: usize,
}

kind!(Primary for NamespaceList, "examples.metacontroller.io/v1alpha1", "namespacelists");

impl CustomResource for NamespaceList {
    type Spec = NamespaceListSpec;
    type Status = NamespaceListStatus;
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = NamespaceList;

    fn describe() -> Manifest {
        Describe::reconciler_of::<NamespaceList>("namespace-list", "1.0.0")
            .owns::<ConfigMap>()
            .reads::<Namespace>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<NamespaceList>) -> Outcome {
        let selector = observed.primary().spec.label_selector.to_string();
        match context.list::<Namespace>("", &selector) {
            Ok(found) => {
                let names: Vec<_> = found.iter().map(|one| &*one.object.metadata.name).collect();
                let list = ConfigMap::new(format!("{}-list", observed.name()));
                Desired::new()
                    .object(list.data("namespaces", names.join("\n")))
                    .status(&NamespaceListStatus { count: names.len() })
                    .complete()
            }
            Err(error) => error.into(),
        }
    }
}

innkeeper_sdk::export!(Guest);
