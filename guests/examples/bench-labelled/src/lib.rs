//! The bench guest with one visible difference: every object carries the label
//! `bench.example.com/version: v2`. Tests replace the bench guest by it at run time.

use bench_guest::Bench;
use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};

/// The label of this version's objects.
pub const LABEL: (&str, &str) = ("bench.example.com/version", "v2");

/// The bench guest's logic, and a label.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Bench;

    fn describe() -> Manifest {
        Manifest { version: env!("CARGO_PKG_VERSION").to_owned(), ..bench_guest::Guest::describe() }
    }

    fn reconcile(context: &Context, observed: &Observed<Bench>) -> Outcome {
        let mut outcome = bench_guest::Guest::reconcile(context, observed);
        for object in outcome.objects_mut() {
            object.metadata_mut().labels.insert(LABEL.0.to_owned(), LABEL.1.to_owned());
        }
        outcome
    }
}

innkeeper_sdk::export!(Guest);

#[cfg(test)]
mod tests {
    use innkeeper_sdk::testing::Scenario;
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_differ_from_those_of_bench_in_one_label() {
        let primary = json!({ "metadata": { "name": "one" }, "spec": { "image": "web:1" } });
        let plain = Scenario::<bench_guest::Guest>::of(primary.clone()).run();
        let labelled = Scenario::<Guest>::of(primary).run();
        labelled.is_complete().desires_objects(2);
        for (plain, labelled) in plain.objects().iter().zip(labelled.objects()) {
            let mut expected = plain.clone();
            expected["metadata"]["labels"]["bench.example.com/version"] = json!("v2");
            assert_eq!(*labelled, expected);
        }
    }
}
