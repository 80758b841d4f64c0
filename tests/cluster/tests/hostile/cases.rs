//! The misbehaviours.

use innkeeper_tiny_guests::{TIME, Tiny};
use serde_json::json;

use crate::answers::malformed_results;
use crate::case::Case;
use crate::components::components_and_manifests;
use crate::guests::says;
use crate::objects::foreign_objects;
use crate::resources::excessive_use;
use crate::statuses::unusable_statuses;

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    [
        vec![events_by_the_clock()],
        excessive_use(),
        malformed_results(),
        foreign_objects(),
        unusable_statuses(),
        components_and_manifests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A guest that has something new to tell each second.
fn events_by_the_clock() -> Case {
    let outcome =
        json!({"events": [{"reason": "Again", "message": TIME}], "requeueAfterSeconds": 1});
    Case::runs("events-by-the-clock", &says(&outcome.to_string()).timed(), ("True", "Applied", ""))
}

/// A component that takes minutes to compile.
pub(crate) fn bomb() -> Case {
    Case::is_refused(
        "compile-bomb",
        Tiny::bomb().component(),
        ("False", "CompileTimeout", "took longer than 60s and was stopped"),
    )
}
