//! Fails if there is a name `b`.

use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};
use settings::Settings;

struct Guest;

impl Reconciler for Guest {
    type Primary = Settings;

    fn describe() -> Manifest {
        settings::Guest::describe()
    }

    fn reconcile(context: &Context, observed: &Observed<Settings>) -> Outcome {
        if observed.primary().spec.names.iter().any(|name| name == "b") {
            return Outcome::failed("AfraidOfB", "there is a b");
        }
        settings::Guest::reconcile(context, observed)
    }
}

innkeeper_sdk::export!(Guest);
