use imo::Imo;
use innkeeper_sdk::{Context, Describe, Desired, Manifest, Observed, Outcome, Reconciler, names};
use kuri::Kuri;

use crate::children::Child;
use crate::{Kabocha, KabochaStatus, Parameters, progress, teardown};

/// The finalizer of every Kabocha, as in the original operator.
pub const FINALIZER: &str = "finalizer.kabocha.example.com";

/// The reconcile logic of kabocha.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Kabocha;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Kabocha>("kabocha", env!("CARGO_PKG_VERSION"))
            // Other modules install these kinds, perhaps later.
            .owns_if_served::<Imo>()
            .owns_if_served::<Kuri>()
            .owns::<Kabocha>()
            .installs(include_str!("../crd.json"))
            .parameters(Parameters::schema())
            .finalizes(FINALIZER)
            .resync_seconds(90)
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Kabocha>) -> Outcome {
        if observed.is_deleting() {
            return teardown::teardown(observed);
        }
        let children = Child::all(observed.primary());
        if let Some(name) = children.iter().find_map(Child::unusable_name) {
            let message = format!(
                "the Kuri `{name}` cannot be created: its name is too long; use shorter names, joined at most {} characters",
                names::LABEL_MAX
            );
            return Outcome::refused("NameTooLong", message);
        }
        let parameters: Parameters = match observed.parameters() {
            Ok(parameters) => parameters,
            Err(error) => {
                let message = format!("the Module's spec.parameters are invalid: {error}");
                return Outcome::refused("BadParameters", message);
            }
        };
        if let Some(phase) = parameters.last_phase()
            && children.is_empty()
        {
            return Desired::new().status(&KabochaStatus::of_phase(phase)).complete();
        }
        let status = progress::of_children(observed, &children, &parameters);
        let ready = progress::ready(observed, &status);
        children
            .into_iter()
            .fold(Desired::new(), |desired, child| child.desire(desired))
            .status(&status)
            .condition(ready)
            .complete()
    }
}
