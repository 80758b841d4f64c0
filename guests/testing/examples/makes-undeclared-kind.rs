//! Desires a Secret in addition to the objects of the bench guest; its manifest does not own
//! Secrets.

use std::collections::BTreeMap;

use bench_guest::Bench;
use innkeeper_sdk::{Context, Manifest, Metadata, Observed, Outcome, Reconciler, kind};
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

kind!(Apply for Secret, "v1", "secrets");

innkeeper_sdk::export!(Guest);
