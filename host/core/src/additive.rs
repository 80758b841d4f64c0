//! Whether one CustomResourceDefinition takes everything that another takes: objects that are
//! stored stay valid, nothing of them is pruned, and manifests that were taken still are.

use serde_json::{Map, Value};

/// What of `before` the definition `after` no longer takes, with its place, in order; empty if
/// nothing, so that `after` only adds.
pub fn breaking(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for pointer in ["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"] {
        if before.pointer(pointer) != after.pointer(pointer) {
            found.push(format!("{} changes", pointer.replace('/', ".")));
        }
    }
    for old in versions(before) {
        let name = old["name"].as_str().unwrap_or_default();
        let Some(new) = versions(after).find(|version| version["name"] == name) else {
            found.push(format!("version {name} is gone"));
            continue;
        };
        if old["served"] == true && new["served"] != true {
            found.push(format!("version {name} is no longer served"));
        }
        for subresource in ["status", "scale"] {
            let has = |version: &Value| version["subresources"].get(subresource).is_some();
            if has(old) && !has(new) {
                found.push(format!("version {name} loses its subresource {subresource}"));
            }
        }
        let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
        schemas(&schema(old), &schema(new), &mut String::new(), &mut found);
    }
    found
}

fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
}

/// Keywords with a number that may only grow.
const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];

/// Keywords with a number that may only shrink.
const LOWER: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];

/// Keywords that may be taken away and must not come or change.
const ONLY_LOOSER: [&str; 5] =
    ["pattern", "format", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// Keywords that must stay as they are: merging hangs on them.
const FIXED: [&str; 3] =
    ["x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"];

fn schemas(old: &Value, new: &Value, path: &mut String, found: &mut Vec<String>) {
    if old == new {
        return;
    }
    let mut say = |what: &str| {
        let place = if path.is_empty() { "the object" } else { path.as_str() };
        found.push(format!("{place} {what}"));
    };
    if let Some(kind) = old.get("type")
        && new.get("type").is_some_and(|other| other != kind)
    {
        say("has another type");
        return;
    }
    for flag in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "nullable"] {
        if old[flag] == true && new[flag] != true {
            say(&format!("loses {flag}"));
        }
    }
    for keyword in FIXED {
        if old.get(keyword) != new.get(keyword) {
            say(&format!("has another {keyword}"));
        }
    }
    for keyword in ONLY_LOOSER {
        if new.get(keyword).is_some_and(|now| old.get(keyword) != Some(now)) {
            say(&format!("has another {keyword}"));
        }
    }
    let number = |schema: &Value, keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    for keyword in UPPER {
        if number(new, keyword).is_some_and(|now| number(old, keyword).is_none_or(|was| now < was))
        {
            say(&format!("has a smaller {keyword}"));
        }
    }
    for keyword in LOWER {
        if number(new, keyword).is_some_and(|now| number(old, keyword).is_none_or(|was| now > was))
        {
            say(&format!("has a greater {keyword}"));
        }
    }
    if let Some(allowed) = new.get("enum").and_then(Value::as_array) {
        match old.get("enum").and_then(Value::as_array) {
            None => say("takes certain values only"),
            Some(was) => {
                for value in was.iter().filter(|value| !allowed.contains(value)) {
                    say(&format!("no longer takes {value}"));
                }
            }
        }
    }
    for rule in rules(new).filter(|rule| !rules(old).any(|was| was == *rule)) {
        say(&format!("has a new rule: {rule}"));
    }
    let empty = Map::new();
    let members = |schema: &'_ Value| -> Map<String, Value> {
        schema.get("properties").and_then(Value::as_object).unwrap_or(&empty).clone()
    };
    let (was, now) = (members(old), members(new));
    for name in required(new).filter(|name| !required(old).any(|other| other == *name)) {
        // A default fills it in.
        if now.get(name).is_none_or(|member| member.get("default").is_none()) {
            say(&format!("needs {name}"));
        }
    }
    let keeps_all = new["x-kubernetes-preserve-unknown-fields"] == true;
    let length = path.len();
    for (name, member) in &was {
        path.push('.');
        path.push_str(name);
        match now.get(name) {
            Some(other) => schemas(member, other, path, found),
            None if keeps_all => {}
            None => found.push(format!("{path} is gone")),
        }
        path.truncate(length);
    }
    for (keyword, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(member) = old.get(keyword) {
            path.push_str(mark);
            match new.get(keyword) {
                Some(other) => schemas(member, other, path, found),
                None if keeps_all => {}
                None => found.push(format!("{path} is gone")),
            }
            path.truncate(length);
        }
    }
}

fn rules(schema: &Value) -> impl Iterator<Item = &str> {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.into_iter().flatten().filter_map(|rule| rule["rule"].as_str())
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(spec: &Value) -> Value {
        json!({"spec": {"group": "g", "scope": "Namespaced", "names": {"kind": "K", "plural": "ks"},
            "versions": [{"name": "v1", "served": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}})
    }

    #[test]
    fn what_only_adds_breaks_nothing_and_going_back_does() {
        let old = json!({"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "maximum": 5}, "color": {"type": "string", "enum": ["red"]}}});
        let new = json!({"type": "object", "required": ["size", "shape"], "properties": {
            "size": {"type": "integer", "maximum": 9, "description": "how big"},
            "color": {"type": "string", "enum": ["red", "blue"]},
            "shape": {"type": "string", "default": "round"}}});
        let (old, new) = (definition(&old), definition(&new));
        assert_eq!(breaking(&old, &new), [""; 0]);
        assert_eq!(
            breaking(&new, &old),
            [
                ".spec.color no longer takes \"blue\"",
                ".spec.shape is gone",
                ".spec.size has a smaller maximum",
            ]
        );
    }

    #[test]
    fn each_narrowing_is_told_with_its_place() {
        for (old, new, told) in [
            (json!({"type": "string"}), json!({"type": "integer"}), ".spec has another type"),
            (json!({}), json!({"minLength": 1}), ".spec has a greater minLength"),
            (json!({}), json!({"pattern": "^a"}), ".spec has another pattern"),
            (json!({}), json!({"enum": ["a"]}), ".spec takes certain values only"),
            (json!({}), json!({"required": ["a"]}), ".spec needs a"),
            (
                json!({}),
                json!({"x-kubernetes-validations": [{"rule": "self.a > 1"}]}),
                ".spec has a new rule: self.a > 1",
            ),
            (
                json!({"items": {"properties": {"a": {}}}}),
                json!({"items": {"properties": {}}}),
                ".spec[].a is gone",
            ),
            (json!({"additionalProperties": {"type": "string"}}), json!({}), ".spec{} is gone"),
            (
                json!({"x-kubernetes-preserve-unknown-fields": true}),
                json!({}),
                ".spec loses x-kubernetes-preserve-unknown-fields",
            ),
            (
                json!({"x-kubernetes-list-type": "set"}),
                json!({"x-kubernetes-list-type": "atomic"}),
                ".spec has another x-kubernetes-list-type",
            ),
        ] {
            assert_eq!(breaking(&definition(&old), &definition(&new)), [told], "{old} {new}");
        }
        // The other way round most of it is an addition.
        assert_eq!(
            breaking(&definition(&json!({"pattern": "^a"})), &definition(&json!({}))),
            [""; 0]
        );
    }

    #[test]
    fn versions_and_subresources_stay() {
        let before = definition(&json!({}));
        let mut after = before.clone();
        after["spec"]["versions"][0]["subresources"] = json!({});
        after["spec"]["versions"][0]["served"] = json!(false);
        assert_eq!(
            breaking(&before, &after),
            ["version v1 is no longer served", "version v1 loses its subresource status"]
        );
        after["spec"]["versions"][0]["name"] = json!("v2");
        assert_eq!(breaking(&before, &after), ["version v1 is gone"]);
        let mut other = before.clone();
        other["spec"]["scope"] = json!("Cluster");
        assert_eq!(breaking(&before, &other), [".spec.scope changes"]);
    }
}
