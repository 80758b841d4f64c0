//! Schemas that a child evaluates.

use std::time::{Duration, Instant};

use innkeeper_sandbox::Interruption;
use innkeeper_sandbox::schema::SchemaError;
use serde_json::{Value, json};

use crate::setup::setup;

fn schema() -> Value {
    json!({"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}})
}

pub(crate) fn evaluated() {
    let setup = setup("innkeeper", Interruption::Epoch);
    assert_eq!(setup.engine.validate(&schema(), &json!({"size": 1})), Ok(()));
    let error = setup.engine.validate(&schema(), &json!({"size": "x"})).unwrap_err();
    assert_eq!(error.to_string(), "/size: want integer, but got string");
    let error = setup.engine.validate(&json!({"type": 3}), &json!({})).unwrap_err();
    assert!(matches!(error, SchemaError::Unusable(_)), "{error}");
    assert_eq!(std::fs::read_dir(setup.folder.path()).unwrap().count(), 0);
}

pub(crate) fn bounded() {
    // This child never answers.
    let setup = setup("hang", Interruption::Epoch);
    let began = Instant::now();
    let error = setup.engine.validate(&json!({"pattern": r"\p{L}{200}"}), &json!("a")).unwrap_err();
    assert!(matches!(error, SchemaError::Unusable(_)), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

pub(crate) fn failing() {
    for (program, is_costly) in
        [("killed", true), ("abort", true), ("fail", false), ("garble", false)]
    {
        let setup = setup(program, Interruption::Epoch);
        let error = setup.engine.validate(&schema(), &json!({"size": 1})).unwrap_err();
        let expected = (is_costly, !is_costly);
        let found = (
            matches!(error, SchemaError::TooCostly(_)),
            matches!(error, SchemaError::Unavailable(_)),
        );
        assert_eq!(found, expected, "{program}: {error}");
    }
    // The host stops a child that hangs.
    let setup = setup("hang", Interruption::Epoch);
    let error = setup.engine.validate(&schema(), &json!({"size": 1})).unwrap_err();
    assert_eq!(error.to_string(), "evaluating it took longer than 10s");
}
