//! What the API server does with a request.

mod collection;
mod connect;
mod create;
mod delete;
mod event_group;
mod growth;
mod list_options;
mod owners;
mod patch;
mod read;
mod review;
mod scale;
mod update;
mod watch;
mod write;

pub(crate) use write::{only_status, parse};

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::catalog::Kind;
use crate::cluster::Cluster;
use crate::crd::reading;
use crate::http::accept::{Accepted, View, negotiate};
use crate::http::query::Query;
use crate::http::route::{Route, Target, route};
use crate::protobuf;
use crate::request::{Answer, Request};
use crate::selector::only_name;
use crate::status_error::{FieldError, Named, StatusError};
use crate::store::{Key, KindKey};
use crate::tracked::Tracked;
use crate::user::User;

/// A request for objects of one kind.
pub(crate) struct Ask<'a> {
    pub(crate) target: &'a Target,
    pub(crate) kind: Arc<Kind>,
    pub(crate) query: &'a Query,
    pub(crate) user: &'a User,
    pub(crate) request: &'a Request,
    key: Key,
    /// In which version, if not in the one that is kept.
    written_as: Option<&'static str>,
}

impl<'a> Ask<'a> {
    /// A request for what the target says.
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

    /// The same of an object that is written in another version than the one that is kept.
    fn written_as(self, version: &'static str) -> Self {
        Self { written_as: Some(version), ..self }
    }

    /// Whether it is written in another version than the one that is kept.
    pub(crate) fn is_written_otherwise(&self) -> bool {
        self.written_as.is_some()
    }

    /// Which version the fields are in that the request names.
    pub(crate) fn version(&self) -> String {
        self.written_as.map_or_else(|| self.kind.api_version(), str::to_owned)
    }

    /// Where objects of the kind are stored.
    pub(crate) fn kind_key(&self) -> &KindKey {
        &self.kind.key
    }

    /// The namespace of objects: none for kinds of the cluster.
    pub(crate) fn namespace(&self) -> &str {
        &self.key.0
    }

    /// Where the object is stored.
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

    /// Where the server keeps the object, as its messages say.
    pub(crate) fn storage_key(&self) -> String {
        let key = crate::kinds::storage_key(&self.kind, self.namespace(), &self.target.name);
        // What writes nothing does not know the root of the store.
        if self.query.dry_run() { key } else { format!("/registry{key}") }
    }

    /// In which form objects are asked for.
    pub(crate) fn view(&self) -> View {
        negotiate(&self.request.accept).map_or(View::Plain, |accepted| accepted.view)
    }

    /// Who writes.
    pub(crate) fn manager(&self) -> String {
        match self.query.get("fieldManager") {
            "" => {
                self.request.agent.split('/').next().unwrap_or_default().chars().take(128).collect()
            }
            name => name.to_owned(),
        }
    }
}

/// What a verb does.
pub(crate) type Outcome = Result<Answer, StatusError>;

impl Cluster {
    /// The object that is asked for, in the version that is asked for.
    fn present(&self, ask: &Ask<'_>) -> Option<Arc<Tracked>> {
        let mut object = self.object(ask.kind_key(), ask.key())?;
        if reading::has_versions(&ask.kind)
            && object["apiVersion"] != ask.kind.api_version().as_str()
        {
            let converted: &mut Tracked = Arc::make_mut(&mut object);
            reading::convert(&ask.kind, converted);
        }
        Some(object)
    }

    /// Answers a request.
    pub(crate) fn answer(&mut self, request: &Request) -> Answer {
        self.note_request(request);
        self.warned.clear();
        let mut answer = match self.readable(request) {
            Ok(answer) => answer,
            Err(error) => Answer::error(&error),
        };
        // Also of what was refused.
        if let Answer::Json { warnings, .. } = &mut answer {
            warnings.append(&mut self.warned);
        }
        self.note_answer(&answer);
        answer
    }

    /// Writes a request to the log, if one is kept.
    pub(crate) fn note_request(&mut self, request: &Request) {
        if self.keeps_log() {
            self.note(format!(
                "{} {} {:?} {} {}",
                request.method,
                request.path,
                request.query,
                request.acting.as_ref().map_or(&request.user.name, |acting| &acting.name),
                String::from_utf8_lossy(&request.body)
            ));
        }
    }

    /// Writes an answer to the log, if one is kept.
    pub(crate) fn note_answer(&mut self, answer: &Answer) {
        if self.keeps_log() {
            let line = match answer {
                Answer::Json { code, body, .. } | Answer::Of { code, body, .. } => {
                    format!("{code} {}", String::from_utf8_lossy(body))
                }
                Answer::Text { code, body } => format!("{code} {body}"),
                Answer::Watch(_) => "200 watch".to_owned(),
            };
            self.note(line);
        }
    }

    /// Answers a request in what its client reads, whatever it was written in.
    fn readable(&mut self, request: &Request) -> Outcome {
        // Old clients that validate by themselves ask for this in a form of its own.
        if request.path == "/openapi/v2" {
            return Ok(Answer::no_definitions());
        }
        let Some(Accepted { yaml, .. }) = negotiate(&request.accept) else {
            let known = "application/json, application/yaml";
            let message = format!("only the following media types are accepted: {known}");
            return Err(StatusError::new(406, "NotAcceptable", message));
        };
        let written = request.content_type.split(';').next().unwrap_or_default().trim();
        let answer = if written == protobuf::MEDIA_TYPE && !request.body.is_empty() {
            let object = protobuf::decode(&request.body).map_err(StatusError::bad_request)?;
            let body = Bytes::from(object.to_string());
            let content_type = "application/json".to_owned();
            self.try_answer(&Request { content_type, body, ..request.clone() })
        } else {
            self.try_answer(request)
        }?;
        match answer {
            Answer::Json { code, body, mut warnings } if !yaml => {
                warnings.extend(deprecation(&request.path));
                Ok(Answer::Json { code, body, warnings })
            }
            Answer::Json { code, body, .. } => {
                let value: Value = serde_json::from_slice(&body).unwrap_or_default();
                let text = serde_yaml_ng::to_string(&value).unwrap_or_default();
                let kind = "application/yaml".to_owned();
                Ok(Answer::Of { code, kind, body: Bytes::from(text) })
            }
            answer => Ok(answer),
        }
    }

    fn try_answer(&mut self, request: &Request) -> Outcome {
        let user = self.acting_user(request)?;
        let target = match route(&request.path) {
            Route::Resource(target) => target,
            other => {
                self.authorize_path(&user, &request.method, request.path.as_str())?;
                return Ok(self.discover(&other, request));
            }
        };
        let verb = verb(request, &target);
        self.authorize(&user, verb, &authorized(request, &target))?;
        let kind = self.catalog.get(&target.group, &target.version, &target.resource).cloned();
        let is_there = kind.as_ref().is_some_and(|kind| is_in_scope(kind, &target, verb));
        let Some(kind) = kind.filter(|_| is_there) else {
            return if self.catalog.resources(&target.group, &target.version).is_some()
                && crate::catalog::Catalog::is_builtin_group(&target.group)
            {
                Err(StatusError::no_resource())
            } else {
                Ok(Answer::nowhere())
            };
        };
        self.dispatch(&Ask::new(&target, kind, &user, request), verb)
    }

    fn dispatch(&mut self, ask: &Ask<'_>, verb: &str) -> Outcome {
        let target = ask.target;
        let sub = target.subresource.as_str();
        if !sub.is_empty() && !ask.kind.subresources.contains(sub) {
            return Err(if ask.kind.custom.is_some() {
                StatusError::not_found(ask.named(&target.name))
            } else {
                StatusError::no_resource()
            });
        }
        if !sub.is_empty() && !ask.kind.allows(sub, verb) {
            return Err(if ask.kind.custom.is_some() {
                StatusError::not_supported(ask.named(""), verb)
            } else {
                not_allowed()
            });
        }
        if event_group::is(&ask.kind) {
            return self.as_core_event(ask, verb);
        }
        self.perform(ask, verb)
    }

    /// Does what is allowed.
    fn perform(&mut self, ask: &Ask<'_>, verb: &str) -> Outcome {
        let target = ask.target;
        let sub = target.subresource.as_str();
        let single = !target.name.is_empty();
        let across = ask.kind.namespaced && target.namespace.is_empty();
        match (sub, verb) {
            ("", verb) if across && !matches!(verb, "list" | "watch") => return Err(not_allowed()),
            // A review or an eviction is made, not kept.
            ("", "create") if !ask.kind.verbs.contains("list") => return self.review(ask),
            ("", _) if !ask.kind.verbs.contains(verb) => return Err(not_allowed()),
            ("scale", "get") => return self.get_scale(ask),
            ("scale", "update" | "patch") => return self.write_scale(ask),
            ("" | "status" | "finalize" | "ephemeralcontainers" | "resize", _) => {}
            _ => return self.connect(ask),
        }
        match verb {
            "get" => self.get(ask),
            "list" => self.list(ask),
            "watch" => self.begin_watch(ask),
            "create" if !single => self.create(ask),
            "update" if single => self.update(ask),
            "patch" if single => self.patch(ask),
            "delete" => self.delete(ask),
            "deletecollection" => self.delete_collection(ask),
            _ => Err(not_allowed()),
        }
    }
}

/// What is done to what a request is about; nothing if its method is none of those.
fn verb(request: &Request, target: &Target) -> &'static str {
    let single = !target.name.is_empty();
    match (request.method.as_str(), single) {
        ("GET", true) => "get",
        ("GET", false) if request.query.is("watch") => "watch",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "",
    }
}

/// What has to be allowed: who reads those of one name reads one.
fn authorized<'t>(request: &Request, target: &'t Target) -> Cow<'t, Target> {
    let reads = request.method == "GET" && target.name.is_empty();
    let name = only_name(request.query.get("fieldSelector"));
    let Some(name) = name.filter(|_| reads) else { return Cow::Borrowed(target) };
    if matches!(name, "." | "..") || name.contains(['/', '%']) {
        return Cow::Borrowed(target);
    }
    Cow::Owned(Target { name: name.to_owned(), ..target.clone() })
}

/// Whether a path leads to objects of this kind at all.
fn is_in_scope(kind: &Kind, target: &Target, verb: &str) -> bool {
    let of_namespace = !target.namespace.is_empty();
    if !kind.namespaced {
        let own = kind.is("", "Namespace") && target.namespace == target.name;
        return !of_namespace || own;
    }
    let listed = target.name.is_empty() && kind.verbs.contains("list");
    let reads = kind.custom.is_none() || matches!(verb, "list" | "watch");
    of_namespace || (listed && reads)
}

/// What the server says to whoever uses an old kind.
fn deprecation(path: &str) -> Option<String> {
    // Most paths are of others, and need not be taken apart again.
    if !path.contains("endpoints") && !path.contains("componentstatuses") {
        return None;
    }
    let Route::Resource(target) = route(path) else { return None };
    let told = match (target.group.as_str(), target.resource.as_str()) {
        ("", "endpoints") => {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        }
        ("", "componentstatuses") => "v1 ComponentStatus is deprecated in v1.19+",
        _ => return None,
    };
    Some(told.to_owned())
}

fn not_allowed() -> StatusError {
    StatusError::new(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
    .details(serde_json::json!({}))
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
