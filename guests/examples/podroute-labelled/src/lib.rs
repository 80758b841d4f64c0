//! podroute with one visible difference: every object carries the label `guest-version: v2`.
//!
//! It shows how a guest extends another one, and replaces a running podroute to show a rollout.

use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};
use podroute::Podroute;

/// The label of this version's objects.
pub const LABEL: (&str, &str) = ("guest-version", "v2");

/// podroute's logic, and a label.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Podroute;

    fn describe() -> Manifest {
        Manifest { version: env!("CARGO_PKG_VERSION").to_owned(), ..podroute::Guest::describe() }
    }

    fn reconcile(context: &Context, observed: &Observed<Podroute>) -> Outcome {
        let mut outcome = podroute::Guest::reconcile(context, observed);
        for object in outcome.objects_mut() {
            // Only on the object: a selector is immutable, and a label of the pods would roll out
            // new ones.
            object.metadata_mut().labels.insert(LABEL.0.to_owned(), LABEL.1.to_owned());
        }
        outcome
    }
}

innkeeper_sdk::export!(Guest);

#[cfg(test)]
mod tests {
    use innkeeper_sdk::testing::Scenario;
    use serde_json::{Value, json};

    use super::*;

    fn primary() -> Value {
        json!({ "metadata": { "name": "test-podroute" }, "spec": { "image": "web:1", "replicas": 3 } })
    }

    #[test]
    fn objects_differ_from_those_of_podroute_in_one_label() {
        let plain = Scenario::<podroute::Guest>::of(primary()).run();
        let labelled = Scenario::<Guest>::of(primary()).run();
        labelled.is_complete().desires_objects(3);
        for (plain, labelled) in plain.objects().iter().zip(labelled.objects()) {
            let mut expected = plain.clone();
            expected["metadata"]["labels"]["guest-version"] = json!("v2");
            assert_eq!(*labelled, expected);
        }
    }

    #[test]
    fn manifest_has_the_same_kinds_as_that_of_podroute() {
        let (plain, labelled) = (podroute::Guest::describe(), Guest::describe());
        assert_eq!(plain, Manifest { version: plain.version.clone(), ..labelled });
    }
}
