//! Writes the text in capitals: as the candidate revision it changes every ConfigMap and deletes
//! none.

use innkeeper_sdk::{Context, Manifest, Observed, Outcome, Reconciler};
use settings::Settings;

struct Guest;

impl Reconciler for Guest {
    type Primary = Settings;

    fn describe() -> Manifest {
        settings::Guest::describe()
    }

    fn reconcile(_context: &Context, observed: &Observed<Settings>) -> Outcome {
        let spec = &observed.primary().spec;
        settings::config_maps(observed, &spec.names, &spec.text.to_uppercase())
    }
}

innkeeper_sdk::export!(Guest);
