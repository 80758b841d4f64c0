//! Reviews of identity and access.

use serde_json::{Map, Value, json};

use crate::api::request::Response;
use crate::api::request_context::{Outcome, RequestContext};
use crate::api::verbs::write;
use crate::auth::rbac;
use crate::auth::rbac::Attributes;
use crate::auth::token;
use crate::auth::user::User;
use crate::state::cluster::Cluster;
use crate::types::status_error::{FieldError, Named, StatusError};

/// Answers reviews of tokens, users and access.
pub(crate) fn review(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let decoded = write::decode(context, crate::api::request_body::read(context)?)?;
    cluster.warned.extend(decoded.warnings);
    let mut object = decoded.object;
    if context.kind.namespaced {
        write::check_namespace(context, &mut object)?;
    }
    let mut object = write::track(cluster, context, None, object);
    let spec = object["spec"].clone();
    check(context, &object)?;
    object["status"] = match context.kind.name.as_str() {
        "SelfSubjectAccessReview" => access(cluster, &context.user.clone(), &spec),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            let groups = spec["groups"].as_array().into_iter().flatten();
            let groups = groups.filter_map(Value::as_str).map(str::to_owned).collect();
            let name = spec["user"].as_str().unwrap_or_default();
            access(cluster, &User::new(name, groups), &spec)
        }
        "SelfSubjectRulesReview" => {
            let namespace = spec["namespace"].as_str().unwrap_or_default();
            if namespace.is_empty() {
                return Err(StatusError::bad_request("no namespace on request"));
            }
            let (objects, paths) = rbac::rules(cluster, context.user, namespace);
            json!({"resourceRules": objects, "nonResourceRules": paths, "incomplete": false})
        }
        "TokenReview" => token::review_token(cluster, &spec)?,
        "SelfSubjectReview" => {
            object["metadata"]["creationTimestamp"] = cluster.time().into();
            let mut user = Map::new();
            user.insert("username".to_owned(), context.user.name.as_str().into());
            if !context.user.uid.is_empty() {
                user.insert("uid".to_owned(), context.user.uid.as_str().into());
            }
            if !context.user.extra.is_empty() {
                user.insert("extra".to_owned(), json!(context.user.extra));
            }
            if !context.user.groups.is_empty() {
                user.insert("groups".to_owned(), context.user.groups.clone().into());
            }
            json!({ "userInfo": user })
        }
        _ => return Err(StatusError::no_resource()),
    };
    Ok(Response::bytes(201, object.text().clone()))
}

/// Decides an access review.
fn access(cluster: &Cluster, user: &User, spec: &Value) -> Value {
    let of = |attributes: &'static str| {
        move |name: &str| spec[attributes][name].as_str().unwrap_or_default()
    };
    let reason = if spec["nonResourceAttributes"].is_object() {
        let text = of("nonResourceAttributes");
        rbac::granted_path(cluster, user, text("verb"), text("path"))
    } else if spec["resourceAttributes"].is_object() {
        let text = of("resourceAttributes");
        let wanted = Attributes {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        };
        rbac::granted(cluster, user, &wanted)
    } else {
        None
    };
    let mut status = json!({ "allowed": reason.is_some() });
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        status["reason"] = reason.into();
    }
    status
}

/// The errors in an access review.
fn check(context: &RequestContext<'_>, object: &Value) -> Result<(), StatusError> {
    let (kind, spec) = (context.kind.name.as_str(), &object["spec"]);
    let local = kind == "LocalSubjectAccessReview";
    let named = kind == "SubjectAccessReview" || local;
    if !named && kind != "SelfSubjectAccessReview" {
        return Ok(());
    }
    let (paths, objects) = (&spec["nonResourceAttributes"], &spec["resourceAttributes"]);
    let in_go = |value: &Value| {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        json!({"Path": text("path"), "Verb": text("verb")})
    };
    let mut errors = Vec::new();
    if paths.is_object() && objects.is_object() {
        let why = "cannot be specified in combination with resourceAttributes";
        errors.push(FieldError::invalid("spec.nonResourceAttributes", in_go(paths), why));
    } else if !paths.is_object() && !objects.is_object() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::invalid("spec.resourceAttributes", Value::Null, why));
    }
    let nobody = spec["user"].as_str().unwrap_or_default().is_empty()
        && spec["groups"].as_array().is_none_or(Vec::is_empty);
    if named && nobody {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", "", why));
    }
    if local {
        let requested = objects["namespace"].as_str().unwrap_or_default();
        if objects.is_object() && requested != context.target.namespace {
            let why = "must match metadata.namespace";
            errors.push(FieldError::invalid("spec.resourceAttributes.namespace", requested, why));
        }
        if paths.is_object() {
            let why = "disallowed on this kind of request";
            errors.push(FieldError::invalid("spec.nonResourceAttributes", in_go(paths), why));
        }
    }
    let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
    metadata.remove("managedFields");
    if local {
        metadata.remove("namespace");
    }
    if !metadata.is_empty() {
        let why = if local { "must be empty except for namespace" } else { "must be empty" };
        errors.push(FieldError::invalid("metadata", object["metadata"].clone(), why));
    }
    if errors.is_empty() {
        return Ok(());
    }
    // The server names no kind here.
    let named = Named { group: &context.kind.group, what: "", name: "" };
    Err(StatusError::invalid(named, &errors))
}
