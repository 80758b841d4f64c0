//! A policy whose revisions have numbers, which their answers name.

use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::dry_run::Answer;

/// What the message of a denial and the text of a warning begin with.
const REVISION: &str = "revision ";

/// The component of a revision: it denies ConfigMaps with the data `forbidden: "yes"`, and warns
/// about the others; both texts have the number.
pub fn revision(number: u64) -> Vec<u8> {
    guest(number).component()
}

/// The same, for a test that changes its behavior.
pub fn guest(number: u64) -> Tiny {
    let manifest = json!({"name": "numbered", "policy": {"kind": "Validate", "rules": [
        {"groups": [""], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}]}});
    let text = format!("{REVISION}{number}");
    Tiny::policy(&json!({"allowed": true, "warnings": [text]}).to_string())
        .manifest(&manifest.to_string())
        .verdict_for(
            &[r#""forbidden":"yes""#],
            &json!({"allowed": false, "message": text}).to_string(),
        )
}

/// An object that each revision denies, or one that each of them allows.
pub fn object(is_forbidden: bool) -> Value {
    let data = if is_forbidden { json!({"forbidden": "yes"}) } else { json!({"forbidden": "no"}) };
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "reviewed"}})
}

/// The number of the revision that has answered about such an object.
///
/// # Errors
/// The answer, if no revision gives it.
pub fn number(answer: &Answer, is_forbidden: bool) -> Result<u64, String> {
    let text = match (is_forbidden, answer.code, answer.warnings.as_slice()) {
        (true, 403, []) => answer.message.split_once("denied the request: ").map(|(_, text)| text),
        (false, 200..300, [warning]) => Some(warning.as_str()),
        _ => None,
    };
    let number = text.and_then(|text| text.strip_prefix(REVISION)?.parse().ok());
    number.ok_or_else(|| format!("{} {:?} {:?}", answer.code, answer.message, answer.warnings))
}
