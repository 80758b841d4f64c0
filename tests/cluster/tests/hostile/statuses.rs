//! Guests with a status, conditions and Events that nobody could write or read.

use innkeeper_tiny_guests::TIME;
use serde_json::{Value, json};

use crate::case::Case;
use crate::guests::{guest, object, owning, says};

/// Status, conditions and Events that nobody could write or read.
pub(crate) fn unusable_statuses() -> Vec<Case> {
    let condition = |type_: &str, reason: &str| {
        json!({"conditions": [{"type": type_, "status": "True", "reason": reason}]}).to_string()
    };
    let events: Vec<Value> = (0..10_000)
        .map(|index| json!({"reason": "Flood", "message": format!("{index}")}))
        .collect();
    let malformed = |name, text: &str, expected| {
        Case::runs(name, &says(text), ("False", "MalformedStatus", expected))
    };
    vec![
        malformed(
            "huge-status",
            &json!({"status": {"a": "x".repeat(2 << 20)}}).to_string(),
            "the limit is 262144",
        ),
        malformed("type-of-two-words", &condition("no type", "Fine"), "conditions[0].type"),
        malformed("reason-of-two-words", &condition("Fine", "no reason"), "conditions[0].reason"),
        malformed(
            "flood-of-events",
            &json!({ "events": events }).to_string(),
            "10000 events are more",
        ),
        Case::runs(
            "status-by-the-clock",
            &says(&json!({"status": {"now": TIME}}).to_string()).timed(),
            ("True", "Applied", ""),
        ),
        Case::runs(
            "failure-of-its-own-word",
            &guest().outcome(2, &json!({"reason": "WordOfAGuest", "message": "no"}).to_string()),
            ("False", "WordOfAGuest", "no"),
        ),
        Case::runs(
            "failure-without-end",
            &guest().outcome(
                2,
                &json!({"reason": "shouts\n".repeat(10_000), "message": "no ".repeat(500_000)})
                    .to_string(),
            ),
            ("False", "GuestFailed", "no no"),
        ),
        // Its own word on what only the host knows is not taken.
        Case::runs(
            "lie-about-synced",
            &owning(&[("v1", "Secret", "secrets", true)]).outcome(
                0,
                &json!({"objects": [{"object": object("v1", "Secret", "stolen")}],
                    "conditions": [{"type": "Synced", "status": "True", "reason": "Applied"}]})
                .to_string(),
            ),
            ("False", "Unreadable", "may not list secrets"),
        ),
    ]
}
