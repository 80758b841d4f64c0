//! The OpenAPI v2 document: what clients fall back to, and what Kubernetes' own tests read.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod cluster;

use bytes::Bytes;
use cluster::Cluster;
use http::{Request, Response};
use innkeeper_simulator::Body;
use serde_json::{Value, json};

const PATH: &str = "/openapi/v2";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

fn ask(cluster: &Cluster, headers: &[(&str, &str)]) -> Response<Body> {
    let mut request = Request::get(PATH);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    cluster.simulator.request(request.body(Bytes::new()).unwrap())
}

fn document(cluster: &Cluster) -> Value {
    cluster.get(PATH).unwrap()
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
    response.headers()[name].to_str().unwrap()
}

/// A kind with this schema, in the group `example.dev`.
fn define(cluster: &Cluster, kind: &str, schema: &Value) {
    let plural = format!("{}s", kind.to_lowercase());
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.dev")},
        "spec": {"group": "example.dev", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "selectableFields": [{"jsonPath": ".spec.a"}]}]}});
    let (code, answer) = cluster.send("POST", DEFINITIONS, &definition);
    assert_eq!(code, 201, "{answer}");
    cluster.simulator.settle();
}

#[test]
fn document_names_the_built_in_types_without_defaults() {
    let definitions = document(&Cluster::new())["definitions"].take();
    assert!(definitions.as_object().unwrap().len() > 450);
    let ports = &definitions["io.k8s.api.core.v1.ServicePort"]["properties"];
    let reference = "#/definitions/io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    assert_eq!(ports["targetPort"]["$ref"], reference);
    assert!(ports["targetPort"]["description"].is_string(), "{ports}");
    assert_eq!(ports["protocol"].get("default"), None, "{ports}");
    let number = &definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(number["type"], "string", "{number}");
    assert_eq!(number["format"], "int-or-string", "{number}");
    let text = definitions.to_string();
    assert!(!text.contains("#/components/"), "no reference of OpenAPI v3 is left");
}

#[test]
fn custom_kind_is_published_as_kubectl_reads_it() {
    let cluster = Cluster::new();
    let text = json!({"type": "string"});
    define(
        &cluster,
        "Full",
        &json!({"type": "object", "properties": {"spec": {
        "type": "object", "required": ["a", "n"], "properties": {
            "a": {"type": "string", "default": "x", "example": "y", "maxLength": 9, "not": {"enum": ["z"]}},
            "n": {"type": "string", "nullable": true, "description": "none"},
            "list": {"type": "array", "nullable": true, "items": text, "x-kubernetes-list-type": "set"},
            "number": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"z": text}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
            "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
                "properties": {"spec": {"type": "object"}}},
        }}}}),
    );
    let definitions = document(&cluster)["definitions"].take();
    let full = &definitions["dev.example.v1.Full"];
    let mut spec = full["properties"]["spec"].clone();
    let embedded = spec["properties"].as_object_mut().unwrap().remove("embedded").unwrap();
    assert_eq!(
        spec,
        json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "maxLength": 9},
            "n": {"description": "none"},
            "list": {"x-kubernetes-list-type": "set"},
            "number": {"x-kubernetes-int-or-string": true},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": {}},
        }})
    );
    assert_eq!(embedded["required"], json!(["kind", "apiVersion"]));
    let metadata = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(embedded["properties"]["metadata"]["$ref"], metadata);
    assert_eq!(full["properties"]["metadata"]["$ref"], metadata);
    assert_eq!(full["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.a"}]));
    let identity = json!([{"group": "example.dev", "kind": "Full", "version": "v1"}]);
    assert_eq!(full["x-kubernetes-group-version-kind"], identity);
    let items = &definitions["dev.example.v1.FullList"]["properties"]["items"]["items"];
    assert_eq!(items["$ref"], "#/definitions/dev.example.v1.Full");
}

#[test]
fn kind_with_unknown_fields_is_published_without_any() {
    let cluster = Cluster::new();
    define(
        &cluster,
        "Free",
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "description": "d"}),
    );
    let definitions = document(&cluster)["definitions"].take();
    assert_eq!(definitions["dev.example.v1.Free"].get("properties"), None);
    assert_eq!(definitions["dev.example.v1.Free"]["type"], "object");
}

#[test]
fn client_with_the_current_document_gets_304_until_a_kind_is_defined() {
    let cluster = Cluster::new();
    let first = ask(&cluster, &[]);
    assert_eq!(first.status(), 200);
    let etag = header(&first, "etag").to_owned();
    let again = ask(&cluster, &[("if-none-match", &etag)]);
    assert_eq!(again.status(), 304);
    assert_eq!(header(&again, "etag"), etag);
    assert_eq!(again.into_body().try_next().unwrap_or_default(), "");
    define(&cluster, "Full", &json!({"type": "object"}));
    let changed = ask(&cluster, &[("if-none-match", &etag)]);
    assert_eq!(changed.status(), 200);
    assert_ne!(header(&changed, "etag"), etag);
}

#[test]
fn media_type_of_the_document_is_the_first_known_one() {
    let cluster = Cluster::new();
    let kind = |accept: &str| {
        let response = ask(&cluster, &[("accept", accept)]);
        (response.status().as_u16(), header(&response, "content-type").to_owned())
    };
    let json = (200, "application/json".to_owned());
    assert_eq!(kind("*/*"), json);
    assert_eq!(kind("application/json, */*"), json);
    assert_eq!(kind(&format!("application/json,{PROTOBUF}")), json);
    assert_eq!(kind(PROTOBUF), (200, PROTOBUF.replace('@', ".")));
    assert_eq!(kind("text/html").0, 406);
}

#[test]
fn document_is_refused_to_an_anonymous_client() {
    let response = ask(&Cluster::new(), &[("impersonate-user", "system:anonymous")]);
    assert_eq!(response.status(), 403);
    let response = ask(&Cluster::new(), &[("impersonate-user", "jane")]);
    assert_eq!(response.status(), 200, "every user may read it");
}
