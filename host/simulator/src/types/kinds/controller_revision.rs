//! Rules of ControllerRevisions.

use serde_json::Value;

use crate::types::status_error::FieldError;

/// What a ControllerRevision must have.
pub(crate) fn rules(object: &Value, errors: &mut Vec<FieldError>) {
    if object["data"].is_null() {
        errors.push(FieldError::required("data", "data is mandatory"));
    }
    if object["revision"].as_i64().is_some_and(|number| number < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("revision", object["revision"].clone(), why));
    }
}

/// The content never changes; the number may.
pub(crate) fn immutable(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if new["data"] != old["data"] {
        errors.push(FieldError::without_value("data", "field is immutable"));
    }
}
