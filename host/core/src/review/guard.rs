//! The changes that a policy may make to the object of a request.
//!
//! A policy changes an object after the API server has authorized the user, so the API server does
//! not ask again whether anybody may make the change. The rules here hold for every policy; the
//! rights of its account bound it further.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::exclusion::MIRROR_ANNOTATION;
use super::input::ReviewInput;
use super::invalid_verdict::InvalidVerdict;
use crate::consent::USER_ANNOTATIONS;
use crate::host_names;
use crate::object::is_hidden_annotation;
use crate::review_scope::is_never_changed;

/// The deepest object that a policy returns, in levels, unless it was deeper before.
pub const DEPTH_MAX: usize = 64;

/// The largest object that a policy returns, in bytes.
pub const BYTES_MAX: usize = 3 << 20;

/// The beginning of the annotations by which the API server writes a token into a Secret.
const TOKEN_ANNOTATIONS: &str = "kubernetes.io/service-account.";

const IDENTITY: &str = "it says which object it is, or the API server keeps it";
const HOST_NAME: &str = "the name belongs to the host";
const HIDDEN: &str = "the host hides such annotations, which hold a copy of the object";
const NO_TEXT: &str = "it is no map of texts";
const STATUS: &str = "a policy changes it only in a request for the subresource `status`";
const ONLY_STATUS: &str = "a request for the subresource `status` changes the status only";
const FINALIZERS: &str = "the Module does not allow finalizers (spec.allowFinalizers)";
const SECRET: &str = "the policy sees digests of the values, so it cannot set any";
const TOKEN: &str = "the API server could write a token into the Secret";
const CONSENT: &str = "only a user gives this consent";

/// The request whose object a policy changes, and what the Module allows.
#[derive(Clone, Debug)]
pub struct ChangeContext {
    group: String,
    /// With the subresource.
    resource: String,
    is_status: bool,
    is_secret: bool,
    allow_finalizers: bool,
}

impl ChangeContext {
    /// The context of a request. `allow_finalizers` is `spec.allowFinalizers` of the Module.
    pub fn of(input: &ReviewInput<'_>, allow_finalizers: bool) -> Self {
        Self {
            group: input.resource.group.to_owned(),
            resource: input.resource_path(),
            is_status: input.subresource == "status",
            is_secret: input.is_of_secrets(),
            allow_finalizers,
        }
    }

    fn is(&self, group: &str, resource: &str) -> bool {
        self.group == group && self.resource == resource
    }
}

/// Checks the change from the shown object to the one of a verdict, and returns the object whose
/// JSON patch from the shown one fits the real object.
///
/// A missing map of annotations becomes an empty one: the policy does not see all of them.
///
/// # Errors
/// The first change that no policy makes.
pub fn check_change(
    before: &Value,
    after: Value,
    context: &ChangeContext,
) -> Result<Value, InvalidVerdict> {
    if !after.is_object() || !before.is_object() {
        return Err(InvalidVerdict::NoObject);
    }
    let after = without_added_empties(before, with_annotations(before, after));
    let after = with_kept_times(before, after);
    if *before == after {
        return Ok(after);
    }
    check_size(before, &after)?;
    if is_never_changed(&context.group, &context.resource) {
        let resource = match &*context.group {
            "" => context.resource.clone(),
            group => format!("{}.{group}", context.resource),
        };
        return Err(InvalidVerdict::NeverChanged { resource });
    }
    for member in ["apiVersion", "kind"] {
        same(before, &after, &[member], IDENTITY)?;
    }
    if context.is_status {
        check_only_status(before, &after)?;
    } else {
        same(before, &after, &["status"], STATUS)?;
    }
    let is_secret = context.is_secret || is_secret(before);
    check_metadata(&before["metadata"], &after["metadata"], is_secret, context)?;
    check_consent(before, &after)?;
    let is_namespace = ["namespaces", "namespaces/finalize"].iter().any(|one| context.is("", one));
    if is_namespace && !context.allow_finalizers {
        same(before, &after, &["spec", "finalizers"], FINALIZERS)?;
    }
    if is_secret {
        for member in ["data", "stringData"] {
            same(before, &after, &[member], SECRET)?;
        }
        same(before, &after, &["type"], TOKEN)?;
    }
    Ok(after)
}

/// Gives the changed object the map of annotations that it may have lost by being empty.
fn with_annotations(before: &Value, mut after: Value) -> Value {
    if before["metadata"]["annotations"].is_object()
        && let Some(metadata) = after.get_mut("metadata").and_then(Value::as_object_mut)
        && metadata.get("annotations").is_none_or(Value::is_null)
    {
        metadata.insert("annotations".to_owned(), Value::Object(Map::new()));
    }
    after
}

/// Removes empty members of the metadata that the shown object lacks: a patch with one would empty
/// a member that the policy does not see, such as `managedFields`.
fn without_added_empties(before: &Value, mut after: Value) -> Value {
    if let Some(metadata) = after.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, member| {
            !is_empty(member) || before["metadata"].get(name.as_str()).is_some()
        });
    }
    after
}

/// Gives times that the API server keeps the text that they had: some SDKs write the same moment in
/// another form, such as with milliseconds.
fn with_kept_times(before: &Value, mut after: Value) -> Value {
    for pointer in ["/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/status"] {
        if let (Some(before), Some(after)) = (before.pointer(pointer), after.pointer_mut(pointer)) {
            keep_times(before, after);
        }
    }
    after
}

fn keep_times(before: &Value, after: &mut Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, after) in after {
                if let Some(before) = before.get(name) {
                    keep_times(before, after);
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            before.iter().zip(after).for_each(|(before, after)| keep_times(before, after));
        }
        (Value::String(before), Value::String(after)) => {
            let moment = |text: &str| text.parse::<Timestamp>().ok();
            if before != after && moment(before).is_some_and(|one| moment(after) == Some(one)) {
                after.clone_from(before);
            }
        }
        _ => {}
    }
}

fn check_size(before: &Value, after: &Value) -> Result<(), InvalidVerdict> {
    if is_deeper(after, DEPTH_MAX) && !is_deeper(before, DEPTH_MAX) {
        return Err(InvalidVerdict::TooDeep { limit: DEPTH_MAX });
    }
    let bytes = after.to_string().len();
    if bytes > BYTES_MAX {
        return Err(InvalidVerdict::TooLarge { bytes, limit: BYTES_MAX });
    }
    Ok(())
}

/// Whether a value has more levels of objects and lists. The parser bounds the recursion.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let is_below = |value: &Value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Object(members) => levels == 0 || members.values().any(is_below),
        Value::Array(items) => levels == 0 || items.iter().any(is_below),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The value of a field; `None` if it is null or an empty map or list.
fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    let found = path.iter().try_fold(value, |value, member| value.get(member))?;
    (!is_empty(found)).then_some(found)
}

/// Whether the API server takes a value for an absent one.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn same(
    before: &Value,
    after: &Value,
    path: &[&str],
    why: &'static str,
) -> Result<(), InvalidVerdict> {
    if at(before, path) == at(after, path) {
        return Ok(());
    }
    Err(InvalidVerdict::Field { field: path.join("."), why })
}

/// The names of the members of two objects, without duplicates.
fn names<'v>(before: &'v Value, after: &'v Value) -> impl Iterator<Item = &'v str> {
    let of = |value: &'v Value| value.as_object().into_iter().flat_map(Map::keys);
    let added = of(after).filter(|name| before.get(name.as_str()).is_none());
    of(before).chain(added).map(String::as_str)
}

fn check_only_status(before: &Value, after: &Value) -> Result<(), InvalidVerdict> {
    let mut others = names(before, after).filter(|name| *name != "status");
    match others.find(|name| at(before, &[name]) != at(after, &[name])) {
        None => Ok(()),
        Some(name) => {
            let field = host_names::shortened(name);
            Err(InvalidVerdict::Field { field, why: ONLY_STATUS })
        }
    }
}

fn check_metadata(
    old: &Value,
    new: &Value,
    is_secret: bool,
    context: &ChangeContext,
) -> Result<(), InvalidVerdict> {
    if old != new && !new.is_object() {
        return Err(InvalidVerdict::Field { field: "metadata".to_owned(), why: IDENTITY });
    }
    for name in names(old, new) {
        match name {
            "labels" | "annotations" => check_texts(name, &old[name], &new[name], is_secret)?,
            "finalizers" => check_finalizers(old, new, context)?,
            _ if at(old, &[name]) == at(new, &[name]) => {}
            _ => {
                let field = format!("metadata.{}", host_names::shortened(name));
                return Err(InvalidVerdict::Field { field, why: IDENTITY });
            }
        }
    }
    Ok(())
}

fn check_finalizers(
    old: &Value,
    new: &Value,
    context: &ChangeContext,
) -> Result<(), InvalidVerdict> {
    let refused = |why| Err(InvalidVerdict::Field { field: "metadata.finalizers".to_owned(), why });
    let (old, new) = (at(old, &["finalizers"]), at(new, &["finalizers"]));
    if old == new {
        return Ok(());
    }
    if !context.allow_finalizers {
        return refused(FINALIZERS);
    }
    let of_host = |list: Option<&Value>| -> Vec<String> {
        let items = list.and_then(Value::as_array).into_iter().flatten();
        let names = items.filter_map(Value::as_str).map(str::to_owned);
        names.filter(|name| host_names::is_reserved(name)).collect()
    };
    if of_host(old) == of_host(new) { Ok(()) } else { refused(HOST_NAME) }
}

/// Checks the labels or the annotations.
fn check_texts(
    member: &str,
    old: &Value,
    new: &Value,
    is_secret: bool,
) -> Result<(), InvalidVerdict> {
    let refused = |name: Option<&str>, why| {
        let name = name.map(|name| format!("[\"{}\"]", host_names::shortened(name)));
        let field = format!("metadata.{member}{}", name.unwrap_or_default());
        Err(InvalidVerdict::Field { field, why })
    };
    if old == new {
        return Ok(());
    }
    if !matches!(new, Value::Null | Value::Object(_)) {
        return refused(None, NO_TEXT);
    }
    for name in names(old, new) {
        let (was, is) = (old.get(name), new.get(name));
        if was == is {
            continue;
        }
        let text = is.map_or(Some(""), Value::as_str);
        match text {
            None => return refused(Some(name), NO_TEXT),
            // A name in another script may look like one of the host.
            _ if host_names::is_reserved(name) || !name.is_ascii() => {
                return refused(Some(name), HOST_NAME);
            }
            _ if member == "labels" => {}
            _ if name == MIRROR_ANNOTATION => return refused(Some(name), IDENTITY),
            _ if is_secret && name.starts_with(TOKEN_ANNOTATIONS) => {
                return refused(Some(name), TOKEN);
            }
            Some(text) if is_hidden_annotation(name, text, is_secret) => {
                return refused(Some(name), HIDDEN);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn is_secret(object: &Value) -> bool {
    object["kind"] == "Secret" && object["apiVersion"].as_str().is_none_or(|v| !v.contains('/'))
}

/// Checks the annotations by which a user decides, also in templates, from which a controller
/// copies them to objects.
fn check_consent(before: &Value, after: &Value) -> Result<(), InvalidVerdict> {
    let consents = |object| {
        let mut found = Vec::new();
        find_consents(object, &mut String::new(), &mut found);
        found.sort();
        found
    };
    let (old, new) = (consents(before), consents(after));
    // Both are in order, so the first place where they differ has one that only one of them has. A
    // user may write any number of them.
    let place = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let Some((field, _)) = [old.get(place), new.get(place)].into_iter().flatten().min() else {
        return Ok(());
    };
    let field = host_names::shortened(field);
    Err(InvalidVerdict::Field { field, why: CONSENT })
}

/// Finds the annotations by which a user decides, with their values. An item of a list has the path
/// of the list, since the policy may add others before it.
fn find_consents(value: &Value, path: &mut String, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let length = path.len();
                if length > 0 {
                    path.push('.');
                }
                path.push_str(name);
                if USER_ANNOTATIONS.iter().any(|one| name.eq_ignore_ascii_case(one)) {
                    found.push((path.clone(), member.to_string()));
                } else {
                    find_consents(member, path, found);
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for item in items {
                find_consents(item, path, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
