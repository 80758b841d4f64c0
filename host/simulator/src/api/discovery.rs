//! Answers discovery requests: groups, versions and resources.

use serde_json::{Value, json};

use crate::api::health;
use crate::api::http::accept::{View, negotiate};
use crate::api::http::query::Query;
use crate::api::http::route::Route;
use crate::api::openapi;
use crate::api::request::{Request, Response};
use crate::state::cluster::Cluster;
use crate::types::builtin::{GIT_VERSION, group_version, table};

/// Answers a request that is about no object.
pub(crate) fn discover(cluster: &Cluster, route: &Route, request: &Request) -> Response {
    match route {
        Route::Resources(group, version) => {
            let Some(resources) = cluster.catalog.resources(group, version) else {
                return Response::page_not_found();
            };
            let id = group_version(group, version);
            let mut list =
                json!({"kind": "APIResourceList", "groupVersion": id, "resources": resources});
            if !group.is_empty() {
                list["apiVersion"] = "v1".into();
            }
            Response::json(200, &list)
        }
        Route::Group(name) => {
            match groups(cluster).into_iter().find(|one| one["name"] == name.as_str()) {
                Some(mut group) => {
                    group["kind"] = "APIGroup".into();
                    group["apiVersion"] = "v1".into();
                    Response::json(200, &group)
                }
                None => Response::page_not_found(),
            }
        }
        Route::Other(path) => {
            let view = negotiate(&request.accept).map(|accepted| accepted.view);
            match path.as_str() {
                "/api" | "/apis" if view == Some(View::Aggregated) => aggregated(cluster, path),
                openapi::v2::PATH => openapi::v2::answer(cluster, request),
                path if path.starts_with("/openapi/") => openapi::openapi(cluster, path),
                path => other(cluster, path, &request.query),
            }
        }
        Route::Resource(_) => Response::page_not_found(),
    }
}

fn other(cluster: &Cluster, path: &str, query: &Query) -> Response {
    match path {
        "/api" => Response::json(
            200,
            &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ),
        "/apis" => Response::json(
            200,
            &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups(cluster)}),
        ),
        "/version" => Response::json(
            200,
            &json!({"major": "1", "minor": "35", "gitVersion": GIT_VERSION, "gitTreeState": "clean",
                "platform": "linux/amd64", "goVersion": "", "gitCommit": "", "buildDate": "", "compiler": ""}),
        ),
        _ => health::answer(path, query).unwrap_or_else(Response::page_not_found),
    }
}

/// All groups with their resources, in one document.
fn aggregated(cluster: &Cluster, path: &str) -> Response {
    let group = |name: &str, versions: Vec<Value>| {
        let metadata = if name.is_empty() { json!({}) } else { json!({ "name": name }) };
        json!({"metadata": metadata, "versions": versions})
    };
    let items: Vec<Value> = if path == "/api" {
        vec![group("", vec![version_of(cluster, "", "v1")])]
    } else {
        let named = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
        let groups = groups(cluster);
        let all = groups.iter().map(|one| {
            let name = named(one);
            let versions = one["versions"].as_array().into_iter().flatten();
            let versions = versions.filter_map(|version| version["version"].as_str());
            group(&name, versions.map(|version| version_of(cluster, &name, version)).collect())
        });
        all.collect()
    };
    let kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items});
    Response::Of { code: 200, kind: kind.to_owned(), body: list.to_string().into() }
}

/// A version in the document of all groups.
fn version_of(cluster: &Cluster, group: &str, version: &str) -> Value {
    let all = cluster.catalog.resources(group, version).unwrap_or_default();
    let name_of = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    let kind_of = |one: &Value| {
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        json!({"group": text("group"), "version": text("version"), "kind": text("kind")})
    };
    let custom = !crate::state::catalog::Catalog::is_builtin_group(group);
    let kind_of = |one: &Value| {
        let mut kind = kind_of(one);
        // Discovery names the groups of custom kinds too.
        if custom && kind["group"] == "" {
            kind["group"] = group.into();
            kind["version"] = version.into();
        }
        kind
    };
    let resources = all.iter().filter(|one| !name_of(one).contains('/')).map(|one| {
        let name = name_of(one);
        let scope = if one["namespaced"] == true { "Namespaced" } else { "Cluster" };
        let mut resource = json!({"resource": name, "responseKind": kind_of(one),
            "scope": scope, "singularResource": one["singularName"], "verbs": one["verbs"]});
        for member in ["shortNames", "categories"] {
            if one[member].is_array() {
                resource[member] = one[member].clone();
            }
        }
        let own = all.iter().filter_map(|sub| {
            let short = name_of(sub).strip_prefix(&format!("{name}/"))?.to_owned();
            Some(json!({"subresource": short, "responseKind": kind_of(sub), "verbs": sub["verbs"]}))
        });
        let own: Vec<Value> = own.collect();
        if !own.is_empty() {
            resource["subresources"] = own.into();
        }
        resource
    });
    let resources: Vec<Value> = resources.collect();
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn groups(cluster: &Cluster) -> Vec<Value> {
    let mut groups: Vec<Value> = table().groups.values().cloned().collect();
    for (group, versions) in cluster.catalog.custom_versions() {
        let versions: Vec<Value> = versions
            .iter()
            .rev()
            .map(
                |version| json!({"groupVersion": format!("{group}/{version}"), "version": version}),
            )
            .collect();
        groups.push(
            json!({"name": group, "versions": versions, "preferredVersion": versions.first()}),
        );
    }
    groups
}
