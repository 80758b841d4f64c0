//! Custom kinds that random requests are about, and their definitions.

use serde_json::{Value, json};

use crate::shapes::{Shape, Subject};

fn one(values: &[&str]) -> Shape {
    Shape::One(values.iter().map(|value| Value::from(*value)).collect())
}

fn ints(values: &[i64]) -> Shape {
    Shape::One(values.iter().map(|value| Value::from(*value)).collect())
}

fn bools() -> Shape {
    Shape::One(vec![true.into(), false.into()])
}

/// The definition of the kind that has every kind of list.
pub fn definition() -> Value {
    let inner = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": {"type": "object", "required": ["port"], "properties": {
            "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "note": {"type": "string"}}}});
    let items = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "value": {"type": "string"}, "weight": {"type": "integer", "default": 5},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}, "inner": inner}}});
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "default": 1, "minimum": 0, "maximum": 10},
        "name": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 10},
        "mode": {"type": "string", "enum": ["A", "B"]},
        "flag": {"type": "boolean"},
        "ratio": {"type": "number"},
        "port": {"x-kubernetes-int-or-string": true},
        "items": items,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "order": {"type": "array", "maxItems": 5, "items": {"type": "string"}},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string", "default": "why"}}}},
        "limits": {"type": "object", "additionalProperties": {"type": "string"}},
        "pair": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
        "nested": {"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "integer"}}},
            "d": {"type": "object", "default": {}, "properties": {"e": {"type": "string", "default": "x"}}}}},
        "strict": {"type": "object", "required": ["must"], "properties": {"must": {"type": "string", "minLength": 1}, "may": {"type": "integer"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "maybe": {"type": "string", "nullable": true},
        "deep": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "integer"}, "l": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}}}},
    }});
    let status = json!({"type": "object", "properties": {
        "phase": {"type": "string"}, "count": {"type": "integer"},
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type", "status"], "properties": {
                "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"}}}}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.test.innkeeper.dev"},
        "spec": {"group": "test.innkeeper.dev", "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget", "singular": "gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.count"}}}]}})
}

/// The definition of the kind that has rules in CEL, without a namespace.
pub fn ruled_definition() -> Value {
    let size = json!({"type": "integer", "default": 1, "maximum": 9});
    let name = json!({"type": "string", "maxLength": 6, "x-kubernetes-validations": [
        {"rule": "self != 'bad'", "message": "bad name", "reason": "FieldValueForbidden"},
        {"rule": "self == oldSelf || oldSelf != 'abc'", "message": "the name stays"}]});
    let items = json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"],
            "x-kubernetes-validations": [{"rule": "!has(self.v) || !has(oldSelf.v) || self.v >= oldSelf.v", "message": "may not shrink"}],
            "properties": {"name": {"type": "string", "maxLength": 10}, "v": {"type": "integer"}}}});
    let map = json!({"type": "object", "maxProperties": 4, "additionalProperties": {"type": "string", "maxLength": 10,
        "x-kubernetes-validations": [{"rule": "self.matches('^[a-z]+$')"}]}});
    let once = json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": [
        {"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": true, "message": "is set once"}]});
    let spec = json!({"type": "object", "x-kubernetes-validations": [
            {"rule": "self.size <= 5", "message": "too large", "fieldPath": ".size"},
            {"rule": "self.size >= oldSelf.size - 2", "message": "shrinks", "messageExpression": "has(self.name) ? 'shrinks: ' + self.name : ' '"},
            {"rule": "!has(self.items) || self.items.all(one, one.name != 'x' || has(self.name))"},
            {"rule": "!has(self.at) || !has(self.list) || self.list[self.at] > 0"},
            {"rule": "!has(self.map) || !('k' in self.map) || self.map.k != 'no'"}],
        "properties": {"size": size, "name": name, "items": items, "map": map, "once": once,
            "at": {"type": "integer"}, "list": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
            "namespace": {"type": "string", "maxLength": 5}}});
    let status = json!({"type": "object", "x-kubernetes-validations": [{"rule": "!has(self.phase) || self.phase != 'no'", "message": "not no"}],
        "properties": {"phase": {"type": "string", "maxLength": 5}}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}, "x-kubernetes-validations": [
        {"rule": "self.metadata.name != 'inn'", "message": "no inn"},
        {"rule": "!has(self.spec) || !has(self.spec.__namespace__) || self.spec.__namespace__.size() + self.metadata.name.size() > 3"}]});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.test.innkeeper.dev"},
        "spec": {"group": "test.innkeeper.dev", "scope": "Cluster",
            "names": {"plural": "gizmos", "kind": "Gizmo", "singular": "gizmo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}}}]}})
}

/// The kind of [`ruled_definition`].
pub(crate) fn gizmo() -> Subject {
    let item = Shape::Keyed(
        vec![("name", one(&["x", "y", "z"]))],
        vec![("v", ints(&[1, 2, 3])), ("v", ints(&[1, 2]))],
    );
    let spec = Shape::Some(vec![
        ("size", ints(&[1, 3, 5, 6])),
        ("size", ints(&[1, 4, 5])),
        ("name", one(&["bad", "abc", "abcd", "e"])),
        ("items", item),
        ("map", Shape::Map(vec!["k", "l"], Box::new(one(&["no", "yes", "No", "ok"])))),
        ("once", one(&["a", "a", "b"])),
        ("at", ints(&[0, 1, 7])),
        ("list", Shape::List(Box::new(ints(&[0, 1, 2])))),
        ("namespace", one(&["", "n"])),
    ]);
    Subject {
        api_version: "test.innkeeper.dev/v1",
        kind: "Gizmo",
        path: "/apis/test.innkeeper.dev/v1/gizmos".to_owned(),
        content: Shape::Some(vec![("spec", spec.clone()), ("spec", spec)]),
        status: Some(Shape::Some(vec![("phase", one(&["no", "yes", "well"]))])),
        strategic: false,
    }
}

/// The kind of [`definition`].
pub(crate) fn gadget(namespace: &str) -> Subject {
    let words = || one(&["a", "b", "c"]);
    let inner = Shape::Keyed(
        vec![("port", ints(&[80, 81])), ("protocol", one(&["TCP", "UDP"]))],
        vec![("note", words())],
    );
    let items = Shape::Keyed(
        vec![("name", one(&["a", "b", "c", "d"]))],
        vec![
            ("value", words()),
            ("weight", ints(&[5, 6])),
            ("tags", Shape::List(Box::new(one(&["x", "y"])))),
            ("inner", inner),
        ],
    );
    let spec = Shape::Some(vec![
        ("size", ints(&[0, 1, 2, 3, 11])),
        ("name", one(&["a", "bc", "B"])),
        ("mode", one(&["A", "B", "A", "B", "C"])),
        ("flag", bools()),
        ("ratio", Shape::One(vec![json!(1), json!(0.5), json!(2.25)])),
        ("port", Shape::One(vec![json!(80), json!("http")])),
        ("items", items),
        ("tags", Shape::List(Box::new(one(&["x", "y", "z", "w", "v", "u"])))),
        ("order", Shape::List(Box::new(words()))),
        ("parts", Shape::List(Box::new(Shape::Some(vec![("x", ints(&[1, 2])), ("y", words())])))),
        ("limits", Shape::Map(vec!["cpu", "mem", "gpu"], Box::new(words()))),
        ("pair", Shape::Some(vec![("x", ints(&[1, 2])), ("y", ints(&[1, 2]))])),
        (
            "nested",
            Shape::Some(vec![
                ("a", Shape::Some(vec![("b", words()), ("c", ints(&[1, 2]))])),
                ("d", Shape::Some(vec![("e", words())])),
            ]),
        ),
        ("strict", Shape::Some(vec![("must", words()), ("may", ints(&[1]))])),
        (
            "free",
            Shape::Some(vec![
                ("p", words()),
                (
                    "q",
                    Shape::Some(vec![("r", ints(&[1, 2])), ("s", Shape::List(Box::new(words())))]),
                ),
            ]),
        ),
        ("maybe", Shape::One(vec![json!("m"), json!(null)])),
        (
            "deep",
            Shape::Map(
                vec!["k", "l"],
                Box::new(Shape::Some(vec![
                    ("n", ints(&[1, 2])),
                    ("l", Shape::List(Box::new(ints(&[1, 2, 3])))),
                ])),
            ),
        ),
    ]);
    let conditions = Shape::Keyed(
        vec![("type", one(&["Ready", "Synced", "Other"]))],
        vec![("reason", words()), ("status", one(&["True", "False"]))],
    );
    Subject {
        api_version: "test.innkeeper.dev/v1",
        kind: "Gadget",
        path: format!("/apis/test.innkeeper.dev/v1/namespaces/{namespace}/gadgets"),
        content: Shape::Some(vec![("spec", spec.clone()), ("spec", spec)]),
        status: Some(Shape::Some(vec![
            ("phase", words()),
            ("count", ints(&[0, 1, 2])),
            ("conditions", conditions),
        ])),
        strategic: false,
    }
}
