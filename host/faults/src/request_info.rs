//! What a request asks for, read from its method, path, query and headers.

use std::fmt;

use http::Request;
use serde::{Deserialize, Serialize};

/// The verb of a request, as in RBAC, except that a server-side apply is a verb of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// GET of an object.
    Get,
    /// GET of a collection.
    List,
    /// GET of a collection as a stream of events.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH, other than a server-side apply.
    Patch,
    /// PATCH with `application/apply-patch+yaml`.
    Apply,
    /// DELETE of an object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
    /// A request for something else than objects, such as discovery.
    Other,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        })
    }
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// The verb.
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural of the kind; empty for a request that is not for objects.
    pub resource: String,
    /// The subresource, such as `status`; empty if there is none.
    pub subresource: String,
    /// The namespace; empty for all namespaces and for cluster-scoped kinds.
    pub namespace: String,
    /// The name of the object; empty for a collection. A create has the name of its body.
    pub name: String,
    /// The impersonated user; empty if there is none.
    pub user: String,
    /// Whether nothing is stored.
    pub is_dry_run: bool,
}

/// The content type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

impl RequestInfo {
    /// Reads a request. `body` gives the name of an object to be created.
    pub fn of<B>(request: &Request<B>, body: &[u8]) -> Self {
        let header = |name: &str| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default()
        };
        let mut info = Self {
            verb: Verb::Other,
            group: String::new(),
            resource: String::new(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
            user: header("impersonate-user").to_owned(),
            is_dry_run: false,
        };
        let query = request.uri().query().unwrap_or_default();
        info.is_dry_run = query.split('&').any(|pair| pair == "dryRun=All");
        let parts: Vec<&str> =
            request.uri().path().split('/').filter(|part| !part.is_empty()).collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] => rest,
            ["apis", group, _, rest @ ..] => {
                (*group).clone_into(&mut info.group);
                rest
            }
            _ => return info,
        };
        let rest = match rest {
            // Namespaces are objects themselves; `namespaces/n/status` and `namespaces/n/finalize`
            // are subresources of one.
            ["namespaces", namespace, resource, rest @ ..]
                if !(info.group.is_empty() && matches!(*resource, "status" | "finalize")) =>
            {
                (*namespace).clone_into(&mut info.namespace);
                (*resource).clone_into(&mut info.resource);
                rest
            }
            [resource, rest @ ..] => {
                (*resource).clone_into(&mut info.resource);
                rest
            }
            [] => return info,
        };
        rest.first().copied().unwrap_or_default().clone_into(&mut info.name);
        info.subresource = rest.get(1..).unwrap_or_default().join("/");
        let is_watch =
            || query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"));
        let is_collection = info.name.is_empty();
        info.verb = match request.method().as_str() {
            "GET" if is_watch() => Verb::Watch,
            "GET" if is_collection => Verb::List,
            "GET" => Verb::Get,
            "POST" => Verb::Create,
            "PUT" => Verb::Update,
            "PATCH" if header("content-type").starts_with(APPLY) => Verb::Apply,
            "PATCH" => Verb::Patch,
            "DELETE" if is_collection => Verb::DeleteCollection,
            "DELETE" => Verb::Delete,
            _ => Verb::Other,
        };
        if info.verb == Verb::Create && is_collection {
            info.name = name_in(body);
        }
        info
    }

    /// Whether the request changes objects that users see. Dry runs, Events, Leases and access
    /// reviews are not counted: they change nothing, or come at times that do not depend on the
    /// client's work.
    pub fn is_write(&self) -> bool {
        let is_change = matches!(
            self.verb,
            Verb::Create
                | Verb::Update
                | Verb::Patch
                | Verb::Apply
                | Verb::Delete
                | Verb::DeleteCollection
        );
        let is_other = match self.group.as_str() {
            "" => self.resource == "events",
            "events.k8s.io"
            | "coordination.k8s.io"
            | "authorization.k8s.io"
            | "authentication.k8s.io" => true,
            _ => false,
        };
        is_change && !is_other && !self.is_dry_run
    }
}

/// The name of an object; empty if it has none.
fn name_in(body: &[u8]) -> String {
    let object: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// As in `apply apps/deployments shop/web`.
impl fmt::Display for RequestInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb)?;
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}", self.resource)?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", "") => Ok(()),
            ("", name) => write!(f, " {name}"),
            (namespace, "") => write!(f, " {namespace}/"),
            (namespace, name) => write!(f, " {namespace}/{name}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use super::*;

    fn line(method: &str, uri: &str, content: &str, body: &str) -> String {
        let request =
            Request::builder().method(method).uri(uri).header("content-type", content).body(());
        let info = RequestInfo::of(&request.unwrap(), body.as_bytes());
        format!("{info}{}", if info.is_write() { " (write)" } else { "" })
    }

    #[test]
    fn request_is_described_by_verb_resource_and_name() {
        let json = "application/json";
        let cases = [
            ("GET", "/api/v1/pods?watch=true&limit=1", json, "watch pods"),
            ("GET", "/api/v1/namespaces/a/pods?limit=250", json, "list pods a/"),
            ("GET", "/api/v1/namespaces/a", json, "get namespaces a"),
            ("GET", "/version", json, "other "),
            ("PUT", "/api/v1/namespaces/a/finalize", json, "update namespaces/finalize a (write)"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/web?fieldManager=x",
                APPLY,
                "apply apps/deployments a/web (write)",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/web/status",
                "application/merge-patch+json",
                "patch apps/deployments/status a/web (write)",
            ),
            ("POST", "/api/v1/namespaces/a/events", json, "create events a/"),
            ("DELETE", "/api/v1/namespaces/a/pods", json, "deletecollection pods a/ (write)"),
            (
                "PUT",
                "/apis/coordination.k8s.io/v1/namespaces/a/leases/l",
                json,
                "update coordination.k8s.io/leases a/l",
            ),
        ];
        for (method, uri, content, expected) in cases {
            assert_eq!(line(method, uri, content, ""), expected);
        }
    }

    #[test]
    fn create_has_the_name_of_its_body() {
        let body = r#"{"metadata":{"name":"web"}}"#;
        let line = line("POST", "/api/v1/namespaces/a/services", "application/json", body);
        assert_eq!(line, "create services a/web (write)");
    }
}
