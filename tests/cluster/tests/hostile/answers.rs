//! Guests whose answers are not what the contract says.

use innkeeper_tiny_guests::{OUTCOME_AT, SCRATCH};

use crate::case::Case;
use crate::guests::{guest, says};

/// Texts that are not what the contract says.
pub(crate) fn malformed_results() -> Vec<Case> {
    let unreadable = |name, text: &str, expected| {
        Case::runs(name, &says(text), ("False", "OutputUnreadable", expected))
    };
    let data = |value: &str| {
        format!(
            r#"{{"objects":[{{"object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"odd"}},"data":{{{value}}}}}}}]}}"#
        )
    };
    vec![
        Case::runs(
            "huge-output",
            &guest().answers(&format!(
                "(drop (memory.grow (i32.const 700)))
                 (i32.store (i32.const {0}) (i32.const 0))
                 (i32.store (i32.const {1}) (i32.const 65536))
                 (i32.store (i32.const {2}) (i32.const 41943040))
                 (i32.const {0})",
                SCRATCH,
                SCRATCH + 4,
                SCRATCH + 8
            )),
            ("False", "OutputTooLarge", "has 41943040 bytes, the limit is 4194304"),
        ),
        Case::runs(
            "no-utf8",
            &guest()
                .on_reconcile(&format!("(i32.store8 (i32.const {OUTCOME_AT}) (i32.const 255))")),
            ("False", "OutputUnreadable", "invalid utf-8 sequence"),
        ),
        unreadable("no-json", "objects: []", "expected value at line 1"),
        unreadable(
            "deep-json",
            &data(&format!(r#""a":{}"#, "[".repeat(100_000))),
            "recursion limit exceeded",
        ),
        unreadable("not-a-number", &data(r#""a":NaN"#), "expected value"),
        unreadable("number-too-large", &data(r#""a":1e400"#), "number out of range"),
        unreadable("member-twice", r#"{"objects":[],"objects":[]}"#, "duplicate field `objects`"),
        unreadable("unknown-member", r#"{"object":[]}"#, "unknown field `object`"),
        // Of two members of one name within an object the last is taken: there is one reader, so
        // nothing is checked that is not what is sent.
        Case::runs("key-twice", &says(&data(r#""a":"first","a":"last""#)), ("True", "Applied", ""))
            .writes(&[("configmaps", "odd")]),
    ]
}
