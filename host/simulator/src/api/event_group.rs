//! Events of the group `events.k8s.io`: the same objects as those of the core group, with other
//! names for some members.

use bytes::Bytes;
use serde_json::Value;

use crate::api::http::route::Target;
use crate::api::request::{Request, Response};
use crate::api::request_context::{Outcome, RequestContext};
use crate::state::cluster::Cluster;
use crate::types::kind::Kind;
use crate::types::kinds::event_names;
use crate::types::kinds::event_names::{API_VERSION, GROUP};
use crate::types::status_error::{FieldError, Named, StatusError};

/// Whether a kind is that of these Events.
pub(crate) fn is(kind: &Kind) -> bool {
    kind.is(GROUP, "Event")
}

/// Answers an authorized request about these Events as one about those of the core group, which the
/// state stores.
pub(crate) fn as_core_event(
    cluster: &mut Cluster,
    context: &RequestContext<'_>,
    verb: &str,
    perform: fn(&mut Cluster, &RequestContext<'_>, &str) -> Outcome,
) -> Outcome {
    let target = Target { group: String::new(), ..context.target.clone() };
    let Some(kind) = cluster.catalog.get("", "v1", "events").cloned() else {
        return Ok(Response::page_not_found());
    };
    let request = to_core(context.request);
    if verb == "create" {
        complete(context, &request)?;
    }
    let context =
        RequestContext::new(&target, kind, context.user, &request).written_as(API_VERSION);
    match perform(cluster, &context, verb).map_err(of_group)? {
        Response::Json { code, body, warnings } => {
            Ok(Response::Json { code, body: from_core(&body), warnings })
        }
        Response::Watch(feed) => Ok(Response::Watch(feed.in_form(from_core))),
        other => Ok(other),
    }
}

/// The same request for the core group.
fn to_core(request: &Request) -> Request {
    let mut request = request.clone();
    request.path = request.path.replacen("/apis/events.k8s.io/v1", "/api/v1", 1);
    request.query.edit("fieldSelector", |text| {
        let parts = text.split(',').map(|part| {
            let end = part.find(['.', '=', '!']).unwrap_or(part.len());
            event_names::core(&part[..end]).to_owned() + &part[end..]
        });
        parts.collect::<Vec<_>>().join(",")
    });
    // A response that is no JSON stays as it is.
    let Ok(mut body) = crate::api::request_body::parse(&request.body) else { return request };
    match &mut body {
        Value::Object(object) => {
            *object = event_names::renamed(object, event_names::core);
            if object.get("apiVersion").is_some_and(|version| version == API_VERSION) {
                object.insert("apiVersion".to_owned(), "v1".into());
            }
        }
        Value::Array(operations) => {
            for operation in operations {
                for member in ["path", "from"] {
                    if let Some(Value::String(path)) = operation.get_mut(member) {
                        *path = pointer_to_core(path);
                    }
                }
            }
        }
        _ => return request,
    }
    request.body = Bytes::from(body.to_string());
    request
}

fn pointer_to_core(pointer: &str) -> String {
    let Some(rest) = pointer.strip_prefix('/') else { return pointer.to_owned() };
    let (first, rest) = rest.split_once('/').map_or((rest, None), |(one, rest)| (one, Some(rest)));
    let first = event_names::core(first);
    rest.map_or_else(|| format!("/{first}"), |rest| format!("/{first}/{rest}"))
}

/// Renames the members of a document of the core group: an Event, a list, a table, a line of a
/// watch, or a Status.
fn from_core(text: &Bytes) -> Bytes {
    let Ok(mut document) = serde_json::from_slice::<Value>(text) else { return text.clone() };
    convert(&mut document);
    // A line of a watch ends with a newline.
    let end = if text.ends_with(b"\n") { "\n" } else { "" };
    Bytes::from(document.to_string() + end)
}

fn convert(document: &mut Value) {
    match document["kind"].as_str() {
        Some("Event") => convert_event(document),
        Some("EventList") => {
            document["apiVersion"] = API_VERSION.into();
            for item in document["items"].as_array_mut().into_iter().flatten() {
                convert_event(item);
            }
        }
        Some("Table") => {
            for row in document["rows"].as_array_mut().into_iter().flatten() {
                convert(&mut row["object"]);
            }
        }
        Some("Status") if document["details"]["kind"] == "events" => {
            document["details"]["group"] = GROUP.into();
        }
        // A line of a watch.
        None if document["type"].is_string() => convert(&mut document["object"]),
        _ => {}
    }
}

/// Items of a list have no kind and apiVersion.
fn convert_event(event: &mut Value) {
    let Some(event) = event.as_object_mut() else { return };
    *event = event_names::renamed(event, event_names::other);
    if event.contains_key("apiVersion") {
        event.insert("apiVersion".to_owned(), API_VERSION.into());
    }
}

/// An error about an Event names its group, unless it is about the Event's content, which is
/// validated as the stored object.
fn of_group(error: StatusError) -> StatusError {
    if error.code == 422 { error } else { error.in_group("events", GROUP) }
}

/// The errors for members of an Event that are immutable in this group.
pub(crate) fn changes(new: &Value, old: &Value) -> Vec<FieldError> {
    let fixed = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    let differs = fixed.into_iter().filter(|name| new.get(*name) != old.get(*name));
    let wrong = |name: &str| {
        let value = new.get(name).cloned().unwrap_or_default();
        FieldError::invalid(event_names::other(name), value, "field is immutable")
    };
    differs.map(wrong).collect()
}

/// The members that a new Event of this group must have, in addition to those of the core group.
fn complete(context: &RequestContext<'_>, request: &Request) -> Result<(), StatusError> {
    let Ok(event) = crate::api::request_body::parse(&request.body) else { return Ok(()) };
    let empty = |name: &str| event[name].as_str().unwrap_or_default().is_empty();
    let mut errors = Vec::new();
    for (name, shown) in [
        ("eventTime", "eventTime"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
        ("action", "action"),
        ("reason", "reason"),
    ] {
        if empty(name) {
            errors.push(FieldError::required(shown, ""));
        }
    }
    let kind = event["type"].as_str().unwrap_or_default();
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", kind, "has invalid value"));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let name = event["metadata"]["name"].as_str().unwrap_or_default();
    Err(StatusError::invalid(Named { group: "", what: &context.kind.name, name }, &errors))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn event_members_are_renamed_both_ways_without_loss() {
        let core = json!({
            "kind": "Event", "apiVersion": "v1", "metadata": {"name": "a"}, "message": "m",
            "involvedObject": {"kind": "Pod"}, "reportingComponent": "c", "count": 1, "reason": "r"
        });
        let mut event = core.clone();
        convert(&mut event);
        assert_eq!(event["note"], "m");
        assert_eq!(event["regarding"]["kind"], "Pod");
        assert_eq!(event["apiVersion"], API_VERSION);
        let mut back = event_names::renamed(event.as_object().unwrap(), event_names::core);
        back.insert("apiVersion".to_owned(), "v1".into());
        assert_eq!(Value::Object(back), core);
        assert_eq!(pointer_to_core("/note"), "/message");
        assert_eq!(pointer_to_core("/regarding/name"), "/involvedObject/name");
        assert_eq!(pointer_to_core("/metadata/labels/a"), "/metadata/labels/a");
    }
}
