//! The OpenAPI v2 document: the types of all groups. It names no paths.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha512};

use crate::api::openapi::custom;
use crate::api::openapi::format::Format;
use crate::api::openapi::schemas::{self, REFERENCE};
use crate::api::request::{Request, Response};
use crate::state::cluster::Cluster;
use crate::types::builtin::{GIT_VERSION, raw_types};

/// The path of the document.
pub(crate) const PATH: &str = "/openapi/v2";

/// The media type of the document in protobuf, and how clients ask for it.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Answers a request for the document.
pub(crate) fn answer(cluster: &Cluster, request: &Request) -> Response {
    let Some(protobuf) = is_protobuf(&request.accept) else {
        return Response::Text { code: 406, body: String::new() };
    };
    let kind = if protobuf { PROTOBUF } else { "application/json" }.to_owned();
    let etag = etag(cluster);
    if request.known.split(',').any(|known| known.trim() == etag) {
        return Response::Tagged { etag, kind, body: None };
    }
    let body = if protobuf { no_definitions() } else { document(cluster) };
    Response::Tagged { etag, kind, body: Some(body) }
}

/// Whether a client wants protobuf rather than JSON; `None` if it accepts neither.
fn is_protobuf(accept: &str) -> Option<bool> {
    if accept.trim().is_empty() {
        return Some(false);
    }
    accept.split(',').find_map(|range| match range.split(';').next()?.trim() {
        "application/json" | "application/*" | "*/*" => Some(false),
        PROTOBUF | PROTOBUF_ASKED => Some(true),
        _ => None,
    })
}

/// The tag of the document, which changes with every definition.
fn etag(cluster: &Cluster) -> String {
    let mut hash = Sha512::new_with_prefix(GIT_VERSION);
    each_definition(cluster, &mut |definition, version| {
        hash.update(format!(" {} {version}", custom::identity(definition)));
    });
    format!("\"{}\"", hex::encode_upper(hash.finalize()))
}

/// Calls a function for each version of each definition that is served.
fn each_definition(cluster: &Cluster, call: &mut impl FnMut(&Value, &str)) {
    for (group, versions) in cluster.catalog.custom_versions() {
        for version in versions {
            for definition in custom::definitions(cluster, &group, &version) {
                call(&definition, &version);
            }
        }
    }
}

fn document(cluster: &Cluster) -> Bytes {
    let mut own = Map::new();
    each_definition(cluster, &mut |definition, version| {
        custom::schemas(definition, version, Format::V2, &mut own);
    });
    let own = Value::from(own).to_string();
    let own = own.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default();
    let comma = if own.is_empty() { "" } else { "," };
    let info = json!({"title": "Kubernetes", "version": GIT_VERSION});
    let builtin = builtin_definitions();
    Bytes::from(format!(
        "{{\"swagger\":\"2.0\",\"info\":{info},\"paths\":{{}},\"definitions\":{{{builtin}{comma}{own}}}}}"
    ))
}

/// The members of `definitions` that are the same in every cluster, made once.
fn builtin_definitions() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let names = raw_types().as_object().into_iter().flatten().map(|(name, _)| name);
        let members = names.filter_map(|name| {
            let mut schema = schemas::published(name)?;
            convert(&mut schema);
            Some(format!("{}:{schema}", Value::from(name.as_str())))
        });
        members.collect::<Vec<_>>().join(",")
    })
}

/// Converts a built-in type from version 3: without defaults, with `$ref` next to other members.
fn convert(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    members.remove("default");
    if members.remove("oneOf").is_some() {
        members.insert("type".to_owned(), "string".into());
    }
    let only = members.remove("allOf").map(|mut all| all[0]["$ref"].take());
    if let Some(reference) = only.or_else(|| members.remove("$ref")) {
        let name = reference.as_str().unwrap_or_default().trim_start_matches(REFERENCE);
        members.insert("$ref".to_owned(), Format::V2.reference(name).into());
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(name) {
            convert(inner);
        }
    }
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(convert);
}

/// The document in protobuf, which names no types: the version of OpenAPI, and the title and
/// version of the server.
fn no_definitions() -> Bytes {
    Bytes::from_static(b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.35.4")
}
