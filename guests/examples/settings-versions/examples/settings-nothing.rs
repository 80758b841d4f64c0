//! Desires nothing, and no longer declares the kind that earlier versions owned.

use innkeeper_sdk::{Context, Describe, Desired, Manifest, Observed, Outcome, Reconciler};
use settings::{Settings, SettingsStatus};

struct Guest;

impl Reconciler for Guest {
    type Primary = Settings;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Settings>("settings", "0.9.0").manifest()
    }

    fn reconcile(_context: &Context, _observed: &Observed<Settings>) -> Outcome {
        Desired::new().status(&SettingsStatus { config_maps: 0 }).complete()
    }
}

innkeeper_sdk::export!(Guest);
