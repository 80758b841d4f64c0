//! The schema of a kind as the API server publishes it (`/openapi/v3`), which every account may
//! read.

use std::collections::BTreeMap;

use innkeeper_contract::Kind;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ApiClient;
use crate::ApiError;
use crate::error::Guard;
use crate::resource_path::group_path;

/// The OpenAPI document of one group and version.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    paths: BTreeMap<String, Box<RawValue>>,
    #[serde(default)]
    components: Components,
}

#[derive(Default, Deserialize)]
struct Components {
    #[serde(default)]
    schemas: BTreeMap<String, Value>,
}

impl ApiClient {
    /// Reads what the API server publishes of a kind's definition, in the form of a
    /// CustomResourceDefinition with one version: its schema, and whether it has a status
    /// subresource. `None` if nothing is published of the kind.
    ///
    /// # Errors
    /// Those of any request.
    pub async fn published_definition(&self, kind: &Kind) -> Result<Option<Value>, ApiError> {
        let context = self.context("get", kind, "", "", Guard::None);
        let path = format!("/openapi/v3{}", group_path(kind));
        let text = match self.read_path(&context, &path).await {
            Ok(text) => text,
            Err(ApiError::NotFound { .. } | ApiError::NotServed { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let document: Document =
            serde_json::from_str(&text).map_err(|error| context.unreadable(&error))?;
        Ok(definition(kind, document))
    }
}

fn definition(kind: &Kind, document: Document) -> Option<Value> {
    let is_of_kind = |schema: &Value| {
        let names = schema["x-kubernetes-group-version-kind"].as_array();
        names.into_iter().flatten().any(|name| {
            name["group"] == kind.group()
                && name["version"] == kind.version()
                && name["kind"] == *kind.kind
        })
    };
    let schema = document.components.schemas.into_values().find(is_of_kind)?;
    let status = format!("/{}/{{name}}/status", kind.plural);
    let has_status = document.paths.keys().any(|path| path.ends_with(&status));
    let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
    Some(json!({"spec": {"versions": [{
        "name": kind.version(),
        "served": true,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
    }]}}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, Server};

    const PATH: &str = "GET /openapi/v3/apis/quay.io/v1";

    fn document(paths: &[&str]) -> Value {
        let name = |kind: &str| json!([{"group": "quay.io", "version": "v1", "kind": kind}]);
        let paths: BTreeMap<&str, Value> = paths.iter().map(|path| (*path, json!({}))).collect();
        json!({"paths": paths, "components": {"schemas": {
            "io.quay.v1.A": {"type": "object", "x-kubernetes-group-version-kind": name("Other")},
            "io.quay.v1.B": {"type": "object", "properties": {"status": {"type": "object"}},
                "x-kubernetes-group-version-kind": name("Podroute")},
        }}})
    }

    async fn published(reply: Reply) -> Option<Value> {
        let kind = Kind::namespaced("quay.io/v1", "Podroute", "podroutes");
        let server = Server::new();
        server.always(PATH, reply);
        server.cluster().host().published_definition(&kind).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn published_definition_has_the_schema_of_the_kind_and_its_status_subresource() {
        let status = "/apis/quay.io/v1/namespaces/{namespace}/podroutes/{name}/status";
        for (paths, expected) in [(vec![status], json!({"status": {}})), (vec![], json!({}))] {
            let found = published(Reply::Json(200, document(&paths))).await.unwrap();
            let version = &found["spec"]["versions"][0];
            assert_eq!(version["name"], "v1");
            assert_eq!(version["subresources"], expected);
            let schema = &version["schema"]["openAPIV3Schema"];
            assert_eq!(schema["properties"]["status"]["type"], "object");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn published_definition_is_none_when_the_kind_is_not_published() {
        assert_eq!(published(Reply::Json(200, json!({}))).await, None);
        let status =
            json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
        assert_eq!(published(Reply::Json(404, status)).await, None);
    }
}
