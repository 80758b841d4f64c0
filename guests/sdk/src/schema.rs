//! Generates a `CustomResourceDefinition` from Rust types.
//!
//! [`CustomResource::Spec`] and [`CustomResource::Status`] define the schema: field names and
//! types, descriptions (doc comments), defaults, bounds. Commit the definition as a file next to
//! the guest's code: it can be reviewed, and the component contains only its text and not the
//! generator. A test compares the file with the types:
//!
//! ```ignore
//! #[test]
//! fn crd_file_is_what_the_types_generate() {
//!     expect_test::expect_file!["../crd.json"].assert_eq(&innkeeper_sdk::schema::crd_text::<Podroute>());
//! }
//! ```
//!
//! `UPDATE_EXPECT=1 cargo test` (here: `cargo xtask guests --update`) updates the file.

mod host_fields;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{Column, CustomResource, Kind, Scope};

/// Returns the CustomResourceDefinition (`apiextensions.k8s.io/v1`) of a primary.
pub fn crd<R>() -> Value
where
    R: CustomResource,
    R::Spec: JsonSchema,
    R::Status: JsonSchema,
{
    let kind = R::kind();
    let scope = match kind.scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": kind.resource() },
        "spec": {
            "group": kind.group(),
            "names": names::<R>(&kind),
            "scope": scope,
            "versions": [{
                "name": kind.version(),
                "served": true,
                "storage": true,
                "subresources": subresources::<R>(),
                "additionalPrinterColumns": columns::<R>(),
                "schema": { "openAPIV3Schema": root::<R>() },
            }],
        },
    })
}

/// Returns the names of the kind.
fn names<R: CustomResource>(kind: &Kind) -> Value {
    let mut names = json!({
        "kind": kind.kind,
        "listKind": format!("{}List", kind.kind),
        "plural": kind.plural,
        "singular": kind.kind.to_lowercase(),
    });
    if !R::SHORT_NAMES.is_empty() {
        names["shortNames"] = json!(R::SHORT_NAMES);
    }
    names
}

/// Returns the columns of `kubectl get`: those of the type, and the age.
fn columns<R: CustomResource>() -> Vec<Value> {
    let age = Column {
        name: "Age",
        type_: crate::ColumnType::Date,
        json_path: ".metadata.creationTimestamp",
    };
    R::COLUMNS.iter().chain([&age]).map(column).collect()
}

/// Returns the subresources: the status, and the scale of a type that has one.
fn subresources<R: CustomResource>() -> Value {
    let mut subresources = json!({ "status": {} });
    if let Some(scale) = R::SCALE {
        subresources["scale"] = json!({
            "specReplicasPath": scale.spec_replicas_path,
            "statusReplicasPath": scale.status_replicas_path,
        });
        if let Some(path) = scale.label_selector_path {
            subresources["scale"]["labelSelectorPath"] = json!(path);
        }
    }
    subresources
}

/// Returns the schema of the whole object.
fn root<R>() -> Value
where
    R: CustomResource,
    R::Spec: JsonSchema,
    R::Status: JsonSchema,
{
    let mut spec = structural::<R::Spec>();
    if R::SPEC_MAY_BE_LEFT_OUT {
        // The API server applies defaults of fields only inside an object that exists.
        spec["default"] = json!({});
    }
    let mut status = host_fields::status(structural::<R::Status>());
    if R::SHOWS_LAST_RUN {
        status["properties"]["lastRun"] = host_fields::last_run();
    }
    if R::SHOWS_RUN_RESULT {
        status["properties"]["conditions"]["items"]["properties"]["ansibleResult"] =
            host_fields::run_result();
    }
    let mut root = json!({
        "type": "object",
        "properties": { "spec": spec, "status": status },
    });
    if !R::SPEC_MAY_BE_LEFT_OUT {
        root["required"] = json!(["spec"]);
    }
    if !R::RULES.is_empty() {
        root["x-kubernetes-validations"] = R::RULES
            .iter()
            .map(|rule| json!({ "rule": rule.rule, "message": rule.message }))
            .collect();
    }
    root
}

/// Returns the definition of [`crd`] as indented JSON with a newline at the end.
pub fn crd_text<R>() -> String
where
    R: CustomResource,
    R::Spec: JsonSchema,
    R::Status: JsonSchema,
{
    // The alternate form of `Value` is indented JSON and cannot fail.
    format!("{:#}\n", crd::<R>())
}

fn column(column: &Column) -> Value {
    json!({ "name": column.name, "type": column.type_.as_str(), "jsonPath": column.json_path })
}

/// Returns a type's structural schema: one tree without references, `null` or combinations.
fn structural<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        // The name of the Rust type means nothing to users.
        root.remove("title");
    }
    simplify(&mut schema);
    schema
}

/// Formats that the API server supports; it warns about others at every install.
const FORMATS: [&str; 8] =
    ["int32", "int64", "float", "double", "byte", "date", "date-time", "uuid"];

fn simplify(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    // `Option<T>` is a field that may be left out. Without `nullable` the API server treats null
    // like a missing field and applies the default.
    members.remove("nullable");
    if members.get("default") == Some(&Value::Null) {
        members.remove("default");
    }
    if members
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| !FORMATS.contains(&format))
    {
        members.remove("format");
    }
    // Free JSON: without this the API server would prune its members.
    if members.get("additionalProperties") == Some(&Value::Bool(true)) {
        members.remove("additionalProperties");
        members.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
    }
    // Any JSON, as of `serde_json::Value`: an API server takes no field without a type.
    let has_type = ["type", "oneOf", "anyOf", "allOf", "x-kubernetes-int-or-string"];
    if !has_type.iter().any(|key| members.contains_key(*key)) {
        members.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
    }
    if let Some(values) = constants(members) {
        members.remove("oneOf");
        members.insert("type".to_owned(), json!("string"));
        members.insert("enum".to_owned(), Value::Array(values));
    }
    for (key, member) in members.iter_mut() {
        match key.as_str() {
            "properties" => {
                for property in member.as_object_mut().into_iter().flat_map(Map::values_mut) {
                    simplify(property);
                }
            }
            "items" | "additionalProperties" => simplify(member),
            _ => {}
        }
    }
}

/// Returns the values of an enum whose variants have docs: schemars gives each an alternative.
fn constants(schema: &Map<String, Value>) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for alternative in schema.get("oneOf")?.as_array()? {
        match (alternative.get("const"), alternative.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => values.push(value.clone()),
            (None, Some(several)) => values.extend(several.iter().cloned()),
            (None, None) => return None,
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde::Deserialize;

    use super::*;
    use crate::Resource;

    struct Inn;

    /// The desired inn.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its schema is used")]
    struct InnSpec {
        /// How many rooms.
        #[serde(default = "one")]
        #[schemars(range(min = 1))]
        room_count: u32,
        /// What is on the sign.
        sign: Option<String>,
        /// When it opens.
        season: Season,
        /// Who works there.
        staff: Vec<Person>,
    }

    #[derive(Deserialize, JsonSchema)]
    enum Season {
        /// From May to September.
        Summer,
        /// The rest.
        Winter,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Person {
        name: String,
    }

    /// The observed inn.
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct InnStatus {
        /// How many rooms are taken.
        guests: i32,
    }

    fn one() -> u32 {
        1
    }

    impl Resource for Inn {
        const API_VERSION: &'static str = "example.com/v1";
        const KIND: &'static str = "Inn";
        const PLURAL: &'static str = "inns";
    }

    impl CustomResource for Inn {
        type Spec = InnSpec;
        type Status = InnStatus;
        const SHORT_NAMES: &'static [&'static str] = &["in"];
        const COLUMNS: &'static [Column] = &[Column::integer("Rooms", ".spec.roomCount")];
        const SCALE: Option<crate::Scale> =
            Some(crate::Scale::at(".spec.roomCount", ".status.guests").selector(".status.who"));
    }

    #[test]
    fn free_json_preserves_unknown_fields() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Free {
            anything: serde_json::Map<String, Value>,
            value: Value,
            labels: std::collections::BTreeMap<String, String>,
        }
        let properties = structural::<Free>()["properties"].clone();
        assert_eq!(
            properties["anything"],
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
        );
        assert_eq!(properties["value"], json!({ "x-kubernetes-preserve-unknown-fields": true }));
        assert_eq!(properties["labels"]["additionalProperties"], json!({ "type": "string" }));
    }

    #[test]
    fn crd_has_the_names_and_columns_of_the_type() {
        let crd = crd::<Inn>();
        assert_eq!(crd["metadata"]["name"], "inns.example.com");
        assert_eq!(
            crd["spec"]["names"],
            json!({ "kind": "Inn", "listKind": "InnList", "plural": "inns", "singular": "inn", "shortNames": ["in"] })
        );
        let columns = &crd["spec"]["versions"][0]["additionalPrinterColumns"];
        assert_eq!(columns[0]["jsonPath"], ".spec.roomCount");
        assert_eq!(columns[1]["name"], "Age");
    }

    #[test]
    fn crd_has_the_subresource_scale_when_the_type_names_its_fields() {
        assert_eq!(
            crd::<Inn>()["spec"]["versions"][0]["subresources"]["scale"],
            json!({
                "specReplicasPath": ".spec.roomCount",
                "statusReplicasPath": ".status.guests",
                "labelSelectorPath": ".status.who",
            })
        );
    }

    #[test]
    fn spec_has_descriptions_defaults_bounds_and_no_null_or_reference() {
        let crd = crd::<Inn>();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        expect![[r#"
            {
              "description": "The desired inn.",
              "properties": {
                "roomCount": {
                  "default": 1,
                  "description": "How many rooms.",
                  "minimum": 1,
                  "type": "integer"
                },
                "season": {
                  "description": "When it opens.",
                  "enum": [
                    "Summer",
                    "Winter"
                  ],
                  "type": "string"
                },
                "sign": {
                  "description": "What is on the sign.",
                  "type": "string"
                },
                "staff": {
                  "description": "Who works there.",
                  "items": {
                    "properties": {
                      "name": {
                        "type": "string"
                      }
                    },
                    "required": [
                      "name"
                    ],
                    "type": "object"
                  },
                  "type": "array"
                }
              },
              "required": [
                "season",
                "staff"
              ],
              "type": "object"
            }"#]]
        .assert_eq(&format!("{spec:#}"));
    }

    #[test]
    fn crd_has_rules_at_the_root_and_spec_is_optional_when_the_type_allows_it() {
        struct Shed;

        impl Resource for Shed {
            const API_VERSION: &'static str = "example.com/v1";
            const KIND: &'static str = "Shed";
            const PLURAL: &'static str = "sheds";
        }

        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct ShedSpec {
            #[serde(default)]
            colour: Option<String>,
        }

        impl CustomResource for Shed {
            type Spec = ShedSpec;
            type Status = InnStatus;
            const RULES: &'static [crate::Rule] = &[crate::Rule {
                rule: "self.metadata.name != 'inn'",
                message: "an inn is no shed",
            }];
            const SPEC_MAY_BE_LEFT_OUT: bool = true;
        }

        let crd = crd::<Shed>();
        let root = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(
            root["x-kubernetes-validations"],
            json!([{ "rule": "self.metadata.name != 'inn'", "message": "an inn is no shed" }])
        );
        assert_eq!(root.get("required"), None);
        assert_eq!(root["properties"]["spec"]["default"], json!({}));
        assert_eq!(root["properties"]["spec"]["properties"]["colour"], json!({ "type": "string" }));
    }

    #[test]
    fn status_has_the_fields_of_the_host_and_of_the_guest() {
        let crd = crd::<Inn>();
        let status =
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
        assert_eq!(status["properties"]["guests"]["type"], "integer");
        assert_eq!(status["properties"]["observedGeneration"]["format"], "int64");
        assert_eq!(
            status["properties"]["conditions"]["x-kubernetes-list-map-keys"],
            json!(["type"])
        );
        assert_eq!(status.get("required"), None, "the object must be valid without a status");
    }

    #[test]
    fn conditions_have_the_result_of_the_run_only_when_the_type_asks_for_it() {
        struct Stable;

        impl Resource for Stable {
            const API_VERSION: &'static str = "example.com/v1";
            const KIND: &'static str = "Stable";
            const PLURAL: &'static str = "stables";
        }

        impl CustomResource for Stable {
            type Spec = InnSpec;
            type Status = InnStatus;
            const SHOWS_RUN_RESULT: bool = true;
        }

        let result = |crd: Value| {
            let status =
                &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
            let condition = &status["properties"]["conditions"]["items"]["properties"];
            condition.get("ansibleResult").map(|result| result["properties"].clone())
        };
        let members = result(crd::<Stable>()).unwrap();
        let names: Vec<_> = members.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["changed", "completion", "failures", "ok", "skipped"]);
        assert_eq!(result(crd::<Inn>()), None);
    }
}
