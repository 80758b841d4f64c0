//! The verb `patch`.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::attributes::Operation as Admitted;
use crate::admission::webhooks;
use crate::api::request::Response;
use crate::api::request_body::{parse, parse_yaml};
use crate::api::request_context::{Outcome, RequestContext, check_options, present};
use crate::api::strict_decoding;
use crate::api::verbs::owner_references::once;
use crate::api::verbs::write;
use crate::api::verbs::write::{Decoded, Written, blank, shares_labels};
use crate::apply::ledger::Ledger;
use crate::apply::managed_fields;
use crate::apply::managed_fields::{Manager, Operation};
use crate::apply::managed_object::ManagedObject;
use crate::apply::updater::{Write, apply, reconcile};
use crate::apply::{field_manager_conflict, last_applied, shape};
use crate::mutation::{Mutation, is_active};
use crate::patch;
use crate::state::cluster::Cluster;
use crate::types::kinds;
use crate::types::object::{meta, unset, with_metadata};
use crate::types::status_error::{FieldError, Named, StatusError};

/// How a request changes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Apply,
    Patch(patch::Kind),
}

impl PatchType {
    /// The type of a request, if its options are valid.
    pub(crate) fn of(context: &RequestContext<'_>) -> Result<Self, StatusError> {
        let media_type = context.request.content_type.split(';').next().unwrap_or_default().trim();
        let applies =
            matches!(media_type, "application/apply-patch+yaml" | "application/apply-patch+cbor");
        check_options(context.query, "PatchOptions")?;
        let named = Named { group: "meta.k8s.io", what: "PatchOptions", name: "" };
        if applies && context.query.get("fieldManager").is_empty() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(StatusError::invalid(named, &[error]));
        }
        if !applies && context.query.has("force") {
            let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
            return Err(StatusError::invalid(named, &[error]));
        }
        Ok(match media_type {
            _ if applies => Self::Apply,
            "application/json-patch+json" => Self::Patch(patch::Kind::Json),
            "application/merge-patch+json" => Self::Patch(patch::Kind::Merge),
            "application/strategic-merge-patch+json" if context.kind.custom.is_none() => {
                Self::Patch(patch::Kind::Strategic)
            }
            _ => return Err(unsupported(context)),
        })
    }
}

/// `patch`.
pub(crate) fn patch(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let way = PatchType::of(context)?;
    let PatchType::Patch(kind) = way else { return apply_patch(cluster, context) };
    let Some(old) = present(cluster, context) else {
        return Err(StatusError::not_found(context.named(&context.target.name)));
    };
    let Decoded { mut object, warnings, .. } = patched(context, kind, &old)?;
    cluster.warned.extend(warnings);
    write::check_namespace(context, &mut object)?;
    check_name(context, &object)?;
    let mut object = write::track(cluster, context, Some(&old), object);
    webhooks::mutate(cluster, context, Admitted::Update, &mut object, Some(&old))?;
    cluster.warned.extend(once(&mut object, true));
    let object = write::store_change(cluster, context, &old, object)?;
    Ok(Written { code: 200, object }.answer())
}

/// Applies a patch to an object.
pub(crate) fn patched(
    context: &RequestContext<'_>,
    kind: patch::Kind,
    old: &ManagedObject,
) -> Result<Decoded, StatusError> {
    let patched = patch::apply(kind, context.kind.schema(), &old.whole(), &context.request.body)?;
    let text = if kind == patch::Kind::Strategic {
        shape::go(&parse(&context.request.body).unwrap_or_default())
    } else {
        patched.to_string()
    };
    redecode(context, kind, patched).map_err(|error| {
        if !error.is_shape() {
            return error;
        }
        let error = FieldError::invalid("patch", text, error.problem());
        StatusError::invalid(Named { group: "", what: "", name: "" }, &[error])
    })
}

/// Decodes a patched object.
fn redecode(
    context: &RequestContext<'_>,
    kind: patch::Kind,
    patched: Value,
) -> Result<Decoded, StatusError> {
    let text = patched.to_string();
    let mut object = with_metadata(patched).ok_or_else(|| {
        let error = FieldError::invalid("patch", text, "the object is no object");
        StatusError::invalid(Named { group: "", what: "", name: "" }, &[error])
    })?;
    let version = context.kind.api_version();
    let (sent_kind, of) = (object["kind"].clone(), object["apiVersion"].clone());
    if of != version.as_str() || sent_kind != context.kind.name.as_str() {
        let sent_kind = sent_kind.as_str().unwrap_or_default().to_owned();
        return Err(StatusError::bad_request(if of == version.as_str() {
            format!(
                "{sent_kind} in version {version:?} cannot be handled as a {}",
                context.kind.name
            )
        } else {
            format!(
                "the API version in the data ({}) does not match the expected API version ({version})",
                of.as_str().unwrap_or_default()
            )
        }));
    }
    let unknown = kinds::decode(&context.kind, &mut object)?;
    let warnings = strict_decoding::check_patch(context, kind, &unknown)?;
    Ok(Decoded { object, warnings, shares_labels: false })
}

pub(crate) fn check_name(context: &RequestContext<'_>, object: &Value) -> Result<(), StatusError> {
    let (own_name, name) = (meta(object, "name"), &context.target.name);
    if own_name.is_empty() {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if own_name != name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({own_name}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Server-side apply.
fn apply_patch(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let value = document(context)?;
    let old = present(cluster, context);
    let mut object = applied(cluster, context, &value, old.as_ref())?;
    cluster.warned.extend(strict_decoding::check_applied(context)?);
    write::check_namespace(context, &mut object)?;
    check_name(context, &object)?;
    if let Some(old) = old {
        if is_active(Mutation::ApplyOverAnotherUid) {
            crate::types::object::copy_meta(&old, &mut object, "uid");
        }
        webhooks::mutate(cluster, context, Admitted::Update, &mut object, Some(&old))?;
        let stored = write::store_change(cluster, context, &old, object)?;
        return Ok(Response::bytes(200, stored.text().clone()));
    }
    let uid = meta(&object, "uid");
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(StatusError::conflict(context.named(&context.target.name), &why));
    }
    webhooks::mutate(cluster, context, Admitted::Create, &mut object, None)?;
    let shares_labels = shares_labels(&context.kind, &value);
    let object = write::store_new(cluster, context, object, shares_labels)?;
    Ok(Written { code: 201, object }.answer())
}

/// Merges the document of an apply into an object. Returns it with its managers.
pub(crate) fn applied(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    value: &Value,
    old: Option<&Arc<ManagedObject>>,
) -> Result<ManagedObject, StatusError> {
    let member = |name: &str| value[name].as_str().unwrap_or_default();
    let version = context.kind.api_version();
    if member("apiVersion") != version || member("kind") != context.kind.name {
        let (group, of) =
            member("apiVersion").split_once('/').unwrap_or(("", member("apiVersion")));
        return Err(StatusError::bad_request(format!(
            "invalid object type: {group}/{of}, Kind={}",
            member("kind")
        )));
    }
    if value["metadata"].get("managedFields").is_some_and(|list| !list.is_null()) {
        return Err(StatusError::bad_request("metadata.managedFields must be nil"));
    }
    if old.is_none() && !context.target.subresource.is_empty() {
        return Err(StatusError::not_found(context.named(&context.target.name)));
    }
    let node = context.kind.node();
    let problems = shape::problems(node, value, false);
    if !problems.is_empty() {
        let (group, of) = version.split_once('/').unwrap_or(("", &version));
        return Err(StatusError::unforeseen(format!(
            "failed to create typed patch object ({}/{}; {group}/{of}, Kind={}): {}",
            meta(value, "namespace"),
            meta(value, "name"),
            context.kind.name,
            shape::describe(&problems)
        )));
    }
    let live = old.cloned().unwrap_or_else(|| blank(context));
    let (object, managers) = merge_patch(cluster, context, &live, value)?;
    let mut object = object.unwrap_or_else(|| Value::clone(&live));
    kinds::decode_applied(&context.kind, &mut object)
        .map_err(|error| not_converted(context, value, &error))?;
    // A custom resource may have a null there.
    unset(&mut object, "managedFields");
    Ok(ManagedObject::of(object, Ledger::of(managers)))
}

/// Applies to `live`. Returns the object, or `None` if nothing changes, and its managers.
fn merge_patch(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    live: &ManagedObject,
    value: &Value,
) -> Result<(Option<Value>, managed_fields::Managers), StatusError> {
    let sub = &context.target.subresource;
    let version = context.version();
    let ignored = kinds::ignored(&context.kind, sub);
    let now = cluster.time();
    let write = Write { node: context.kind.node(), version: &version, ignored, now: &now };
    let mut managers = managed_fields::of_group(live.ledger().managers(), &version);
    if context.kind.custom.as_ref().is_some_and(|custom| custom.changed) {
        reconcile(write.node, &mut managers);
    }
    let plain: &Value = live;
    if managers.is_empty() && live["metadata"]["uid"].is_string() {
        // Fields that existed before the first apply get an owner.
        let before = Manager::new("before-first-apply", Operation::Update, &version, sub);
        let empty = blank(context);
        managers = crate::apply::updater::update(&write, &empty, plain, managers, &before);
    }
    let manager = Manager::new(&context.manager(), Operation::Apply, &version, sub);
    let force = (context.query.is("force") && !is_active(Mutation::ForceIsIgnored))
        || is_active(Mutation::ForceIsAssumed);
    let kubectl = context.manager() == last_applied::KUBECTL;
    let held = kubectl.then(|| managers.clone());
    let mut applied = match (apply(&write, plain, value, managers, &manager, force), held) {
        // Fields of a client-side kubectl apply are no conflict.
        (Err(conflicts), Some(managers)) => {
            let rest = last_applied::not_noted(write.node, &version, plain, conflicts);
            if !rest.is_empty() {
                return Err(field_manager_conflict::error(&rest));
            }
            apply(&write, plain, value, managers, &manager, true)
        }
        (applied, _) => applied,
    }
    .map_err(|conflicts| field_manager_conflict::error(&conflicts))?;
    if kubectl {
        let mut object = applied.object.take().unwrap_or_else(|| plain.clone());
        last_applied::note(&mut object, value);
        applied.object = Some(object);
    }
    Ok((applied.object, applied.managers))
}

/// The document of an apply.
pub(crate) fn document(context: &RequestContext<'_>) -> Result<Value, StatusError> {
    parse_yaml(&context.request.body)
        .map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))
}

/// The error for an apply whose merged object Go cannot decode.
fn not_converted(context: &RequestContext<'_>, value: &Value, error: &StatusError) -> StatusError {
    let version = context.kind.api_version();
    let name = &context.kind.name;
    let (group, of) = version.split_once('/').unwrap_or(("", &version));
    StatusError::unforeseen(format!(
        "failed to convert new object ({}/{}; {group}/{of}, Kind={name}) to proper version: unable to convert unstructured object to {group}/{of}, Kind={name}: {}",
        meta(value, "namespace"),
        meta(value, "name"),
        error.problem(),
    ))
}

fn unsupported(context: &RequestContext<'_>) -> StatusError {
    let mut known = vec!["application/json-patch+json", "application/merge-patch+json"];
    if context.kind.custom.is_none() {
        known.push("application/strategic-merge-patch+json");
    }
    known.push("application/apply-patch+yaml");
    StatusError::new(
        415,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            known.join(", ")
        ),
    )
}
