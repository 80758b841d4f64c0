//! Desires a Secret in addition to the objects of the bench guest; its manifest does not own
//! Secrets.

use std::collections::BTreeMap;

use bench_guest::Bench;
use innkeeper_sdk::{Apply, Context, Manifest, Metadata, Observed, Outcome, Reconciler, Resource};
use serde::Serialize;

struct Guest;

impl Reconciler for Guest {
    type Primary = Bench;

    fn describe() -> Manifest {
        bench_guest::Guest::describe()
    }

    fn reconcile(context: &Context, observed: &Observed<Bench>) -> Outcome {
        match bench_guest::Guest::reconcile(context, observed) {
            Outcome::Complete(desired) => desired
                .object(Secret {
                    metadata: Metadata::named(observed.name()),
                    string_data: BTreeMap::from([("key", "value")]),
                })
                .complete(),
            other => other,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Secret {
    metadata: Metadata,
    string_data: BTreeMap<&'static str, &'static str>,
}

impl Resource for Secret {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Secret";
    const PLURAL: &'static str = "secrets";
}

impl Apply for Secret {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

innkeeper_sdk::export!(Guest);
