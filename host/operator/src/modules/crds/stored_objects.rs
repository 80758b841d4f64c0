//! Checks the stored objects of a definition against the definition that would replace it.
//!
//! The comparison of the schemas proves that what fits the one fits the other; objects may be older
//! than the installed schema, so they are read too, as far as the module's account may list them.

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_contract::{Kind, Scope};
use innkeeper_core::crd_compat::{Misfit, StoredObjects};
use innkeeper_core::foreign;
use innkeeper_modules::{CrdRequest, Rejection, RetryPolicy};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use super::compatibility::incompatible;
use super::loss::Loss;

/// The most objects that are checked of one definition.
const OBJECTS_MAX: usize = 50_000;

/// The most bytes of objects that are read of one definition.
const BYTES_MAX: usize = 512 << 20;

/// The longest time in which the objects of one definition are read and checked.
const TIME_MAX: Duration = Duration::from_mins(1);

/// Objects in one answer.
const PAGE: u32 = 50;

/// The most bytes of one answer; of larger objects fewer are asked for at once.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// The most bytes of one object: as many as the API server takes in a request by default. Parsed,
/// an object takes up to 16 times its bytes.
const OBJECT_BYTES_MAX: usize = 3 << 20;

/// The steps in which one object is checked.
const STEPS_MAX: u64 = 1_000_000;

/// The longest description of a misfit, in bytes.
const PLACE_BYTES_MAX: usize = 512;

/// How fields are reported that stored objects would lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossCheck {
    /// The first one ends the check.
    First,
    /// All are counted.
    All,
}

/// What has been read.
#[derive(Default)]
struct Read {
    /// Whether the API server says that it serves the definition.
    is_established: bool,
    /// Whether the status of the objects is a subresource.
    has_status_subresource: bool,
    objects: usize,
    bytes: usize,
    loss: Loss,
}

impl Read {
    /// Counts one answer; why no more is read, if it is too much.
    fn add(&mut self, objects: usize, bytes: usize) -> Result<(), String> {
        self.objects += objects;
        self.bytes += bytes;
        if self.objects > OBJECTS_MAX {
            return Err(format!("there are more than {OBJECTS_MAX}, the most that are checked"));
        }
        if self.bytes > BYTES_MAX {
            let mebibytes = BYTES_MAX >> 20;
            return Err(format!("they have more than {mebibytes} MiB, the most that is checked"));
        }
        Ok(())
    }
}

/// Checks the stored objects of a definition with the rights of one module's account.
pub(super) struct StoredObjectCheck<'a> {
    /// Requests as the module's ServiceAccount.
    pub(super) client: &'a ApiClient,
    /// The namespaces of the module's primaries; empty for all.
    pub(super) namespaces: &'a BTreeSet<String>,
    /// Whether the objects of all namespaces must be checked; otherwise those of the module's
    /// namespaces suffice, if the account may list no others.
    pub(super) is_whole: bool,
    /// How fields are reported that the objects would lose.
    pub(super) loss: LossCheck,
    /// Held while objects are checked, over all modules: each check holds a page and an object.
    pub(super) lock: &'a Mutex<()>,
}

impl StoredObjectCheck<'_> {
    /// Checks the stored objects that the module's account may list.
    ///
    /// # Errors
    /// The first object that does not fit, or why not all could be checked.
    pub(super) async fn run(&self, request: &CrdRequest, live: &Value) -> Result<(), Rejection> {
        let Some(stored) = StoredObjects::new(live, &request.definition) else {
            return Err(incompatible(
                request,
                "changes, but no version of the installed definition is served, so its stored objects cannot be checked; serve one",
            ));
        };
        let kind = kind(live, stored.version());
        let read = Read {
            is_established: is_established(live),
            has_status_subresource: has_status_subresource(live, stored.version()),
            ..Read::default()
        };
        let _turn = self.lock.lock().await;
        let check = self.check_all(request, &kind, &stored, read);
        self.client.env().timeout(TIME_MAX, check).await.unwrap_or_else(|_| {
            let why = format!("not all were checked within {} s", TIME_MAX.as_secs());
            Err(unchecked(request, &why))
        })
    }

    async fn check_all(
        &self,
        request: &CrdRequest,
        kind: &Kind,
        stored: &StoredObjects,
        mut read: Read,
    ) -> Result<(), Rejection> {
        match self.check_in(request, (kind, ""), stored, &mut read).await? {
            Ok(()) => {}
            Err(ApiError::Forbidden { .. })
                if kind.is_namespaced() && !self.is_whole && !self.namespaces.is_empty() =>
            {
                for namespace in self.namespaces {
                    self.check_in(request, (kind, namespace), stored, &mut read)
                        .await?
                        .map_err(|error| unread(request, kind, &error))?;
                }
            }
            Err(error) => return Err(unread(request, kind, &error)),
        }
        read.loss.check(request, kind, read.has_status_subresource)
    }

    /// Checks the objects of one namespace, or of all; the inner error is why they cannot be read.
    async fn check_in(
        &self,
        request: &CrdRequest,
        (kind, namespace): (&Kind, &str),
        stored: &StoredObjects,
        read: &mut Read,
    ) -> Result<Result<(), ApiError>, Rejection> {
        let (mut start, mut limit) = (String::new(), PAGE);
        let client = self.client;
        let mut is_refreshed = false;
        loop {
            let page = client.list_raw_page(kind, namespace, limit, PAGE_BYTES_MAX, &start).await;
            let page = match page {
                Ok(page) => page,
                // A definition that is not served has no objects that anybody could read.
                Err(ApiError::NotServed { .. } | ApiError::NotFound { .. })
                    if !read.is_established =>
                {
                    return Ok(Ok(()));
                }
                Err(ApiError::NamespaceNotFound { .. }) if !namespace.is_empty() => {
                    return Ok(Ok(()));
                }
                // Objects may be there: of several API servers, one may not serve yet what another
                // one has established.
                Err(ApiError::NotServed { .. }) if !is_refreshed => {
                    is_refreshed = true;
                    match client.discovery().check(kind, Duration::ZERO).await {
                        Ok(_) => continue,
                        Err(error) => return Ok(Err(error)),
                    }
                }
                Err(error) => return Ok(Err(error)),
            };
            let is_within = read.add(page.items.len(), page.bytes);
            is_within.map_err(|why| unchecked(request, &why))?;
            for object in page.items {
                self.check_one(request, kind, stored, &object, &mut read.loss)?;
                // Other tasks of this thread run in between.
                tokio::task::yield_now().await;
            }
            if page.next.is_empty() {
                return Ok(Ok(()));
            }
            (start, limit) = (page.next, page.limit);
        }
    }

    /// Checks one object; counts it if it would only lose fields and all of these are reported.
    fn check_one(
        &self,
        request: &CrdRequest,
        kind: &Kind,
        stored: &StoredObjects,
        object: &RawValue,
        loss: &mut Loss,
    ) -> Result<(), Rejection> {
        let name = self.name(object);
        let shown = name.as_ref().map_or_else(
            || format!("a {} in a namespace that the module does not serve", kind.kind),
            |name| format!("{} {name}", kind.kind),
        );
        if object.get().len() > OBJECT_BYTES_MAX {
            let mebibytes = OBJECT_BYTES_MAX >> 20;
            let why = format!("{shown} has more than {mebibytes} MiB");
            return Err(unchecked(request, &why));
        }
        let object: Value = serde_json::from_str(object.get())
            .map_err(|error| unchecked(request, &format!("{shown} cannot be read: {error}")))?;
        let checked = stored.check(&object, STEPS_MAX);
        if matches!((&checked, self.loss), (Err(Misfit::At(_)), LossCheck::All))
            && let Ok(fields) = stored.lost_fields(&object, STEPS_MAX)
            && !fields.is_empty()
        {
            loss.add(name, fields);
            return Ok(());
        }
        match checked {
            Ok(()) => Ok(()),
            Err(Misfit::At(place)) => Err(incompatible(
                request,
                &format!(
                    "does not fit what is stored: {shown}: {}; change that object",
                    foreign::one_line(place.trim_start(), PLACE_BYTES_MAX)
                ),
            )),
            Err(Misfit::TooManySteps) => {
                let why = format!("{shown} takes more than {STEPS_MAX} steps to check");
                Err(unchecked(request, &why))
            }
        }
    }

    /// The namespace and the name of an object of which nothing else is parsed; `None` if its
    /// namespace is not the module's: who may read the Module may not be allowed to see it.
    fn name(&self, object: &RawValue) -> Option<String> {
        let head: Head = serde_json::from_str(object.get()).unwrap_or_default();
        let Metadata { name, namespace } = head.metadata;
        match &*namespace {
            "" => Some(name),
            namespace if self.namespaces.is_empty() || self.namespaces.contains(namespace) => {
                Some(format!("{namespace}/{name}"))
            }
            _ => None,
        }
    }
}

/// What is parsed of each object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
}

fn unchecked(request: &CrdRequest, why: &str) -> Rejection {
    incompatible(
        request,
        &format!(
            "changes, and its stored objects cannot all be checked against it: {why}; have fewer of them"
        ),
    )
}

fn unread(request: &CrdRequest, kind: &Kind, error: &ApiError) -> Rejection {
    let next = match error {
        ApiError::Forbidden { .. } => format!(
            "grant the module's ServiceAccount `list` on {}, in the whole cluster if it adopts the definition",
            kind.resource()
        ),
        ApiError::NotServed { .. } => {
            "the host tries again; if that does not help, look at the conditions in its status"
                .to_owned()
        }
        _ => "the host tries again".to_owned(),
    };
    Rejection::new(
        format!("CRD{}", error.reason()),
        format!(
            "the CustomResourceDefinition {} changes, and its stored objects cannot be checked against it: {error}; {next}",
            request.name
        ),
        RetryPolicy::Later,
    )
}

/// Whether the status of a version's objects is a subresource.
fn has_status_subresource(live: &Value, version: &str) -> bool {
    let versions = live.pointer("/spec/versions").and_then(Value::as_array);
    let mut versions = versions.into_iter().flatten();
    versions.any(|one| one["name"] == version && one["subresources"].get("status").is_some())
}

/// Whether the API server says that it serves a definition.
fn is_established(live: &Value) -> bool {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
}

/// The kind of a definition's objects, in a version.
pub(super) fn kind(live: &Value, version: &str) -> Kind {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let scope = if text("/spec/scope") == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
    Kind {
        api_version: format!("{}/{version}", text("/spec/group")),
        kind: text("/spec/names/kind").to_owned(),
        plural: text("/spec/names/plural").to_owned(),
        scope,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;
    use innkeeper_cluster::{Account, Cluster, Env, SecretDigestKey, Settings};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn objects_of_a_kind_that_the_server_does_not_find_are_unchecked() {
        let service = tower::service_fn(|_: http::Request<_>| async {
            let response = http::Response::builder().status(404);
            response.body(Full::<Bytes>::from("404 page not found"))
        });
        let env = Env::scripted(1, jiff::Timestamp::UNIX_EPOCH);
        let cluster =
            Cluster::over(service, env, Settings::default(), SecretDigestKey::new(b"test"));
        let client = cluster.as_account(&Account::new("a", "b"));
        let definition = |properties: Value| {
            json!({"status": {"conditions": [{"type": "Established", "status": "True"}]}, "spec": {"group": "example.dev", "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}]}})
        };
        let request = CrdRequest {
            name: "things.example.dev".into(),
            group: "example.dev".into(),
            granted: true,
            dropped: Vec::new(),
            definition: definition(json!({"spec": {"type": "object"}})),
        };
        let check = StoredObjectCheck {
            client: &client,
            namespaces: &BTreeSet::new(),
            is_whole: true,
            loss: LossCheck::All,
            lock: &Mutex::default(),
        };
        let rejection = check.run(&request, &definition(json!({}))).await.unwrap_err();
        assert_eq!((&*rejection.reason, rejection.retry), ("CRDNotServed", RetryPolicy::Later));
    }

    #[tokio::test(start_paused = true)]
    async fn definition_that_is_established_and_not_served_is_not_checked_as_empty() {
        let service = tower::service_fn(async |_: http::Request<_>| {
            let body = json!({"kind": "Status", "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "no"});
            http::Response::builder().status(404).body(Full::<Bytes>::from(body.to_string()))
        });
        let env = Env::scripted(1, jiff::Timestamp::UNIX_EPOCH);
        let cluster =
            Cluster::over(service, env, Settings::default(), SecretDigestKey::new(b"test"));
        let spec = json!({"group": "defined.example.dev", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]});
        let request = CrdRequest {
            name: "things.defined.example.dev".into(),
            group: "defined.example.dev".into(),
            granted: true,
            dropped: Vec::new(),
            definition: json!({ "spec": spec }),
        };
        let check = StoredObjectCheck {
            client: &cluster.host(),
            namespaces: &BTreeSet::new(),
            is_whole: true,
            loss: LossCheck::All,
            lock: &Mutex::new(()),
        };
        let live = |status: &str| {
            json!({"spec": spec, "status": {"conditions": [
                {"type": "Established", "status": status}]}})
        };
        assert_eq!(check.run(&request, &live("False")).await, Ok(()));
        let refused = check.run(&request, &live("True")).await.unwrap_err();
        assert_eq!(refused.retry, RetryPolicy::Later);
        assert!(refused.message.contains("cannot be checked"), "{}", refused.message);
    }

    #[test]
    fn reading_ends_at_its_bounds_and_says_which() {
        let mut read = Read::default();
        assert_eq!(read.add(OBJECTS_MAX, 0), Ok(()));
        let why = read.add(1, 0).unwrap_err();
        assert_eq!(why, "there are more than 50000, the most that are checked");
        let why = Read::default().add(1, BYTES_MAX + 1).unwrap_err();
        assert_eq!(why, "they have more than 512 MiB, the most that is checked");
    }
}
