//! Builders as fields of a custom resource's spec.

use innkeeper_sdk::kinds::{LabelSelector, PodTemplate};
use innkeeper_sdk::schema::crd;
use innkeeper_sdk::{CustomResource, Resource, kind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

kind!(Set, "example.com/v1", "sets");

#[derive(Deserialize, JsonSchema)]
struct SetSpec {
    selector: LabelSelector,
    template: PodTemplate,
}

#[derive(JsonSchema)]
struct SetStatus {}

impl CustomResource for Set {
    type Spec = SetSpec;
    type Status = SetStatus;
}

#[test]
fn selector_and_template_have_the_schema_of_a_definition() {
    let crd = crd::<Set>();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let properties = &schema["properties"];
    assert_eq!(
        properties["selector"]["properties"]["matchExpressions"]["items"]["properties"]["operator"]
            ["enum"],
        json!(["In", "NotIn", "Exists", "DoesNotExist"])
    );
    for part in ["metadata", "spec"] {
        let free = &properties["template"]["properties"][part];
        assert_eq!(free["x-kubernetes-preserve-unknown-fields"], true, "{free}");
    }
    assert!(!crd.to_string().contains("$ref"), "{crd:#}");
}

#[test]
fn spec_of_a_user_keeps_the_template_and_matches_labels() {
    let spec: SetSpec = serde_json::from_value(json!({
        "selector": { "matchLabels": { "app": "web" } },
        "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [], "dnsPolicy": "None" } },
    }))
    .unwrap();
    assert!(spec.selector.matches(&spec.template.metadata.labels));
    assert_eq!(spec.template.spec.verbatim["dnsPolicy"], "None");
    assert_eq!(Set::KIND, "Set");
}
