//! Ignores the last name: as the candidate revision it would delete a ConfigMap.

use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};
use settings::Settings;

struct Guest;

impl Reconciler for Guest {
    type Primary = Settings;

    fn describe() -> Manifest {
        settings::Guest::describe()
    }

    fn reconcile(_context: &Context, observed: &Observed<Settings>) -> Outcome {
        let names = &observed.primary().spec.names;
        let fewer = names.split_last().map_or(&[][..], |(_, fewer)| fewer);
        settings::config_maps(observed, fewer, &observed.primary().spec.text)
    }
}

innkeeper_sdk::export!(Guest);
