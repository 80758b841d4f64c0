//! The request of an AdmissionReview of `admission.k8s.io/v1`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The group and version of the AdmissionReviews that the host reads and writes.
pub const API_VERSION: &str = "admission.k8s.io/v1";

/// The longest `uid` that is answered, in bytes. The API server sends 36.
const UID_BYTES_MAX: usize = 128;

/// A request that the API server asks about, borrowed from the bytes that it sent.
///
/// Objects stay text: only the policy reads them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionRequest<'a> {
    /// Identifies the request; the response repeats it.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// The kind of `object`, in the version that the rule of the webhook names.
    #[serde(borrow)]
    pub kind: GroupVersionKind<'a>,
    /// The resource, in the version that the rule of the webhook names.
    #[serde(borrow)]
    pub resource: GroupVersionResource<'a>,
    /// `status` or `scale`, for example; empty for the object itself.
    #[serde(borrow, default)]
    pub sub_resource: Cow<'a, str>,
    /// The kind as the client sent it.
    #[serde(borrow, default)]
    pub request_kind: Option<GroupVersionKind<'a>>,
    /// The resource as the client sent it.
    #[serde(borrow, default)]
    pub request_resource: Option<GroupVersionResource<'a>>,
    /// The name of the object; empty if the API server generates it.
    #[serde(borrow, default)]
    pub name: Cow<'a, str>,
    /// The namespace of the object; empty if it has none.
    #[serde(borrow, default)]
    pub namespace: Cow<'a, str>,
    /// The operation of the client.
    pub operation: Operation,
    /// The user who sends the request.
    #[serde(borrow, default)]
    pub user_info: UserInfo<'a>,
    /// The object that would be stored; none for `DELETE`.
    #[serde(borrow, default)]
    pub object: Option<&'a RawValue>,
    /// The stored object; only for `UPDATE` and `DELETE`.
    #[serde(borrow, default)]
    pub old_object: Option<&'a RawValue>,
    /// Whether nothing will be stored.
    #[serde(default)]
    pub dry_run: bool,
    /// `CreateOptions`, `UpdateOptions`, `PatchOptions` or `DeleteOptions`.
    #[serde(borrow, default)]
    pub options: Option<&'a RawValue>,
}

/// A kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GroupVersionKind<'a> {
    /// Empty for the core group.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    /// For example `v1`.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// For example `Pod`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GroupVersionResource<'a> {
    /// Empty for the core group.
    #[serde(borrow)]
    pub group: Cow<'a, str>,
    /// For example `v1`.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// For example `pods`.
    #[serde(borrow)]
    pub resource: Cow<'a, str>,
}

/// The operation of a client on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object, also by a patch.
    Update,
    /// The deletion of an object.
    Delete,
    /// A connection, for example `kubectl exec`. Policies do not review it.
    Connect,
}

/// Who sends a request, as the API server has authenticated them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct UserInfo<'a> {
    /// For example `system:serviceaccount:default:builder`.
    #[serde(borrow, default)]
    pub username: Cow<'a, str>,
    /// Tells users of one name apart over time; may be empty.
    #[serde(borrow, default)]
    pub uid: Cow<'a, str>,
    /// The groups of the user.
    #[serde(borrow, default)]
    pub groups: Vec<Cow<'a, str>>,
    /// Further facts from the authenticator.
    #[serde(borrow, default)]
    pub extra: BTreeMap<Cow<'a, str>, Vec<Cow<'a, str>>>,
}

/// Why a body is not an AdmissionReview that the host answers.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// Not JSON, or not of the form of `admission.k8s.io/v1`.
    #[error("the body is no AdmissionReview: {0}; send one of {API_VERSION}")]
    Unreadable(#[from] serde_json::Error),
    /// Another kind or version.
    #[error("the body is a {kind:?} of {api_version:?}; send an AdmissionReview of {API_VERSION}")]
    WrongVersion {
        /// Its `apiVersion`, cut to a short text.
        api_version: String,
        /// Its `kind`, cut to a short text.
        kind: String,
    },
    /// No `request`.
    #[error("the AdmissionReview has no request; send one with a request")]
    NoRequest,
    /// A `uid` that cannot be repeated.
    #[error("request.uid must have 1 to {UID_BYTES_MAX} bytes, and it has {0}")]
    InvalidUid(usize),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    // Read in a second step, so that a request of another version is named as such.
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
}

impl<'a> AdmissionRequest<'a> {
    /// Reads the request of an AdmissionReview. Ignores members that it does not know: a later API
    /// server may add some.
    ///
    /// # Errors
    /// If `body` is no AdmissionReview of `admission.k8s.io/v1` with a request and a `uid`.
    pub fn read(body: &'a [u8]) -> Result<Self, ReviewError> {
        let review: Review<'a> = serde_json::from_slice(body)?;
        if review.api_version != API_VERSION || review.kind != "AdmissionReview" {
            let short = |text: &str| text.chars().take(64).collect();
            let (api_version, kind) = (short(&review.api_version), short(&review.kind));
            return Err(ReviewError::WrongVersion { api_version, kind });
        }
        let request = review.request.ok_or(ReviewError::NoRequest)?;
        let request: Self = serde_json::from_str(request.get())?;
        if request.uid.is_empty() || request.uid.len() > UID_BYTES_MAX {
            return Err(ReviewError::InvalidUid(request.uid.len()));
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn review() -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
                "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
                "subResource": "scale",
                "requestKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                "requestResource": {"group": "apps", "version": "v1", "resource": "deployments"},
                "name": "web",
                "namespace": "default",
                "operation": "UPDATE",
                "userInfo": {"username": "ann", "groups": ["dev"], "extra": {"k": ["v"]}},
                "object": {"spec": {"replicas": 2.50}},
                "oldObject": null,
                "options": {"kind": "UpdateOptions"},
                "dryRun": false
            }
        })
    }

    #[test]
    fn request_is_borrowed_and_its_objects_stay_text() {
        let body = review().to_string().replace("2.5", "2.50");
        let request = AdmissionRequest::read(body.as_bytes()).unwrap();
        assert!(matches!(request.uid, Cow::Borrowed(_)));
        assert_eq!(request.operation, Operation::Update);
        assert_eq!((&*request.sub_resource, &*request.name), ("scale", "web"));
        assert_eq!(request.user_info.extra["k"], ["v"]);
        assert_eq!(request.object.unwrap().get(), r#"{"spec":{"replicas":2.50}}"#);
        assert!(request.old_object.is_none());
    }

    #[test]
    fn members_that_later_servers_add_are_ignored() {
        let mut body = review();
        body["request"]["new"] = json!(1);
        let body = body.to_string();
        assert!(AdmissionRequest::read(body.as_bytes()).is_ok());
    }

    #[test]
    fn body_that_is_no_admission_review_is_refused_by_name() {
        let error = |change: &dyn Fn(&mut Value)| {
            let mut body = review();
            change(&mut body);
            AdmissionRequest::read(body.to_string().as_bytes()).unwrap_err().to_string()
        };
        let wrong = error(&|body| body["apiVersion"] = json!("admission.k8s.io/v1beta1"));
        assert!(wrong.contains("\"admission.k8s.io/v1beta1\""), "{wrong}");
        assert!(error(&|body| body["kind"] = json!("x".repeat(1 << 20))).len() < 200);
        assert!(error(&|body| body["request"] = Value::Null).contains("no request"));
        assert!(error(&|body| body["request"]["uid"] = json!("")).contains("request.uid"));
        assert!(error(&|body| body["request"]["uid"] = json!("u".repeat(129))).contains("129"));
        assert!(error(&|body| body["request"]["operation"] = json!("PATCH")).contains("PATCH"));
        let text = AdmissionRequest::read(b"hello").unwrap_err().to_string();
        assert!(text.contains("no AdmissionReview"), "{text}");
    }
}
