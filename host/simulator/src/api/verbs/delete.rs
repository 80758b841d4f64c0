//! The verbs `delete` and `deletecollection`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::attributes::Operation;
use crate::admission::webhooks;
use crate::api::http::route::Target;
use crate::api::request::Response;
use crate::api::request_body::parse;
use crate::api::request_context::{Outcome, RequestContext, present};
use crate::api::verbs::list;
use crate::api::verbs::list::selector;
use crate::api::verbs::list_options::{check_list, number};
use crate::api::verbs::write;
use crate::api::verbs::write_hooks;
use crate::apply::managed_object::ManagedObject;
use crate::mutation::{Mutation, is_active};
use crate::state::cluster::Cluster;
use crate::types::kinds;
use crate::types::object::{finalizers, generation, is_terminating, meta, set_finalizers};
use crate::types::status_error::{FieldError, Named, StatusError};

/// The finalizer of an object until its dependents are orphaned.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer of an object until its dependents are deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The warning for a delete of a Job without a propagation policy.
const CHILDREN_STAY: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// The options of a delete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    uid: Option<String>,
    version: Option<String>,
    policy: Option<String>,
    orphan: Option<bool>,
    grace: Option<i64>,
    dry_run: bool,
}

/// Whether a member has the required type.
type Shape = fn(&Value) -> bool;

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(Value::is_string))
}

impl Options {
    /// The options of the body, or, if there is none, of the query.
    fn read(context: &RequestContext<'_>) -> Result<Self, StatusError> {
        Self::checked(if context.request.body.is_empty() {
            Self::of_query(context)?
        } else {
            Self::of_body(&parse(&context.request.body).map_err(StatusError::bad_request)?)?
        })
    }

    /// Checks options, given with their `dryRun` values.
    fn checked((options, dry_run): (Self, Vec<String>)) -> Result<Self, StatusError> {
        let mut errors = Vec::new();
        let policy = options.policy.as_deref();
        if let Some(policy) = policy
            && options.orphan.is_some()
        {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", policy, why));
        }
        if let Some(policy) = policy
            && !matches!(policy, "Background" | "Foreground" | "Orphan")
        {
            let known = ["Foreground", "Background", "Orphan", "nil"].map(str::to_owned);
            errors.push(FieldError::unsupported("propagationPolicy", policy, &known));
        }
        if dry_run.iter().any(|one| one != "All") {
            errors.push(FieldError::unsupported("dryRun", dry_run, &["All".to_owned()]));
        }
        if errors.is_empty() {
            return Ok(options);
        }
        let named = Named { group: "meta.k8s.io", what: "DeleteOptions", name: "" };
        Err(StatusError::invalid(named, &errors))
    }

    /// The options of the query, with their `dryRun` values.
    fn of_query(context: &RequestContext<'_>) -> Result<(Self, Vec<String>), StatusError> {
        let query = context.query;
        let parameter = |name: &str| query.has(name).then(|| query.get(name).to_owned());
        let dry_run: Vec<String> = parameter("dryRun").into_iter().collect();
        let options = Self {
            // Also where a list takes the version for its own.
            uid: parameter("uid").filter(|uid| !uid.is_empty()),
            version: parameter("resourceVersion").filter(|version| !version.is_empty()),
            policy: parameter("propagationPolicy"),
            orphan: parameter("orphanDependents").map(|_| query.is("orphanDependents")),
            grace: number(query, "gracePeriodSeconds")?,
            dry_run: !dry_run.is_empty(),
        };
        Ok((options, dry_run))
    }

    fn of_body(body: &Value) -> Result<(Self, Vec<String>), StatusError> {
        if !body.is_object() {
            return Err(StatusError::bad_request(
                "couldn't get version/kind; json parse error: json: it is no object",
            ));
        }
        let kind = body["kind"].as_str().unwrap_or_default();
        if !matches!(kind, "" | "DeleteOptions") {
            return Err(StatusError::bad_request(format!(
                "no kind {kind:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
                body["apiVersion"].as_str().unwrap_or_default()
            )));
        }
        let shapes: [(&str, Shape); 5] = [
            ("preconditions", Value::is_object),
            ("propagationPolicy", Value::is_string),
            ("orphanDependents", Value::is_boolean),
            ("gracePeriodSeconds", Value::is_i64),
            ("dryRun", is_texts),
        ];
        for (name, fits) in shapes {
            if !body[name].is_null() && !fits(&body[name]) {
                return Err(StatusError::bad_request(format!(
                    "json: DeleteOptions.{name} has not the type that it must have"
                )));
            }
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let conditions = &body["preconditions"];
        let dry_run: Vec<String> =
            body["dryRun"].as_array().into_iter().flatten().filter_map(text).collect();
        let options = Self {
            uid: text(&conditions["uid"]),
            version: text(&conditions["resourceVersion"]),
            policy: text(&body["propagationPolicy"]),
            orphan: body["orphanDependents"].as_bool(),
            grace: body["gracePeriodSeconds"].as_i64(),
            dry_run: !dry_run.is_empty(),
        };
        Ok((options, dry_run))
    }
}

/// `delete`.
pub(crate) fn delete(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let options = Options::read(context)?;
    warn(cluster, context, &options);
    let (answer, gone) = delete_by(cluster, context, &options)?;
    // With `orphanDependents: false` the code tells that the delete is not complete.
    let code = if !gone && options.orphan == Some(false) { 202 } else { 200 };
    Ok(Response::bytes(code, answer.text().clone()))
}

/// Warns if the options name no policy and the Pods of Jobs stay by default.
fn warn(cluster: &mut Cluster, context: &RequestContext<'_>, options: &Options) {
    let silent = options.policy.is_none() && options.orphan.is_none();
    if silent && context.kind.is("batch", "Job") {
        cluster.warned.push(CHILDREN_STAY.to_owned());
    }
}

/// Deletes an object by the options. Returns the body of the response.
pub(crate) fn delete_object(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    options: &Value,
) -> Result<ManagedObject, StatusError> {
    let options = Options::checked(Options::of_body(options)?)?;
    Ok(delete_by(cluster, context, &options)?.0)
}

/// The same, with whether the object is gone.
fn delete_by(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    options: &Options,
) -> Result<(ManagedObject, bool), StatusError> {
    let Some(object) = present(cluster, context) else {
        return Err(StatusError::not_found(context.named(&context.target.name)));
    };
    let last = delete_one(cluster, context, Arc::unwrap_or_clone(object), options)?;
    let (object, gone) = last;
    if !gone || kinds::returns_deleted(&context.kind) {
        return Ok((object, gone));
    }
    let mut details = json!({"name": context.target.name, "kind": context.kind.plural, "uid": meta(&object, "uid")});
    if !context.kind.group.is_empty() {
        details["group"] = context.kind.group.as_str().into();
    }
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    Ok((ManagedObject::new(status), true))
}

/// Deletes an object, or begins to. Returns it as it is now, and whether it is deleted.
fn delete_one(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    mut object: ManagedObject,
    options: &Options,
) -> Result<(ManagedObject, bool), StatusError> {
    check_conditions(context, &object, options)?;
    let mut none = ManagedObject::new(Value::Null);
    webhooks::mutate(cluster, context, Operation::Delete, &mut none, Some(&object))?;
    webhooks::validate(cluster, context, Operation::Delete, None, Some(&object))?;
    if let Some(answer) = write_hooks::delete_specially(cluster, context, &object, options.dry_run)?
    {
        return Ok(answer);
    }
    let before = object.clone();
    // Pods get a grace period, unless they run on no node.
    let grace = kinds::grace(&context.kind, &object, options.grace);
    if is_terminating(&object) && grace.is_some() {
        let pending = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if grace.is_some_and(|grace| grace >= pending) && pending > 0 {
            return Ok((object, false));
        }
    }
    let kept = collected(context, &object, options);
    set_finalizers(&mut object, &kept);
    if kept.is_empty() && !finalizers(&before).is_empty() && options.version.is_some() {
        // The server asks for the version of the change that it has not made.
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: , ResourceVersion in object meta: {}",
            context.storage_key(),
            meta(&before, "resourceVersion")
        );
        return Err(StatusError::conflict(context.named(&context.target.name), &why));
    }
    let held = !kept.is_empty() && !is_active(Mutation::FinalizersAreIgnored);
    let graceful = grace.is_some_and(|grace| grace > 0);
    if held || graceful {
        let seconds = grace.unwrap_or(0);
        if is_terminating(&object) {
            object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
        } else {
            begin_deletion(cluster, &mut object, seconds);
        }
        // An object that is stored in another version is written even if nothing changes.
        let raw = cluster.is_raw(context.kind_key(), context.key());
        if !options.dry_run && (*object != *before || raw) {
            object = Arc::unwrap_or_clone(write::put_in_storage_version(
                cluster,
                context,
                context.key(),
                object,
            ));
            write_hooks::after_write(cluster, context, &object);
        }
        return Ok((object, false));
    }
    if options.dry_run && !finalizers(&before).is_empty() {
        // Nothing is written or deleted: the server responds with an empty object.
        return Ok((ManagedObject::clone(&crate::api::verbs::write::blank(context)), false));
    }
    // The changes that the delete would have made are dropped with the object.
    let mut last = before;
    let pending = last["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    if grace.is_some() && (!is_terminating(&last) || pending > 0) {
        if is_terminating(&last) {
            shorten(&mut last, pending);
        } else {
            begin_deletion(cluster, &mut last, 0);
        }
        if !options.dry_run {
            // A watch gets both events.
            last = Arc::unwrap_or_clone(cluster.put(context.kind_key(), context.key(), last));
        }
    }
    if !options.dry_run {
        cluster.remove(context.kind_key(), context.key(), &mut last);
        write_hooks::after_removal(cluster, context, &last);
    }
    Ok((last, true))
}

fn check_conditions(
    context: &RequestContext<'_>,
    object: &Value,
    options: &Options,
) -> Result<(), StatusError> {
    if is_active(Mutation::DeleteIgnoresPreconditions) {
        return Ok(());
    }
    let present = meta(object, "uid");
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != present) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({present}). The object might have been deleted and then recreated"
        );
        return Err(StatusError::conflict(context.named_kind(&context.target.name), &why));
    }
    let present = meta(object, "resourceVersion");
    if let Some(version) = options.version.as_deref().filter(|version| *version != present) {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({present}). The object might have been modified"
        );
        return Err(StatusError::conflict(context.named_kind(&context.target.name), &why));
    }
    Ok(())
}

/// Sets the deletionTimestamp of an object.
fn begin_deletion(cluster: &Cluster, object: &mut Value, seconds: i64) {
    if generation(object) > 0 && !is_active(Mutation::DeletionGrowsNoGeneration) {
        object["metadata"]["generation"] = (generation(object) + 1).into();
    }
    object["metadata"]["deletionTimestamp"] = after(cluster, seconds).into();
    object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
}

fn after(cluster: &Cluster, seconds: i64) -> String {
    let time = cluster.now().checked_add(jiff::SignedDuration::from_secs(seconds));
    time.unwrap_or(jiff::Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `deletecollection`.
pub(crate) fn delete_collection(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    // The server checks the list options first.
    selector(context, check_list)?;
    let options = Options::read(context)?;
    warn(cluster, context, &options);
    let page = list::page(cluster, context)?;
    for stored in &page.items {
        let found = stored.object();
        let target = Target {
            namespace: meta(&found, "namespace").to_owned(),
            name: meta(&found, "name").to_owned(),
            ..context.target.clone()
        };
        let one = RequestContext::new(&target, context.kind.clone(), context.user, context.request);
        // A list at an older version may have objects that do not exist now.
        if let Some(object) = cluster.object(one.kind_key(), one.key()) {
            delete_one(cluster, &one, Arc::unwrap_or_clone(object), &options)?;
        }
    }
    // The response has the objects as they were before the delete.
    Ok(list::listed(cluster, context, &page))
}

/// Ends the grace period of an object that has `pending` seconds left.
fn shorten(object: &mut Value, pending: i64) {
    let ends = meta(object, "deletionTimestamp").parse::<jiff::Timestamp>().ok();
    let now = ends.and_then(|ends| ends.checked_sub(jiff::SignedDuration::from_secs(pending)).ok());
    if let Some(now) = now {
        object["metadata"]["deletionTimestamp"] =
            now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
    }
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
}

/// The finalizers of an object under this propagation policy.
fn collected(context: &RequestContext<'_>, object: &Value, options: &Options) -> Vec<String> {
    let present = finalizers(object);
    let policy = options.policy.as_deref();
    let has = |name: &str| present.iter().any(|one| one == name);
    let orphan = match (options.orphan, policy) {
        (Some(orphan), _) => orphan,
        (None, Some(policy)) => policy == "Orphan",
        (None, None) if has(ORPHAN) => true,
        (None, None) if has(FOREGROUND) => false,
        (None, None) => kinds::orphans_by_default(&context.kind),
    };
    let foreground = match (options.orphan, policy) {
        (Some(_), _) => false,
        (None, Some(policy)) => policy == "Foreground",
        (None, None) => has(FOREGROUND),
    };
    let mut kept: Vec<String> =
        present.iter().filter(|one| *one != ORPHAN && *one != FOREGROUND).cloned().collect();
    if !kinds::is_collected(&context.kind) {
        return kept;
    }
    if orphan {
        kept.push(ORPHAN.to_owned());
    }
    if foreground {
        kept.push(FOREGROUND.to_owned());
    }
    kept
}
