//! Reads an installed definition: as the host, or as the module's account where the host may not.
//! Where neither may, discovery tells whether its versions are served.

use std::time::Duration;

use innkeeper_cluster::crd::NotEstablished;
use innkeeper_cluster::error::KIND_MISMATCH;
use innkeeper_cluster::{ApiClient, ApiError, ServedKind, crd};
use innkeeper_core::{Object, ObjectKey};
use innkeeper_modules::{CrdRequest, Rejection, RetryPolicy};

use super::compatibility::{refused, served_versions, version_missing};
use super::stored_objects::kind;

/// How long a definition may take until the server serves it.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// The maximum age of the answer of discovery in place of a definition that nobody may read.
const DISCOVERY_AGE_MAX: Duration = Duration::from_secs(5);

/// What the host knows of an installed definition.
pub(super) enum LiveDefinition {
    /// It is not installed.
    Absent,
    /// It is installed.
    Found(Box<Object>),
    /// Nobody may read it, but the API server serves all versions of the request.
    Served,
}

/// Reads definitions for one module.
#[derive(Clone, Copy)]
pub(super) struct DefinitionReader<'a> {
    /// Requests as the host.
    pub(super) host: &'a ApiClient,
    /// Requests as the module's ServiceAccount.
    pub(super) account: &'a ApiClient,
}

impl DefinitionReader<'_> {
    /// Reads the installed definition of a request.
    ///
    /// # Errors
    /// If the API server does not answer, or serves the kind otherwise.
    pub(super) async fn read(&self, request: &CrdRequest) -> Result<LiveDefinition, Rejection> {
        let key = ObjectKey::new("", &request.name);
        for client in self.clients() {
            match client.get(&crd::kind(), &key).await {
                Ok(object) => return Ok(LiveDefinition::Found(Box::new(object))),
                Err(ApiError::NotFound { .. }) => return Ok(LiveDefinition::Absent),
                Err(ApiError::Forbidden { .. }) => {}
                Err(error) => return Err(refused(request, &error)),
            }
        }
        self.discover(request).await
    }

    /// Waits until the API server serves the objects of a definition.
    ///
    /// # Errors
    /// If it does not in time, or the names are taken.
    pub(super) async fn established(&self, request: &CrdRequest) -> Result<(), Rejection> {
        let not = |why: String| Rejection::new("CRDNotEstablished", why, RetryPolicy::Later);
        for client in self.clients() {
            match crd::established(client, &request.name, ESTABLISHED_WITHIN).await {
                Err(NotEstablished::Api(ApiError::Forbidden { .. })) => {}
                result => return result.map_err(|error| not(error.to_string())),
            }
        }
        match self.discover(request).await? {
            LiveDefinition::Served => Ok(()),
            _ => Err(not(format!(
                "the CustomResourceDefinition {} is installed, and the API server does not serve it yet",
                request.name
            ))),
        }
    }

    /// The clients that may be able to read definitions.
    fn clients(&self) -> impl Iterator<Item = &ApiClient> {
        let account =
            Some(self.account).filter(|account| account.identity() != self.host.identity());
        [self.host].into_iter().chain(account)
    }

    async fn discover(&self, request: &CrdRequest) -> Result<LiveDefinition, Rejection> {
        let versions = served_versions(&request.definition);
        let mut missing = Vec::new();
        for version in &versions {
            let kind = kind(&request.definition, version);
            match self.host.discovery().check(&kind, DISCOVERY_AGE_MAX).await {
                Ok(ServedKind::AsDeclared) => {}
                Ok(ServedKind::NotServed) => missing.push(version.clone()),
                Ok(ServedKind::Mismatched(mismatch)) => {
                    let message = mismatch.to_string();
                    return Err(Rejection::new(KIND_MISMATCH, message, RetryPolicy::Later));
                }
                Err(error) => return Err(refused(request, &error)),
            }
        }
        match missing.len() {
            0 => Ok(LiveDefinition::Served),
            count if count == versions.len() => Ok(LiveDefinition::Absent),
            _ => Err(version_missing(request, &missing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;
    use innkeeper_cluster::{Account, Cluster, Env, SecretKey, Settings};
    use serde_json::{Value, json};

    use super::*;

    fn path_of<B>(request: &http::Request<B>) -> &str {
        request.uri().path()
    }

    /// A cluster where nobody may read definitions, and whose discovery has these things in v1.
    fn cluster(discovered: Value) -> Cluster {
        let service = tower::service_fn(move |request| {
            let path = path_of(&request).to_owned();
            let discovered = discovered.clone();
            async move {
                let (code, body) = match &*path {
                    "/apis/defined.example.dev/v1" => (200, discovered),
                    "/apis/apiextensions.k8s.io/v1" => (
                        200,
                        json!({"resources": [{"name": "customresourcedefinitions",
                            "kind": "CustomResourceDefinition", "namespaced": false}]}),
                    ),
                    "/apis/defined.example.dev/v2" => (404, Value::Null),
                    _ => (
                        403,
                        json!({"kind": "Status", "status": "Failure", "code": 403,
                        "reason": "Forbidden", "message": "no"}),
                    ),
                };
                let response = http::Response::builder().status(code);
                response.body(Full::<Bytes>::from(body.to_string()))
            }
        });
        let env = Env::scripted(1, jiff::Timestamp::UNIX_EPOCH);
        Cluster::over(service, env, Settings::default(), SecretKey::new(b"test"))
    }

    fn request(scope: &str, versions: &[&str]) -> CrdRequest {
        let versions: Vec<Value> =
            versions.iter().map(|name| json!({"name": name, "served": true})).collect();
        CrdRequest {
            name: "things.defined.example.dev".into(),
            group: "defined.example.dev".into(),
            granted: false,
            dropped: Vec::new(),
            definition: json!({"spec": {"group": "defined.example.dev", "scope": scope,
                "names": {"kind": "Thing", "plural": "things"}, "versions": versions}}),
        }
    }

    async fn read(request: &CrdRequest) -> Result<&'static str, String> {
        let cluster = cluster(json!({"kind": "APIResourceList", "resources": [
            {"name": "things", "kind": "Thing", "namespaced": true}]}));
        let (host, account) = (cluster.host(), cluster.as_account(&Account::new("a", "b")));
        let reader = DefinitionReader { host: &host, account: &account };
        match reader.read(request).await {
            Ok(LiveDefinition::Absent) => Ok("absent"),
            Ok(LiveDefinition::Found(_)) => Ok("found"),
            Ok(LiveDefinition::Served) => Ok("served"),
            Err(rejection) => Err(rejection.reason),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn definition_that_nobody_may_read_is_compared_with_discovery() {
        for (scope, versions, expected) in [
            ("Namespaced", vec!["v1"], Ok("served")),
            ("Namespaced", vec!["v2"], Ok("absent")),
            ("Namespaced", vec!["v1", "v2"], Err("CRDVersionMissing".to_owned())),
            ("Cluster", vec!["v1"], Err("KindMismatch".to_owned())),
        ] {
            assert_eq!(read(&request(scope, &versions)).await, expected, "{scope} {versions:?}");
        }
    }
}
