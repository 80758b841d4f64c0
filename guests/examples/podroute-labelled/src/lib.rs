//! podroute with one visible difference: every object carries the label `guest-version: v2`.
//!
//! It shows how a guest builds upon another, and it is what a running podroute is replaced
//! by to watch a new version take over.

use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};
use podroute::Podroute;

/// The label that tells this version's objects.
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
            // Of the object alone: a selector is immutable, and a new label of the pods would
            // roll them out anew.
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
    fn it_differs_from_podroute_in_one_label_of_each_object_and_nothing_else() {
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
    fn it_describes_the_same_kinds_as_podroute() {
        let (plain, labelled) = (podroute::Guest::describe(), Guest::describe());
        assert_eq!(plain, Manifest { version: plain.version.clone(), ..labelled });
    }
}
