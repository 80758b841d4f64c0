//! The OpenAPI documents, made from the stored schemas of the real server, and for custom kinds
//! from their definitions: one of version 3 for each group and version, one of version 2 for all.

pub(crate) mod custom;
pub(crate) mod format;
pub(crate) mod paths;
pub(crate) mod schemas;
pub(crate) mod v2;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::api::openapi::format::Format;
use crate::api::openapi::paths::Served;
use crate::api::request::Response;
use crate::state::cluster::Cluster;
use crate::types::builtin::{GIT_VERSION, group_version};

/// The path of the documents.
const ROOT: &str = "/openapi/v3";

/// Answers requests below `/openapi/v3`.
pub(crate) fn openapi(cluster: &Cluster, path: &str) -> Response {
    if path == ROOT {
        return Response::json(200, &openapi_index(cluster));
    }
    let place = path.strip_prefix(ROOT).unwrap_or_default().trim_matches('/');
    let document = match place.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => openapi_document(cluster, "", version),
        ["apis", group, version] => openapi_document(cluster, group, version),
        _ => None,
    };
    document.map_or_else(Response::page_not_found, |document| Response::json(200, &document))
}

/// The index of the documents. A document that changes gets another address, so that clients can
/// cache it.
fn openapi_index(cluster: &Cluster) -> Value {
    let mut paths = BTreeMap::new();
    for (group, version) in cluster.catalog.group_versions() {
        let place = match group.as_str() {
            "" => format!("api/{version}"),
            group => format!("apis/{group}/{version}"),
        };
        let hash = match custom::definitions(cluster, &group, &version).as_slice() {
            [] => GIT_VERSION.to_owned(),
            some => some.iter().map(|one| custom::identity(one)).collect::<Vec<_>>().join("."),
        };
        let url = format!("{ROOT}/{place}?hash={hash}");
        paths.insert(place, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// The document of a group and version.
fn openapi_document(cluster: &Cluster, group: &str, version: &str) -> Option<Value> {
    let resources = cluster.catalog.resources(group, version)?;
    let mut schemas = Map::new();
    let definitions = custom::definitions(cluster, group, version);
    for definition in &definitions {
        custom::schemas(definition, version, Format::V3, &mut schemas);
    }
    if definitions.is_empty() {
        schemas::of_group(&group_version(group, version), &mut schemas);
    }
    schemas::complete(&mut schemas);
    let served = Served { group, version, schemas: &schemas };
    let paths = served.paths(&resources);
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": GIT_VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}
