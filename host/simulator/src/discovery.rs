//! What is served, as clients ask for it.

use serde_json::{Value, json};

use crate::builtin::table;
use crate::cluster::Cluster;
use crate::http::route::Route;
use crate::request::{Answer, Request};

impl Cluster {
    /// Answers what is about no object.
    pub(crate) fn discover(&self, route: &Route, _request: &Request) -> Answer {
        match route {
            Route::Resources(group, version) => {
                let Some(resources) = self.catalog.resources(group, version) else {
                    return Answer::nowhere();
                };
                let id =
                    if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
                let mut list =
                    json!({"kind": "APIResourceList", "groupVersion": id, "resources": resources});
                if !group.is_empty() {
                    list["apiVersion"] = "v1".into();
                }
                Answer::json(200, &list)
            }
            Route::Group(name) => {
                match self.groups().into_iter().find(|one| one["name"] == name.as_str()) {
                    Some(mut group) => {
                        group["kind"] = "APIGroup".into();
                        group["apiVersion"] = "v1".into();
                        Answer::json(200, &group)
                    }
                    None => Answer::nowhere(),
                }
            }
            Route::Other(path) => self.other(path),
            Route::Resource(_) => Answer::nowhere(),
        }
    }

    fn other(&self, path: &str) -> Answer {
        match path {
            "/api" => Answer::json(
                200,
                &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
            ),
            "/apis" => Answer::json(
                200,
                &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": self.groups()}),
            ),
            "/version" => Answer::json(
                200,
                &json!({"major": "1", "minor": "35", "gitVersion": "v1.35.4", "gitTreeState": "clean",
                    "platform": "linux/amd64", "goVersion": "", "gitCommit": "", "buildDate": "", "compiler": ""}),
            ),
            "/healthz" | "/livez" | "/readyz" => Answer::Text { code: 200, body: "ok".to_owned() },
            _ => Answer::nowhere(),
        }
    }

    fn groups(&self) -> Vec<Value> {
        let mut groups: Vec<Value> = table().groups.values().cloned().collect();
        for (group, versions) in self.catalog.custom_versions() {
            let versions: Vec<Value> = versions
                .iter()
                .rev()
                .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
                .collect();
            groups.push(
                json!({"name": group, "versions": versions, "preferredVersion": versions.first()}),
            );
        }
        groups
    }
}
