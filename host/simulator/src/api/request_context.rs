//! The context of a request: the kind, the target, the user and the options.

use std::sync::Arc;

use serde_json::Value;

use crate::api::http::accept::{Accepted, View, negotiate, negotiate_without_tables};
use crate::api::http::query::Query;
use crate::api::http::route::Target;
use crate::api::request::{Request, Response};
use crate::apply::managed_object::ManagedObject;
use crate::auth::user::User;
use crate::state::cluster::Cluster;
use crate::types::crd::conversion;
use crate::types::kind::Kind;
use crate::types::object_key::{Key, KindKey};
use crate::types::status_error::{FieldError, Named, StatusError};

/// A request for objects of one kind.
pub(crate) struct RequestContext<'a> {
    pub(crate) target: &'a Target,
    pub(crate) kind: Arc<Kind>,
    pub(crate) query: &'a Query,
    pub(crate) user: &'a User,
    pub(crate) request: &'a Request,
    pub(crate) key: Key,
    /// The version of the request, if it is not the storage version.
    written_as: Option<&'static str>,
}

impl<'a> RequestContext<'a> {
    /// The context of a request for a target.
    pub(crate) fn new(
        target: &'a Target,
        kind: Arc<Kind>,
        user: &'a User,
        request: &'a Request,
    ) -> Self {
        let namespace = if kind.namespaced { target.namespace.clone() } else { String::new() };
        let key = (namespace, target.name.clone());
        Self { target, kind, query: &request.query, user, request, key, written_as: None }
    }

    /// The same for an object in another version than the storage version.
    pub(crate) fn written_as(self, version: &'static str) -> Self {
        Self { written_as: Some(version), ..self }
    }

    /// Whether the object is in another version than the storage version.
    pub(crate) fn is_written_otherwise(&self) -> bool {
        self.written_as.is_some()
    }

    /// The version of the fields in the request.
    pub(crate) fn version(&self) -> String {
        self.written_as.map_or_else(|| self.kind.api_version(), str::to_owned)
    }

    /// Where objects of the kind are stored.
    pub(crate) fn kind_key(&self) -> &KindKey {
        &self.kind.key
    }

    /// The namespace of the objects; `None` for cluster-scoped kinds.
    pub(crate) fn namespace(&self) -> &str {
        &self.key.0
    }

    /// The storage key of the object.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// The object as messages about the resource name it.
    pub(crate) fn named<'n>(&'n self, name: &'n str) -> Named<'n> {
        Named { group: &self.kind.group, what: &self.kind.plural, name }
    }

    /// The object as messages about its fields name it.
    pub(crate) fn named_kind<'n>(&'n self, name: &'n str) -> Named<'n> {
        Named { group: &self.kind.group, what: &self.kind.name, name }
    }

    /// The storage key of the object, as messages have it.
    pub(crate) fn storage_key(&self) -> String {
        let key = crate::types::kinds::storage_key(&self.kind, self.namespace(), &self.target.name);
        // A request that writes nothing does not know the root of the store.
        if self.query.dry_run() { key } else { format!("/registry{key}") }
    }

    /// The form in which the client wants objects.
    pub(crate) fn view(&self) -> View {
        self.accepted().map_or(View::Plain, |accepted| accepted.view)
    }

    /// The first form that the client accepts and the kind has; `None` if there is none.
    pub(crate) fn accepted(&self) -> Option<Accepted> {
        // Kinds that are not listed have no tables: reviews.
        if self.kind.verbs.contains("list") || !self.target.subresource.is_empty() {
            return negotiate(&self.request.accept);
        }
        negotiate_without_tables(&self.request.accept)
    }

    /// The field manager of a write.
    pub(crate) fn manager(&self) -> String {
        match self.query.get("fieldManager") {
            "" => {
                self.request.agent.split('/').next().unwrap_or_default().chars().take(128).collect()
            }
            name => name.to_owned(),
        }
    }
}

/// The result of a verb.
pub(crate) type Outcome = Result<Response, StatusError>;

/// The requested object, in the requested version.
pub(crate) fn present(
    cluster: &Cluster,
    context: &RequestContext<'_>,
) -> Option<Arc<ManagedObject>> {
    let mut object = cluster.object(context.kind_key(), context.key())?;
    if conversion::has_versions(&context.kind)
        && object["apiVersion"] != context.kind.api_version().as_str()
    {
        let converted: &mut ManagedObject = Arc::make_mut(&mut object);
        conversion::convert(&context.kind, converted);
    }
    Some(object)
}

/// Checks the options that all writes have.
pub(crate) fn check_options(query: &Query, kind: &str) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    let dry_run = query.get("dryRun");
    if query.has("dryRun") && dry_run != "All" {
        let known = ["All".to_owned()];
        errors.push(FieldError::unsupported("dryRun", Value::from(vec![dry_run]), &known));
    }
    let validation = query.get("fieldValidation");
    if !matches!(validation, "" | "Ignore" | "Warn" | "Strict") {
        let known: Vec<String> = ["Ignore", "Strict", "Warn"].map(str::to_owned).into();
        errors.push(FieldError::unsupported("fieldValidation", validation, &known));
    }
    if query.get("fieldManager").len() > 128 {
        errors.push(FieldError::too_long("fieldManager", 128));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid(Named { group: "meta.k8s.io", what: kind, name: "" }, &errors))
}

/// The error for a method that the resource does not have.
pub(crate) fn not_allowed() -> StatusError {
    StatusError::new(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
    .details(serde_json::json!({}))
}
