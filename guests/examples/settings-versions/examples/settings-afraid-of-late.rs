//! Fails if the text is `late`, so that it starts to fail after the rollout.

use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};
use settings::Settings;

struct Guest;

impl Reconciler for Guest {
    type Primary = Settings;

    fn describe() -> Manifest {
        settings::Guest::describe()
    }

    fn reconcile(context: &Context, observed: &Observed<Settings>) -> Outcome {
        if observed.primary().spec.text == "late" {
            return Outcome::failed("TooLate", "it is late");
        }
        settings::Guest::reconcile(context, observed)
    }
}

innkeeper_sdk::export!(Guest);
