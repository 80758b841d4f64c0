//! Answers requests: negotiates the media type, authorizes, and calls the verb.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;

use crate::api::discovery;
use crate::api::event_group;
use crate::api::http::accept::{Accepted, View, negotiate};
use crate::api::http::duration;
use crate::api::http::route::{Route, Target, route};
use crate::api::openapi;
use crate::api::protobuf;
use crate::api::request::{Request, Response};
use crate::api::request_context::{Outcome, RequestContext, not_allowed};
use crate::api::request_log;
use crate::api::verbs::{connect, create, delete, get, list, patch, review, scale, update, watch};
use crate::api::written_view;
use crate::auth::impersonation;
use crate::auth::rbac;
use crate::state::cluster::Cluster;
use crate::types::kind::Kind;
use crate::types::selector::only_name;
use crate::types::status_error::StatusError;

/// Answers a request.
pub(crate) fn handle(cluster: &mut Cluster, request: &Request) -> Response {
    request_log::log_request(cluster, request);
    cluster.warned.clear();
    let mut answer = match negotiated(cluster, request) {
        Ok(answer) => answer,
        Err(error) => Response::error(&error),
    };
    // The log has refused requests too.
    if let Response::Json { warnings, .. } = &mut answer {
        warnings.append(&mut cluster.warned);
    }
    request_log::log_response(cluster, &answer);
    answer
}

/// Answers a request in the media type that its client accepts.
fn negotiated(cluster: &mut Cluster, request: &Request) -> Outcome {
    check_timeout(request)?;
    // This document has media types of its own.
    if request.path == openapi::v2::PATH {
        return route_request(cluster, request);
    }
    let Some(Accepted { yaml, .. }) = negotiate(&request.accept) else {
        return Err(not_acceptable());
    };
    let written = request.content_type.split(';').next().unwrap_or_default().trim();
    let answer = if written == protobuf::MEDIA_TYPE && !request.body.is_empty() {
        let object = protobuf::decode(&request.body).map_err(StatusError::bad_request)?;
        let body = Bytes::from(object.to_string());
        let content_type = "application/json".to_owned();
        route_request(cluster, &Request { content_type, body, ..request.clone() })
    } else {
        route_request(cluster, request)
    }?;
    match answer {
        Response::Json { code, body, mut warnings } if !yaml => {
            warnings.extend(deprecation(&request.path));
            Ok(Response::Json { code, body, warnings })
        }
        Response::Json { code, body, .. } => {
            let value: Value = serde_json::from_slice(&body).unwrap_or_default();
            let text = serde_yaml_ng::to_string(&value).unwrap_or_default();
            let kind = "application/yaml".to_owned();
            Ok(Response::Of { code, kind, body: Bytes::from(text) })
        }
        answer => Ok(answer),
    }
}

/// Checks the parameter `timeout`. Every request is answered within any.
fn check_timeout(request: &Request) -> Result<(), StatusError> {
    let timeout = request.query.get("timeout");
    if timeout.is_empty() || request.query.is("watch") {
        return Ok(());
    }
    duration::check(timeout).map_err(|why| {
        StatusError::bad_request(format!("invalid timeout specified in the request URL - {why}"))
    })
}

fn route_request(cluster: &mut Cluster, request: &Request) -> Outcome {
    let user = impersonation::effective_user(cluster, request)?;
    let target = match route(&request.path) {
        Route::Resource(target) => target,
        other => {
            rbac::authorize_path(cluster, &user, &request.method, request.path.as_str())?;
            return Ok(discovery::discover(cluster, &other, request));
        }
    };
    let verb = verb(request, &target);
    rbac::authorize(cluster, &user, verb, &authorized(request, &target))?;
    let kind = cluster.catalog.get(&target.group, &target.version, &target.resource).cloned();
    let is_there = kind.as_ref().is_some_and(|kind| is_in_scope(kind, &target, verb));
    let Some(kind) = kind.filter(|_| is_there) else {
        return if cluster.catalog.resources(&target.group, &target.version).is_some()
            && crate::state::catalog::Catalog::is_builtin_group(&target.group)
        {
            Err(StatusError::no_resource())
        } else {
            Ok(Response::page_not_found())
        };
    };
    dispatch(cluster, &RequestContext::new(&target, kind, &user, request), verb)
}

fn dispatch(cluster: &mut Cluster, context: &RequestContext<'_>, verb: &str) -> Outcome {
    let target = context.target;
    let sub = target.subresource.as_str();
    if context.accepted().is_none() {
        return Err(not_acceptable());
    }
    let name = &context.kind.name;
    match (context.view(), verb) {
        (View::Metadata(_), "list") => {
            return Err(wrong_view("PartialObjectMetadata", "a list", &format!("{name}List")));
        }
        (View::MetadataList(_), verb) if verb != "list" => {
            return Err(wrong_view("PartialObjectMetadataList", "not a list", name));
        }
        _ => {}
    }
    if !sub.is_empty() && !context.kind.subresources.contains(sub) {
        return Err(if context.kind.custom.is_some() {
            StatusError::not_found(context.named(&target.name))
        } else {
            StatusError::no_resource()
        });
    }
    if !sub.is_empty() && !context.kind.allows(sub, verb) {
        return Err(if context.kind.custom.is_some() {
            StatusError::not_supported(context.named(""), verb)
        } else {
            not_allowed()
        });
    }
    let answer = if event_group::is(&context.kind) {
        event_group::as_core_event(cluster, context, verb, perform)
    } else {
        perform(cluster, context, verb)
    };
    let writes = matches!(verb, "create" | "update" | "patch" | "delete");
    if writes { Ok(written_view::shown(cluster, context, answer?)) } else { answer }
}

/// 406: the client accepts no form that the server has.
fn not_acceptable() -> StatusError {
    let known = "application/json, application/yaml";
    let message = format!("only the following media types are accepted: {known}");
    StatusError::not_acceptable(message)
}

/// 406: the client accepts only a view that the requested object does not have.
fn wrong_view(view: &str, is: &str, type_: &str) -> StatusError {
    let message = format!("you requested {view}, but the requested object is {is} (*core.{type_})");
    StatusError::not_acceptable(message)
}

/// Handles an authorized request.
fn perform(cluster: &mut Cluster, context: &RequestContext<'_>, verb: &str) -> Outcome {
    let target = context.target;
    let sub = target.subresource.as_str();
    let single = !target.name.is_empty();
    let across = context.kind.namespaced && target.namespace.is_empty();
    match (sub, verb) {
        ("", verb) if across && !matches!(verb, "list" | "watch") => return Err(not_allowed()),
        // A review or an eviction is created and not stored.
        ("", "create") if !context.kind.verbs.contains("list") => {
            return review::review(cluster, context);
        }
        ("", _) if !context.kind.verbs.contains(verb) => return Err(not_allowed()),
        ("scale", "get") => return scale::get_scale(cluster, context),
        ("scale", "update" | "patch") => return scale::write_scale(cluster, context),
        ("" | "status" | "finalize" | "ephemeralcontainers" | "resize" | "approval", _) => {}
        _ => return connect::connect(cluster, context),
    }
    match verb {
        "get" => get::get(cluster, context),
        "list" => list::list(cluster, context),
        "watch" => watch::begin_watch(cluster, context),
        "create" if !single => create::create(cluster, context),
        "update" if single => update::update(cluster, context),
        "patch" if single => patch::patch(cluster, context),
        "delete" => delete::delete(cluster, context),
        "deletecollection" => delete::delete_collection(cluster, context),
        _ => Err(not_allowed()),
    }
}

/// The verb of a request; `None` if its method has none.
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

/// The target to authorize: a list of one name counts as that object.
fn authorized<'t>(request: &Request, target: &'t Target) -> Cow<'t, Target> {
    let reads = request.method == "GET" && target.name.is_empty();
    let name = only_name(request.query.get("fieldSelector"));
    let Some(name) = name.filter(|_| reads) else { return Cow::Borrowed(target) };
    if matches!(name, "." | "..") || name.contains(['/', '%']) {
        return Cow::Borrowed(target);
    }
    Cow::Owned(Target { name: name.to_owned(), ..target.clone() })
}

/// Whether objects of this kind are reached by this path: with a namespace, or without one.
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

/// The warning about a deprecated kind.
fn deprecation(path: &str) -> Option<String> {
    // Most paths name other kinds and need no second parse.
    if !path.contains("endpoints") && !path.contains("componentstatuses") {
        return None;
    }
    let Route::Resource(target) = route(path) else { return None };
    let warning = match (target.group.as_str(), target.resource.as_str()) {
        ("", "endpoints") => {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
        }
        ("", "componentstatuses") => "v1 ComponentStatus is deprecated in v1.19+",
        _ => return None,
    };
    Some(warning.to_owned())
}
