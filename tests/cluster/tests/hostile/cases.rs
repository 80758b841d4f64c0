//! The misbehaviours.

use innkeeper_tiny_guests::{TIME, Tiny};
use serde_json::json;

use crate::answers::what_it_answers;
use crate::case::Case;
use crate::components::what_it_is;
use crate::guests::says;
use crate::objects::what_it_wants;
use crate::resources::what_it_takes;
use crate::statuses::what_it_says;

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    [
        vec![events_by_the_clock()],
        what_it_takes(),
        what_it_answers(),
        what_it_wants(),
        what_it_says(),
        what_it_is(),
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
