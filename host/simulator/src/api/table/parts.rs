//! Helpers that the cells of several kinds share.

use serde_json::Value;

/// A member by its path, segments separated by slashes.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('/').fold(object, |place, name| &place[name])
}

/// The text at a path, empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// The text at a path, or a default.
pub(crate) fn text_or<'a>(object: &'a Value, path: &str, other: &'a str) -> &'a str {
    match text(object, path) {
        "" => other,
        text => text,
    }
}

/// The number at a path, zero if there is none.
pub(crate) fn number(object: &Value, path: &str) -> i64 {
    at(object, path).as_i64().unwrap_or(0)
}

/// The items at a path.
pub(crate) fn items<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The number of members or items at a path.
pub(crate) fn count(object: &Value, path: &str) -> usize {
    match at(object, path) {
        Value::Object(map) => map.len(),
        Value::Array(list) => list.len(),
        _ => 0,
    }
}

/// A member of each item.
pub(crate) fn each<'a>(list: &'a [Value], name: &str) -> Vec<&'a str> {
    list.iter().map(|item| item[name].as_str().unwrap_or_default()).collect()
}

/// The text, or `<none>` if it is empty.
pub(crate) fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}

/// The first items, and how many there are more.
pub(crate) fn with_more(list: &[String], most: usize) -> String {
    let shown = list[..list.len().min(most)].join(",");
    if list.len() > most { format!("{shown} + {} more...", list.len() - most) } else { shown }
}

/// The names and the images of a pod's containers.
pub(crate) fn containers(spec: &Value) -> [Value; 2] {
    let list = items(spec, "containers");
    ["name", "image"].map(|name| each(list, name).join(",").into())
}

/// Labels as one text.
pub(crate) fn labels(map: &Value) -> String {
    let mut pairs: Vec<String> = map
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort();
    or_none(pairs.join(","))
}

/// A selector as one text, empty if it selects everything.
pub(crate) fn selector(selector: &Value) -> String {
    let plain = selector["matchLabels"].as_object().into_iter().flatten();
    let mut demands: Vec<(String, String)> = plain
        .map(|(key, value)| (key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for one in items(selector, "matchExpressions") {
        let key = text(one, "key");
        let mut values: Vec<&str> = items(one, "values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let demand = match text(one, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        demands.push((key.to_owned(), demand));
    }
    demands.sort_by(|one, other| one.0.cmp(&other.0));
    demands.into_iter().map(|(_, demand)| demand).collect::<Vec<_>>().join(",")
}

/// Whether a condition is there and true.
pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    let mut conditions = items(object, "status/conditions").iter();
    conditions.find(|one| one["type"] == kind).is_some_and(|one| one["status"] == "True")
}

/// Whether the object is being deleted.
pub(crate) fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selector_is_printed_in_the_order_of_its_keys() {
        let value = json!({"matchLabels": {"b": "2"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "a", "operator": "DoesNotExist"}]});
        assert_eq!(selector(&value), "!a,b=2,c in (x,y)");
        assert_eq!(selector(&json!({})), "");
    }

    #[test]
    fn long_list_is_printed_with_its_first_items() {
        let many = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(with_more(&many, 3), "a,b,c + 1 more...");
        assert_eq!(with_more(&many[..3], 3), "a,b,c");
    }
}
