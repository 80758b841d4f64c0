//! The steps that all writes share: decoding, tracking of field managers, storing.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::admission::attributes::Operation as Admitted;
use crate::admission::webhooks;
use crate::admission::{namespace_lifecycle, pvc_resize, service_account};
use crate::api::request::Response;
use crate::api::request_context::RequestContext;
use crate::api::strict_decoding;
use crate::api::verbs::ip_allocator;
use crate::api::verbs::write_hooks;
use crate::apply::ledger::Ledger;
use crate::apply::managed_fields;
use crate::apply::managed_fields::{Managers, Operation};
use crate::apply::managed_object::ManagedObject;
use crate::apply::shape;
use crate::apply::updater::{Write, reconcile, update};
use crate::auth::escalation;
use crate::auth::rbac;
use crate::mutation::{Mutation, is_active};
use crate::state::cluster::Cluster;
use crate::types::crd::conversion;
use crate::types::kind::Kind;
use crate::types::kinds;
use crate::types::kinds::certificate;
use crate::types::object::{
    copy_meta, finalizers, generation, is_terminating, meta, unset, with_metadata,
};
use crate::types::object_key::Key;
use crate::types::status_error::{FieldError, StatusError};

/// The message for a resourceVersion that is not the present one.
pub(crate) const OBJECT_MODIFIED_MESSAGE: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The object of a request's body, with its unknown fields.
pub(crate) struct Decoded {
    pub(crate) object: Value,
    pub(crate) warnings: Vec<String>,
    /// Whether it is a Job that would share the labels of its template.
    pub(crate) shares_labels: bool,
}

/// The result of a write.
pub(crate) struct Written {
    pub(crate) code: u16,
    /// The object as it is stored.
    pub(crate) object: Arc<ManagedObject>,
}

impl Written {
    /// The object as a client reads it.
    pub(crate) fn answer(self) -> Response {
        Response::Json { code: self.code, body: self.object.text().clone(), warnings: Vec::new() }
    }
}

/// Decodes, converts and prunes the object of a create or update.
pub(crate) fn decode(context: &RequestContext<'_>, value: Value) -> Result<Decoded, StatusError> {
    let kind = &context.kind;
    let shares_labels = shares_labels(kind, &value);
    let mut object = with_metadata(value).ok_or_else(|| {
        StatusError::bad_request("the object provided is unrecognized (must be of type object)")
    })?;
    let member = |object: &Value, name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let (version, name) = (member(&object, "apiVersion"), member(&object, "kind"));
    if kind.custom.is_some() && (name.is_empty() || version.is_empty()) {
        let missing = if name.is_empty() { "Kind" } else { "apiVersion" };
        return Err(StatusError::bad_request(format!(
            "Object '{missing}' is missing in '{}'",
            String::from_utf8_lossy(&context.request.body)
        )));
    }
    if !version.is_empty() && version != kind.api_version() {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    if !name.is_empty() && name != kind.name {
        return Err(StatusError::bad_request(if kind.custom.is_some() {
            format!(
                "the object provided is unrecognized (must be of type {}): {name} in version {version:?}",
                kind.name
            )
        } else {
            format!("{name} in version {:?} cannot be handled as a {}", kind.version, kind.name)
        }));
    }
    object["kind"] = kind.name.as_str().into();
    object["apiVersion"] = kind.api_version().into();
    let unknown = kinds::decode(kind, &mut object)?;
    let warnings = strict_decoding::check_object(context, &unknown)?;
    Ok(Decoded { object, warnings, shares_labels })
}

/// The namespace of the body must be that of the path; absent, it is.
pub(crate) fn check_namespace(
    context: &RequestContext<'_>,
    object: &mut Value,
) -> Result<(), StatusError> {
    let named = meta(object, "namespace");
    if !named.is_empty() && named != context.namespace() {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if context.namespace().is_empty() {
        unset(object, "namespace");
    } else {
        object["metadata"]["namespace"] = context.namespace().into();
    }
    Ok(())
}

/// Tracks the managers of `new`, which replaces `live` by anything but an apply.
pub(crate) fn track(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    live: Option<&ManagedObject>,
    mut new: Value,
) -> ManagedObject {
    let metadata = new["metadata"].as_object_mut();
    let own = metadata.and_then(|metadata| metadata.remove("managedFields"));
    let ledger = owners(cluster, context, live, &new, own.as_ref());
    ManagedObject::of(new, ledger.unwrap_or_default())
}

/// The same for an object whose own managedFields are `own`; `None` if it is not tracked.
fn owners(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    live: Option<&ManagedObject>,
    new: &Value,
    own: Option<&Value>,
) -> Option<Ledger> {
    let empty = live.is_none().then(|| blank(context));
    let old = live.or(empty.as_deref())?;
    let theirs = || old.ledger().managers();
    let sub = &context.target.subresource;
    let managers = if sub.is_empty() && !is_active(Mutation::ManagedFieldsCanBeForged) {
        if managed_fields::is_reset(own) {
            Managers::new()
        } else {
            match managed_fields::decode(own) {
                Ok(own) if !own.is_empty() => own,
                _ => theirs(),
            }
        }
    } else {
        theirs()
    };
    // What was never tracked is not tracked from an update on.
    if managers.is_empty() && live.is_some() {
        return None;
    }
    // The server cannot track an object that does not match its schema and drops its managers. It
    // may store the object: an invalid status is dropped after this.
    if !shape::problems(context.kind.node(), new, true).is_empty() {
        return None;
    }
    let version = context.version();
    let managers = managed_fields::of_group(managers, &version);
    let ignored = kinds::ignored(&context.kind, sub);
    let now = cluster.time();
    let write = Write { node: context.kind.node(), version: &version, ignored, now: &now };
    let mut managers = managers;
    if context.kind.custom.as_ref().is_some_and(|custom| custom.changed) {
        reconcile(write.node, &mut managers);
    }
    let manager =
        managed_fields::Manager::new(&context.manager(), Operation::Update, &version, sub);
    Some(Ledger::of(update(&write, old, new, managers, &manager)))
}

/// Stores a new object. Returns the stored object.
pub(crate) fn store_new(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    mut object: ManagedObject,
    shares_labels: bool,
) -> Result<Arc<ManagedObject>, StatusError> {
    namespace_lifecycle::check_namespace_active(cluster, context, &object)?;
    service_account::check_service_account(cluster, context, &object)?;
    escalation::check_escalation(cluster, context, &object, None)?;
    let metadata = &mut object["metadata"];
    metadata["uid"] = cluster.uid().into();
    metadata["creationTimestamp"] = cluster.time().into();
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        unset(&mut object, name);
    }
    let name = meta(&object, "name").to_owned();
    kinds::prepare_create(&context.kind, &mut object, shares_labels);
    certificate::note_user(&context.kind, &mut object, &context.user.members());
    ip_allocator::allocate(cluster, context, &mut object, None)?;
    let errors = kinds::validate_create(&context.kind, &object);
    if !errors.is_empty() {
        return Err(StatusError::invalid(context.named_kind(&name), &errors));
    }
    // An apply or an update that makes an object is a create too.
    if context.request.method != "POST" {
        rbac::authorize(cluster, context.user, "create", context.target)?;
    }
    webhooks::validate(cluster, context, Admitted::Create, Some(&object), None)?;
    let key = (context.namespace().to_owned(), name.clone());
    if let Some(present) = cluster.object(context.kind_key(), &key)
        && !is_active(Mutation::CreateReplaces)
    {
        let mut error = StatusError::already_exists(context.named(&name));
        if !meta(&object, "generateName").is_empty() {
            error = error.not_generated();
        }
        if is_terminating(&present) {
            error = error.prefixed("object is being deleted: ");
        }
        return Err(error);
    }
    let raw =
        kinds::settle(&context.kind, &mut object)? | kinds::complete(&context.kind, &mut object);
    if context.query.dry_run() && !is_active(Mutation::DryRunWrites) {
        return Ok(Arc::new(object));
    }
    let object = put_in_storage_version(cluster, context, &key, object);
    // The server stores a new claim otherwise than a changed one.
    let claim = context.kind.is("", "PersistentVolumeClaim");
    cluster.remember_raw(context.kind_key(), &key, raw || claim);
    write_hooks::after_write(cluster, context, &object);
    Ok(object)
}

/// Stores an object of a request, in the version that its kind is stored in.
pub(crate) fn put_in_storage_version(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    key: &Key,
    mut object: ManagedObject,
) -> Arc<ManagedObject> {
    if !conversion::has_versions(&context.kind) {
        return cluster.put(context.kind_key(), key, object);
    }
    conversion::to_store(&context.kind, &mut object);
    let mut stored = cluster.put(context.kind_key(), key, object);
    if stored["apiVersion"] != context.kind.api_version().as_str() {
        let converted: &mut ManagedObject = Arc::make_mut(&mut stored);
        conversion::convert(&context.kind, converted);
    }
    stored
}

/// Stores a change of `old`. Returns the stored object.
pub(crate) fn store_change(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    old: &ManagedObject,
    mut new: ManagedObject,
) -> Result<Arc<ManagedObject>, StatusError> {
    escalation::check_escalation(cluster, context, &new, Some(old))?;
    let name = context.target.name.clone();
    let sent = meta(&new, "resourceVersion").to_owned();
    let present = meta(old, "resourceVersion").to_owned();
    if sent.is_empty() || sent == "0" {
        if !kinds::updates_unconditionally(&context.kind) {
            let error = FieldError::invalid(
                "metadata.resourceVersion",
                0,
                "must be specified for an update",
            );
            return Err(StatusError::invalid(context.named(&name), &[error]));
        }
    } else if sent != present && !is_active(Mutation::VersionIsNotChecked) {
        return Err(StatusError::conflict(context.named(&name), OBJECT_MODIFIED_MESSAGE));
    }
    new["metadata"]["resourceVersion"] = present.into();
    check_namespace(context, &mut new)?;
    copy_meta(old, &mut new, "generation");
    kinds::prepare_update(&context.kind, &context.target.subresource, &mut new, old);
    kinds::note_phase(&context.kind, &mut new, old, &cluster.time());
    if meta(&new, "uid").is_empty() || is_active(Mutation::UidIsNotChecked) {
        copy_meta(old, &mut new, "uid");
    }
    copy_meta(old, &mut new, "creationTimestamp");
    if is_terminating(old) {
        copy_meta(old, &mut new, "deletionTimestamp");
        if new["metadata"].get("deletionGracePeriodSeconds").is_none() {
            copy_meta(old, &mut new, "deletionGracePeriodSeconds");
        }
    }
    unset(&mut new, "selfLink");
    ip_allocator::allocate(cluster, context, &mut new, Some(old))?;
    let mut errors = kinds::validate_update(&context.kind, &context.target.subresource, &new, old);
    if context.is_written_otherwise() {
        errors.extend(crate::api::event_group::changes(&new, old));
    }
    if !errors.is_empty() {
        return Err(StatusError::invalid(context.named_kind(&name), &errors));
    }
    pvc_resize::check_resize(cluster, context, &new, old)?;
    // Admission has seen the scale itself.
    if context.target.subresource != "scale" {
        webhooks::validate(cluster, context, Admitted::Update, Some(&new), Some(old))?;
    }
    let unsettled = is_terminating(old).then(|| new.clone());
    let raw = kinds::settle(&context.kind, &mut new)?;
    let same = keep_times(&mut new, old);
    let gone = finalizers(&new).is_empty()
        && is_terminating(old)
        && old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && kinds::may_go(&context.kind, &new);
    if context.query.dry_run() {
        return Ok(Arc::new(unsettled.filter(|_| gone).unwrap_or(new)));
    }
    if gone {
        let mut last = new.clone();
        cluster.remove(context.kind_key(), context.key(), &mut last);
        write_hooks::after_removal(cluster, context, &last);
        // The response shows the object as it was made, since it was not stored.
        return Ok(Arc::new(unsettled.unwrap_or(new)));
    }
    let raw_before = cluster.is_raw(context.kind_key(), context.key());
    if same && !raw && !raw_before && !is_active(Mutation::NoOpBumpsVersion) {
        return Ok(Arc::new(new));
    }
    if generation(&new) == 0 {
        copy_meta(old, &mut new, "generation");
    }
    let new = put_in_storage_version(cluster, context, context.key(), new);
    cluster.remember_raw(context.kind_key(), context.key(), raw);
    write_hooks::after_write(cluster, context, &new);
    Ok(new)
}

/// Whether a request makes a Job that shares one Go map of labels with its template: the Job has
/// none, and the template has some or an empty map. The decoded object no longer shows this.
pub(crate) fn shares_labels(kind: &Kind, object: &Value) -> bool {
    let own = object["metadata"]["labels"].as_object();
    let of_template = &object["spec"]["template"]["metadata"]["labels"];
    kind.is("batch", "Job") && own.is_none_or(Map::is_empty) && of_template.is_object()
}

/// Whether a change affects only the times of managers; the server ignores such a change.
fn keep_times(new: &mut ManagedObject, old: &ManagedObject) -> bool {
    let same = **new == **old && new.ledger().is_like(old.ledger());
    if same {
        new.set_ledger(old.ledger().clone());
    }
    same
}

/// The empty object of a kind, as Go prints it.
pub(crate) fn blank(context: &RequestContext<'_>) -> Arc<ManagedObject> {
    let kind = &context.kind;
    let make = || {
        let mut object = Map::new();
        object.insert("kind".to_owned(), kind.name.as_str().into());
        object.insert("apiVersion".to_owned(), kind.api_version().into());
        if kind.custom.is_none() {
            object.insert("metadata".to_owned(), json!({}));
        }
        let mut object = Value::Object(object);
        kinds::fill_structs(kind, &mut object);
        Arc::new(ManagedObject::new(object))
    };
    kind.blank.get_or_init(make).clone()
}
