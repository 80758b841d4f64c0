//! Texts in the query of a request.

use serde_json::Value;

/// Blanks and the like as they stand in a query.
pub(crate) fn encoded(text: &str) -> String {
    text.replace(' ', "%20").replace('>', "%3E")
}

/// How a delete's options stand in a query, behind something else.
pub(crate) fn in_query(options: &Value) -> String {
    let mut query = String::new();
    for place in [options, &options["preconditions"]] {
        for (name, value) in place.as_object().into_iter().flatten() {
            match value {
                Value::String(text) if !matches!(name.as_str(), "apiVersion" | "kind") => {
                    query = format!("{query}&{name}={text}");
                }
                Value::Number(_) | Value::Bool(_) => query = format!("{query}&{name}={value}"),
                Value::Array(_) => query = format!("{query}&{name}=All"),
                _ => {}
            }
        }
    }
    query
}
