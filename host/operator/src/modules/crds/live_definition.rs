//! Reads an installed definition: as the host, or as the module's account where the host may not.
//! Where neither may, discovery tells whether its versions are served.

use std::time::Duration;

use innkeeper_cluster::crd::NotEstablished;
use innkeeper_cluster::error::KIND_MISMATCH;
use innkeeper_cluster::{ApiClient, ApiError, Backoff, ServedKind, crd};
use innkeeper_core::{Object, ObjectKey};
use innkeeper_modules::{CrdRequest, Rejection, RetryPolicy};

use super::compatibility::{refused, served_versions, version_missing};
use super::stored_objects::kind;

/// How long a definition may take until the server serves it.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// The maximum age of the answer of discovery in place of a definition that nobody may read.
const DISCOVERY_AGE_MAX: Duration = Duration::from_secs(5);

/// The first wait for discovery; it doubles up to [`DISCOVERY_AGE_MAX`].
const DISCOVERY_WAIT_MIN: Duration = Duration::from_millis(500);

/// What the host knows of an installed definition.
pub(super) enum LiveDefinition {
    /// It is not installed.
    Absent,
    /// It is installed.
    Found(Box<Object>),
    /// Nobody may read it, but the API server serves all versions of the request.
    ServedOnly,
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
        let versions = served_versions(&request.definition);
        let missing = self.versions_not_served(request, &versions).await?;
        match missing.len() {
            0 => Ok(LiveDefinition::ServedOnly),
            count if count == versions.len() => Ok(LiveDefinition::Absent),
            _ => Err(version_missing(request, &missing)),
        }
    }

    /// Waits until the API server serves the objects of a definition.
    ///
    /// # Errors
    /// If it does not in time, or the names are taken.
    pub(super) async fn established(&self, request: &CrdRequest) -> Result<(), Rejection> {
        for client in self.clients() {
            match crd::established(client, &request.name, ESTABLISHED_WITHIN).await {
                Err(NotEstablished::Api(ApiError::Forbidden { .. })) => {}
                result => return result.map_err(|error| not_established(error.to_string())),
            }
        }
        self.discovered(request).await
    }

    /// Waits until discovery has all versions of a definition that nobody may read: the API server
    /// adds them a moment after the write.
    async fn discovered(&self, request: &CrdRequest) -> Result<(), Rejection> {
        let versions = served_versions(&request.definition);
        let env = self.host.env();
        let mut backoff = Backoff::new(env, DISCOVERY_WAIT_MIN, DISCOVERY_AGE_MAX);
        let waited = env.timeout(ESTABLISHED_WITHIN, async {
            while !self.versions_not_served(request, &versions).await?.is_empty() {
                env.sleep(backoff.advance()).await;
            }
            Ok(())
        });
        waited.await.unwrap_or_else(|_| {
            let seconds = ESTABLISHED_WITHIN.as_secs();
            Err(not_established(format!(
                "the CustomResourceDefinition {} is installed, and the API server did not serve it within {seconds} s; look at the conditions in its status",
                request.name
            )))
        })
    }

    /// The clients that may be able to read definitions.
    fn clients(&self) -> impl Iterator<Item = &ApiClient> {
        let account =
            Some(self.account).filter(|account| account.identity() != self.host.identity());
        [self.host].into_iter().chain(account)
    }

    /// Those of the versions that discovery does not have.
    async fn versions_not_served(
        &self,
        request: &CrdRequest,
        versions: &[String],
    ) -> Result<Vec<String>, Rejection> {
        let mut missing = Vec::new();
        for version in versions {
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
        Ok(missing)
    }
}

fn not_established(why: String) -> Rejection {
    Rejection::new("CRDNotEstablished", why, RetryPolicy::Later)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http_body_util::Full;
    use innkeeper_cluster::{Account, Cluster, Env, SecretDigestKey, Settings};
    use serde_json::{Value, json};

    use super::*;

    fn path_of<B>(request: &http::Request<B>) -> &str {
        request.uri().path()
    }

    /// A cluster where nobody may read definitions, and whose discovery has things in v1 after so
    /// many requests for them.
    fn cluster(empty_answers: usize) -> Cluster {
        let asked = Arc::new(AtomicUsize::default());
        let service = tower::service_fn(move |request| {
            let path = path_of(&request).to_owned();
            let things = match asked.load(Ordering::SeqCst) {
                before if before < empty_answers => json!([]),
                _ => json!([{"name": "things", "kind": "Thing", "namespaced": true}]),
            };
            if path == "/apis/defined.example.dev/v1" {
                asked.fetch_add(1, Ordering::SeqCst);
            }
            let discovered = json!({"kind": "APIResourceList", "resources": things});
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
        Cluster::over(service, env, Settings::default(), SecretDigestKey::new(b"test"))
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
        let cluster = cluster(0);
        let (host, account) = (cluster.host(), cluster.as_account(&Account::new("a", "b")));
        let reader = DefinitionReader { host: &host, account: &account };
        match reader.read(request).await {
            Ok(LiveDefinition::Absent) => Ok("absent"),
            Ok(LiveDefinition::Found(_)) => Ok("found"),
            Ok(LiveDefinition::ServedOnly) => Ok("served"),
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

    #[tokio::test(start_paused = true)]
    async fn definition_that_nobody_may_read_is_awaited_until_discovery_has_it() {
        let established = async |empty_answers, versions: &[&str]| {
            let cluster = cluster(empty_answers);
            let (host, account) = (cluster.host(), cluster.as_account(&Account::new("a", "b")));
            let reader = DefinitionReader { host: &host, account: &account };
            let request = request("Namespaced", versions);
            assert!(matches!(reader.read(&request).await, Ok(LiveDefinition::Absent)));
            reader.established(&request).await
        };
        assert_eq!(established(3, &["v1"]).await, Ok(()));
        let late = established(usize::MAX, &["v1"]).await.unwrap_err();
        assert_eq!((&*late.reason, late.retry), ("CRDNotEstablished", RetryPolicy::Later));
        assert!(late.message.contains("did not serve it within 30 s"), "{}", late.message);
    }
}
