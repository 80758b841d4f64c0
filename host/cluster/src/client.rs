//! Requests as one identity.

mod guard;
mod pages;
mod reviews;

use std::fmt;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use innkeeper_contract::Kind;
use innkeeper_core::manager::HOST;
use innkeeper_core::object::DecodeError;
use innkeeper_core::{Manager, Object, ObjectKey};
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::discovery::Discovery;
use crate::error::{Guard, RequestContext, is_read};
use crate::transport::{NoAnswer, Repeatable};
use crate::{ApiError, Env, Identity, SecretKey, Settings};

pub use pages::Page;
pub use reviews::User;

/// What stays as it is in a segment of a path or in a value of a query.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Requests as one identity, over the shared connections. Cheap to clone.
///
/// Every request is bounded in time, and repeated where that is safe (see
/// [`Settings`]); an error is final for now.
#[derive(Clone)]
pub struct ApiClient {
    client: kube::Client,
    identity: Identity,
    env: Env,
    settings: Settings,
    secrets: SecretKey,
    discovery: Arc<Discovery>,
    /// Its kinds and names come from a guest.
    for_module: bool,
}

/// Whether an apply takes over fields that other managers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It takes them over: what we own is as we want it.
    Yes,
    /// It fails with [`ApiError::FieldConflict`]: what we merge into belongs to others.
    No,
}

/// What an apply did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The object as it is now.
    pub object: Object,
    /// It was not there before.
    pub created: bool,
}

/// What becomes of the objects that a deleted object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    /// As `propagationPolicy` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// What a delete did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It is not there any more.
    Removed,
    /// It waits for finalizers or for its grace period.
    Terminating(Box<Object>),
}

/// What tells the answers to a delete apart.
#[derive(serde::Deserialize)]
struct DecodedKind {
    #[serde(default)]
    kind: String,
}

/// A request that is not for a watch: what tells its answers apart, and the request.
struct PendingRequest<'a> {
    asked: RequestContext<'a>,
    request: Request<Vec<u8>>,
    repeatable: bool,
}

impl ApiClient {
    pub(crate) fn new(
        client: kube::Client,
        identity: Identity,
        env: Env,
        settings: Settings,
        secrets: SecretKey,
        discovery: Arc<Discovery>,
    ) -> Self {
        Self { client, identity, env, settings, secrets, discovery, for_module: false }
    }

    /// As whom the requests are made.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The ambient world.
    pub fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Reads an object. The values of a Secret are replaced by digests.
    pub async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Object, ApiError> {
        let (asked, text) = self.read(kind, key).await?;
        self.decode(kind, &text).map_err(|error| asked.unreadable(&error))
    }

    /// Reads an object as a type of its own, with all that the server sends: for kinds that the
    /// host itself knows. A Secret's values are given as they are, to whoever may read them; they
    /// must not be cached or logged.
    pub async fn get_as<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<T, ApiError> {
        let (asked, text) = self.read(kind, key).await?;
        serde_json::from_str(&text).map_err(|error| asked.unreadable(&error))
    }

    /// Reads all objects of a kind in a namespace (empty for all, or for a kind of the cluster), in
    /// one go: for kinds of which there are few. As [`ApiClient::get_as`] otherwise.
    pub async fn list_as<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        namespace: &str,
    ) -> Result<Vec<T>, ApiError> {
        #[derive(serde::Deserialize)]
        #[serde(bound = "T: DeserializeOwned")]
        struct List<T> {
            items: Vec<T>,
        }
        self.check_kind(kind).await?;
        let asked = self.asked("list", kind, "", namespace, Guard::None);
        let path = path(kind, Some(namespace).filter(|one| !one.is_empty()), None, "")?;
        let request = request(Method::GET, &path, "", "", Vec::new())?;
        let (_, text) =
            self.ask(PendingRequest { asked: asked.clone(), request, repeatable: true }).await?;
        let list: List<T> =
            serde_json::from_str(&text).map_err(|error| asked.unreadable(&error))?;
        Ok(list.items)
    }

    async fn read<'a>(
        &'a self,
        kind: &'a Kind,
        key: &'a ObjectKey,
    ) -> Result<(RequestContext<'a>, String), ApiError> {
        if self.hides(kind, key) {
            let message = format!("{} {key} is not for modules", kind.kind);
            return Err(ApiError::NotFound { message });
        }
        self.check_kind(kind).await?;
        let asked = self.asked("get", kind, "", key.namespace(), Guard::None);
        let path = path(kind, Some(key.namespace()), Some(key.name()), "")?;
        let request = request(Method::GET, &path, "", "", Vec::new())?;
        let (_, text) =
            self.ask(PendingRequest { asked: asked.clone(), request, repeatable: true }).await?;
        Ok((asked, text))
    }

    /// Server-side apply of an object, with strict validation of fields.
    ///
    /// `body` is the whole intent of `manager`. It says itself what it expects to be there:
    /// `metadata.resourceVersion: "1"` nothing ([`ApiError::AlreadyExists`]),
    /// `metadata.uid` that object ([`ApiError::ObjectDeleted`], [`ApiError::UidMismatch`]).
    pub async fn apply(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        manager: &Manager,
        body: &Value,
        force: Force,
    ) -> Result<Applied, ApiError> {
        self.patch(kind, key, "", manager, body, force).await
    }

    /// Server-side apply of an object's status: `body` has its name, `resourceVersion`
    /// if the write has to be made on that version, and `status`.
    pub async fn apply_status(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        manager: &Manager,
        body: &Value,
        force: Force,
    ) -> Result<Applied, ApiError> {
        self.patch(kind, key, "status", manager, body, force).await
    }

    async fn patch(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        subresource: &str,
        manager: &Manager,
        body: &Value,
        force: Force,
    ) -> Result<Applied, ApiError> {
        let metadata = &body["metadata"];
        let guard = match metadata["resourceVersion"].as_str() {
            Some("1") => Guard::Absent,
            Some(_) => Guard::Version,
            None if metadata["uid"].is_string() => Guard::Uid,
            None => Guard::None,
        };
        self.check_write(kind, key)?;
        self.check_kind(kind).await?;
        let asked = self.asked("patch", kind, subresource, key.namespace(), guard);
        let path = path(kind, Some(key.namespace()), Some(key.name()), subresource)?;
        let query = format!(
            "fieldManager={}&force={}&fieldValidation=Strict",
            encoded(&manager.to_string()),
            force == Force::Yes,
        );
        let body = body.to_string().into_bytes();
        let request = request(Method::PATCH, &path, &query, "application/apply-patch+yaml", body)?;
        // Applied twice is applied once, unless the second apply would miss the version or the
        // emptiness that the first one found.
        let repeatable = matches!(guard, Guard::None | Guard::Uid);
        let (status, text) =
            self.ask(PendingRequest { asked: asked.clone(), request, repeatable }).await?;
        let object = self.decode(kind, &text).map_err(|error| asked.unreadable(&error))?;
        Ok(Applied { object, created: status == StatusCode::CREATED })
    }

    /// Merges a patch into an object, as `manager`: for lists that others write to as well, of
    /// which an apply would only take away what nobody else has applied. `body` has the
    /// `metadata.resourceVersion` that the patch was made for. Takes finalizers off, so that it is
    /// allowed everywhere.
    pub async fn merge_patch(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        manager: &Manager,
        body: &Value,
    ) -> Result<Object, ApiError> {
        self.check_kind(kind).await?;
        let asked = self.asked("patch", kind, "", key.namespace(), Guard::Version);
        let path = path(kind, Some(key.namespace()), Some(key.name()), "")?;
        let query = format!("fieldManager={}", encoded(&manager.to_string()));
        let body = body.to_string().into_bytes();
        let request = request(Method::PATCH, &path, &query, "application/merge-patch+json", body)?;
        let ask = PendingRequest { asked: asked.clone(), request, repeatable: false };
        let (_, text) = self.ask(ask).await?;
        self.decode(kind, &text).map_err(|error| asked.unreadable(&error))
    }

    /// Deletes the object with this uid, and no other of its name: another one is answered by
    /// [`ApiError::UidMismatch`]. An object that is not there is [`Deleted::Removed`].
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        uid: &str,
        propagation: Propagation,
    ) -> Result<Deleted, ApiError> {
        self.check_write(kind, key)?;
        self.check_kind(kind).await?;
        let asked = self.asked("delete", kind, "", key.namespace(), Guard::Uid);
        let path = path(kind, Some(key.namespace()), Some(key.name()), "")?;
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": uid },
            "propagationPolicy": propagation.as_str(),
        });
        let body = body.to_string().into_bytes();
        let request = request(Method::DELETE, &path, "", "application/json", body)?;
        let ask = PendingRequest { asked: asked.clone(), request, repeatable: true };
        let text = match self.ask(ask).await {
            Ok((_, text)) => text,
            Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => {
                return Ok(Deleted::Removed);
            }
            Err(error) => return Err(error),
        };
        let answer: DecodedKind =
            serde_json::from_str(&text).map_err(|error| asked.unreadable(&error))?;
        if answer.kind == "Status" {
            return Ok(Deleted::Removed);
        }
        let object = self.decode(kind, &text).map_err(|error| asked.unreadable(&error))?;
        Ok(match object.deletion_timestamp {
            Some(_) => Deleted::Terminating(Box::new(object)),
            // Some kinds are answered by the object as it was last.
            None => Deleted::Removed,
        })
    }

    /// Whether this identity may do something: a `SelfSubjectAccessReview`. `namespace`
    /// `None` asks for all namespaces; `subresource` is empty for the object itself.
    pub async fn can_i(
        &self,
        verb: &str,
        kind: &Kind,
        subresource: &str,
        namespace: Option<&str>,
    ) -> Result<bool, ApiError> {
        #[derive(serde::Deserialize)]
        struct Review {
            #[serde(default)]
            spec: Value,
            status: ReviewStatus,
        }
        #[derive(serde::Deserialize)]
        struct ReviewStatus {
            allowed: bool,
            #[serde(default)]
            denied: bool,
        }
        let review_kind = Kind::cluster(
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
        );
        let body = json!({
            "apiVersion": review_kind.api_version,
            "kind": review_kind.kind,
            "spec": { "resourceAttributes": {
                "verb": verb,
                "group": kind.group(),
                "version": kind.version(),
                "resource": kind.plural,
                "subresource": subresource,
                "namespace": namespace.unwrap_or_default(),
            }},
        });
        let asked = self.asked("create", &review_kind, "", "", Guard::None);
        let path = path(&review_kind, None, None, "")?;
        let body = body.to_string().into_bytes();
        let request = request(Method::POST, &path, "", "application/json", body)?;
        let (_, text) =
            self.ask(PendingRequest { asked: asked.clone(), request, repeatable: true }).await?;
        let review: Review =
            serde_json::from_str(&text).map_err(|error| asked.unreadable(&error))?;
        // The server repeats what it was asked: an answer to something else is none.
        for (member, value) in [
            ("verb", verb),
            ("group", kind.group()),
            ("resource", &kind.plural),
            ("subresource", subresource),
            ("namespace", namespace.unwrap_or_default()),
        ] {
            let answered = &review.spec["resourceAttributes"];
            if answered.is_object() && answered[member].as_str().unwrap_or_default() != value {
                return Err(asked.unreadable(&format!("it is about another {member}")));
            }
        }
        Ok(review.status.allowed && !review.status.denied)
    }

    /// Creates an object by POST. Only for what is never applied: Events, and what is immutable.
    pub async fn create(&self, kind: &Kind, namespace: &str, body: &Value) -> Result<(), ApiError> {
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        self.check_write(kind, &ObjectKey::new(namespace, name))?;
        self.check_kind(kind).await?;
        let asked = self.asked("create", kind, "", namespace, Guard::Absent);
        let path = path(kind, Some(namespace), None, "")?;
        let body = body.to_string().into_bytes();
        let query = format!("fieldManager={HOST}");
        let request = request(Method::POST, &path, &query, "application/json", body)?;
        self.ask(PendingRequest { asked, request, repeatable: false }).await.map(|_| ())
    }

    /// Sends a request as it is: for tools that take any object. Gives the status and the body of
    /// the answer, whatever it says.
    ///
    /// # Errors
    /// If there is no answer.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<(StatusCode, Vec<u8>), ApiError> {
        let silent = |message: String| ApiError::Unavailable { message };
        let response = self.client.send(request.map(Body::from)).await;
        let response = response.map_err(|error| silent(error.to_string()))?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| silent(error.to_string()))?;
        Ok((parts.status, body.to_bytes().into()))
    }

    fn asked<'a>(
        &'a self,
        verb: &'a str,
        kind: &'a Kind,
        subresource: &'a str,
        namespace: &'a str,
        guard: Guard,
    ) -> RequestContext<'a> {
        RequestContext { identity: &self.identity, verb, kind, subresource, namespace, guard }
    }

    /// Reads an object as the server sent it, with digests in place of a Secret's values.
    pub(crate) fn decode(&self, kind: &Kind, text: &str) -> Result<Object, DecodeError> {
        let digest =
            |key: &ObjectKey, name: &str, value: &str| self.secrets.digest(key, name, value);
        let object = Object::decode(kind, text, Some(&digest))?;
        // What a primary may own goes by the namespace in which it is stored.
        if self.for_module && object.key.namespace().is_empty() == kind.is_namespaced() {
            return Err(DecodeError::OtherScope {
                namespace: object.key.namespace().into(),
                requested: kind.to_string().into(),
                scope: if kind.is_namespaced() { "Namespaced" } else { "Cluster" },
            });
        }
        Ok(object)
    }

    async fn ask(&self, ask: PendingRequest<'_>) -> Result<(StatusCode, String), ApiError> {
        let PendingRequest { asked, request, repeatable } = ask;
        let mut request = request.map(Body::from);
        if repeatable {
            request.extensions_mut().insert(Repeatable);
        }
        let response = self.client.send(request).await.map_err(|error| asked.unanswered(&error))?;
        Self::text(&asked, response).await
    }

    /// The status and the text of an answer to a request that succeeded.
    async fn text(
        asked: &RequestContext<'_>,
        response: Response<Body>,
    ) -> Result<(StatusCode, String), ApiError> {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|error| asked.unanswered(&error))?.to_bytes();
        if !parts.status.is_success() {
            return Err(asked.refused(parts.status.as_u16(), &bytes));
        }
        let text = String::from_utf8(bytes.into()).map_err(|error| asked.unreadable(&error))?;
        Ok((parts.status, text))
    }
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({})", self.identity)
    }
}

impl RequestContext<'_> {
    /// The answer came, but is not what was asked for. A write was done then; what is there
    /// is not known.
    fn unreadable(&self, error: &dyn fmt::Display) -> ApiError {
        let message = format!("the answer cannot be read: {error}");
        if is_read(self.verb) {
            ApiError::Other { code: 0, message }
        } else {
            ApiError::OutcomeUnknown { message }
        }
    }

    pub(crate) fn unanswered(&self, error: &kube::Error) -> ApiError {
        let no_answer = match error {
            kube::Error::Service(inner) => inner.downcast_ref::<NoAnswer>().cloned(),
            _ => None,
        }
        .unwrap_or_else(|| NoAnswer {
            message: error.to_string(),
            late: false,
            may_have_arrived: true,
            too_large: false,
        });
        let NoAnswer { message, late, may_have_arrived, .. } = no_answer;
        match (is_read(self.verb), may_have_arrived, late) {
            (false, true, _) => ApiError::OutcomeUnknown { message },
            (true, _, true) => ApiError::Timeout { message },
            _ => ApiError::Unavailable { message },
        }
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

pub(crate) fn group_path(kind: &Kind) -> String {
    let root = if kind.group().is_empty() { "/api" } else { "/apis" };
    let version = encoded(kind.version());
    match kind.group() {
        "" => format!("{root}/{version}"),
        group => format!("{root}/{}/{version}", encoded(group)),
    }
}

/// The path of a resource or of one object. Names come from guests: whatever they hold,
/// it stays within its segment.
fn path(
    kind: &Kind,
    namespace: Option<&str>,
    name: Option<&str>,
    subresource: &str,
) -> Result<String, ApiError> {
    // The server splits the path after it has decoded it: a slash is no part of a name.
    let segment = |what: &str, text: &str| {
        if matches!(text, "" | "." | "..") || text.contains(['/', '%']) {
            Err(ApiError::Invalid { message: format!("{kind}: {text:?} is no {what}") })
        } else {
            Ok(encoded(text))
        }
    };
    let mut path = group_path(kind);
    if let Some(namespace) = namespace
        && kind.is_namespaced()
    {
        path = format!("{path}/namespaces/{}", segment("namespace", namespace)?);
    }
    path = format!("{path}/{}", segment("plural name", &kind.plural)?);
    if let Some(name) = name {
        path = format!("{path}/{}", segment("name", name)?);
    }
    if !subresource.is_empty() {
        path = format!("{path}/{}", encoded(subresource));
    }
    Ok(path)
}

fn request(
    method: Method,
    path: &str,
    query: &str,
    content_type: &str,
    body: Vec<u8>,
) -> Result<Request<Vec<u8>>, ApiError> {
    let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let mut request =
        Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
    if !content_type.is_empty() {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    request.body(body).map_err(|error| ApiError::Invalid {
        message: format!("{path} is no path of an API server: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_within_its_segment() {
        let kind = Kind::namespaced("apps/v1", "Deployment", "deployments");
        assert_eq!(
            path(&kind, Some("n"), Some("a"), "status").unwrap(),
            "/apis/apps/v1/namespaces/n/deployments/a/status"
        );
        assert_eq!(
            path(&kind, Some("n"), Some("x?y# "), "").unwrap(),
            "/apis/apps/v1/namespaces/n/deployments/x%3Fy%23%20"
        );
        for wrong in ["", ".", "..", "a/status", "../secrets/x", "a%2Fb"] {
            assert_eq!(path(&kind, Some("n"), Some(wrong), "").unwrap_err().reason(), "Invalid");
            assert_eq!(path(&kind, Some(wrong), Some("a"), "").unwrap_err().reason(), "Invalid");
        }
        let role = Kind::cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles");
        assert_eq!(
            path(&role, Some(""), Some("system:x"), "").unwrap(),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x"
        );
    }
}
