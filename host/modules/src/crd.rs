//! The CustomResourceDefinition of [`Module`](crate::Module), made from its types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::module::{GROUP, KIND, ModuleSpec, ModuleStatus, PLURAL, Quantity, VERSION};
use crate::renamed;

/// The CustomResourceDefinition `modules.innkeeper.dev`, as in
/// `deploy/crds/modules.innkeeper.dev.yaml`.
pub fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{PLURAL}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": format!("{KIND}List"),
                "plural": PLURAL,
                "singular": "module",
                "shortNames": ["mod"],
                "categories": ["innkeeper"],
            },
            "scope": "Cluster",
            "versions": [{
                "name": VERSION,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns(),
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "description": "Reconcile logic: a WebAssembly component, and how the host runs it.",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": { "type": "string" },
                        "kind": { "type": "string" },
                        "metadata": { "type": "object" },
                        "spec": spec_schema(),
                        "status": status_schema(),
                    },
                    // The name goes into the name of a field manager (at most 128 bytes) next to
                    // a uid, into a finalizer, and into the names of ConfigMaps.
                    "x-kubernetes-validations": [{
                        "rule": "size(self.metadata.name) <= 63",
                        "message": "the name of a Module has at most 63 characters",
                    }, {
                        "rule": "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                        "message": "the name of a Module consists of lower case letters, digits and '-', and begins and ends with a letter or a digit",
                    }],
                } },
            }],
        },
    })
}

/// The schema of `spec`.
fn spec_schema() -> Value {
    let mut spec = structural::<ModuleSpec>();
    // Free JSON, which the guest's own schema checks.
    spec["properties"]["parameters"]["x-kubernetes-preserve-unknown-fields"] = true.into();
    // A Module of a folder may do without, one of a cluster has to say as whom it acts.
    spec["required"] = json!(["source", "serviceAccountName"]);
    // Shown in the stored object, so that its meaning does not hang on the host's version.
    spec["properties"]["manageStatus"]["default"] = true.into();
    // The one source that there is in a cluster; `file` is for folders.
    spec["properties"]["source"]["required"] = json!(["configMap"]);
    refuse_bad_requirements(&mut spec["properties"]["selector"]);
    let policy = &mut spec["properties"]["policy"]["properties"];
    for selector in ["namespaceSelector", "objectSelector"] {
        refuse_bad_requirements(&mut policy[selector]);
    }
    let requirement = &mut policy["overrides"]["items"]["properties"]["namespaces"];
    requirement["x-kubernetes-validations"] = requirement_rule();
    for set in ["allowedCRDGroups", "namespaces"] {
        spec["properties"][set]["x-kubernetes-list-type"] = "set".into();
    }
    renamed::refuse(&mut spec);
    spec
}

/// Makes a selector one value for merges, and refuses requirements that no object can be compared
/// with.
fn refuse_bad_requirements(selector: &mut Value) {
    selector["x-kubernetes-map-type"] = "atomic".into();
    selector["properties"]["matchExpressions"]["items"]["x-kubernetes-validations"] =
        requirement_rule();
}

fn requirement_rule() -> Value {
    json!([{
        "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
        "message": "In and NotIn need values, Exists and DoesNotExist must have none"
    }])
}

/// The schema of `status`.
fn status_schema() -> Value {
    let mut status = structural::<ModuleStatus>();
    for list in ["ownedKinds", "rejected"] {
        status["properties"][list]["x-kubernetes-list-type"] = "atomic".into();
    }
    let candidate = &mut status["properties"]["candidate"];
    candidate["properties"]["examples"]["x-kubernetes-list-type"] = "atomic".into();
    candidate["x-kubernetes-map-type"] = "atomic".into();
    status
}

/// The columns of `kubectl get`.
fn columns() -> Value {
    json!([
        column("Kind", "string", ".status.primary.kind", 0, "The kind of the primaries"),
        column("Policy", "string", ".status.policy.mode", 0, "What a verdict of the policy does"),
        column("Guest", "string", ".status.guest.name", 0, "The guest of the active revision"),
        column("Version", "string", ".status.guest.version", 0, "The version of the guest"),
        column(
            "Digest",
            "string",
            ".status.digest",
            1,
            "SHA-256 of the component of the active revision"
        ),
        condition_column("Serving", 0),
        condition_column("Ready", 0),
        json!({
            "name": "Reason", "type": "string", "priority": 0,
            "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason",
            "description": "The reason of the condition Ready",
        }),
        condition_column("Healthy", 1),
        column("Age", "date", ".metadata.creationTimestamp", 0, "The age of the Module"),
    ])
}

/// Returns [`crd`] as YAML, with a line that says where it comes from.
///
/// # Errors
/// If the definition cannot be written as YAML.
pub fn crd_yaml() -> Result<String, serde_yaml_ng::Error> {
    Ok(format!("# Made by `cargo xtask crds`; do not edit.\n{}", serde_yaml_ng::to_string(&crd())?))
}

fn column(name: &str, type_: &str, path: &str, priority: u8, description: &str) -> Value {
    json!({ "name": name, "type": type_, "jsonPath": path, "priority": priority, "description": description })
}

fn condition_column(type_: &str, priority: u8) -> Value {
    let path = format!(".status.conditions[?(@.type==\"{type_}\")].status");
    column(type_, "string", &path, priority, &format!("The condition {type_}"))
}

/// A schema as CustomResourceDefinitions want it: all inline, no `null`, no `oneOf` of constants.
fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut schema);
    schema
}

fn simplify(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    // `title` repeats the type's name; a member that may be left out is not one that may be null;
    // and closed objects are the API server's task, which prunes and warns.
    for member in ["title", "nullable", "$schema"] {
        members.remove(member);
    }
    if members.get("additionalProperties").is_some_and(Value::is_boolean) {
        members.remove("additionalProperties");
    }
    // Defaults that say nothing (empty lists and objects) would be stored in every object.
    members.remove("default");
    unwrap_optional(members);
    for format in ["uint32", "uint64", "int64"] {
        if members.get("format").is_some_and(|value| value == format) {
            members.insert("format".into(), "int64".into());
        }
    }
    join_lines(members);
    flatten_constants(members);
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(simplify);
    }
    for member in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(member) {
            simplify(inner);
        }
    }
}

/// What may be left out is written as "this or null" where the type has no `type` of its own.
fn unwrap_optional(members: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = members.get("anyOf") else { return };
    let [wanted, null] = variants.as_slice() else { return };
    if null["enum"] == json!([null]) {
        let wanted = wanted.as_object().cloned().unwrap_or_default();
        members.remove("anyOf");
        for (name, value) in wanted {
            members.entry(name).or_insert(value);
        }
    }
}

/// A doc comment is wrapped for the source file; `kubectl explain` wraps by itself.
fn join_lines(members: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = members.get_mut("description") {
        *text = text
            .split("\n\n")
            .map(|paragraph| paragraph.replace('\n', " "))
            .collect::<Vec<_>>()
            .join("\n\n");
    }
}

/// An enum whose variants have docs is a `oneOf` of constants, which is not structural.
fn flatten_constants(members: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = members.get("oneOf") else { return };
    let mut names = Vec::new();
    let mut lines = Vec::new();
    for variant in variants {
        let Some(Value::Array(constants)) = variant.get("enum") else { return };
        for constant in constants {
            if let (Value::String(name), Some(Value::String(text))) =
                (constant, variant.get("description"))
            {
                lines.push(format!("{name}: {}", text.replace('\n', " ")));
            }
            names.push(constant.clone());
        }
    }
    members.remove("oneOf");
    members.insert("type".into(), "string".into());
    members.insert("enum".into(), Value::Array(names));
    let description = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let description = format!("{description} {}", lines.join(" ")).trim().to_owned();
    members.insert("description".into(), description.into());
}

impl JsonSchema for Quantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": "^[0-9]+(k|M|G|Ki|Mi|Gi)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn the_committed_definition_is_up_to_date() {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/modules.innkeeper.dev.yaml");
        expect_file![file].assert_eq(&crd_yaml().unwrap());
    }

    /// Fields that any editor of a Module may change: they do not widen what its account does.
    const FREE: [&str; 6] =
        ["limits", "manageStatus", "paused", "resyncPeriod", "rollout", "runResult"];

    #[test]
    fn the_admission_policy_covers_every_field_that_is_not_free() {
        let policy = include_str!("../../../deploy/base/module-policy.yaml");
        let crd = crd();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let fields = spec["properties"].as_object().unwrap().keys();
        for field in fields.filter(|field| !renamed::is_old(field)) {
            let is_covered = policy.contains(&format!("'{field}'"));
            assert_ne!(is_covered, FREE.contains(&field.as_str()), "{field}");
        }
    }

    /// What a structural schema must not have, and what the API server would warn of.
    #[test]
    fn the_schema_is_structural_and_every_field_is_described() {
        fn walk(place: &str, schema: &Value) {
            let members = schema.as_object().unwrap();
            for banned in ["$ref", "$defs", "oneOf", "allOf", "nullable", "title"] {
                assert!(!members.contains_key(banned), "{place} has {banned}");
            }
            assert!(
                members.contains_key("type") || schema["x-kubernetes-int-or-string"] == true,
                "{place} has no type"
            );
            if place.contains("spec.") || place.contains("status.") {
                let is_element = place.ends_with("[]") || place.ends_with("{}");
                assert!(
                    is_element || members.contains_key("description"),
                    "{place} has no description"
                );
            }
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                walk(&format!("{place}.{name}"), property);
            }
            if let Some(items) = members.get("items") {
                walk(&format!("{place}[]"), items);
            }
            if let Some(values) = members.get("additionalProperties") {
                walk(&format!("{place}{{}}"), values);
            }
        }
        walk("", &crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    }

    #[test]
    fn definition_has_no_source_in_a_file() {
        let crd = crd();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(spec["required"], json!(["source", "serviceAccountName"]));
        assert_eq!(spec["properties"]["source"]["properties"].as_object().unwrap().len(), 1);
        assert_eq!(spec["properties"]["manageStatus"]["default"], true);
    }
}
