//! The kinds that only administrators write in tables: certificates, flow control, priorities,
//! runtimes, devices and API services.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::table::age::{lasting, since};
use crate::api::table::parts::{at, is_going, items, text, text_or};

/// The cells of such a kind.
pub(crate) fn cells(kind: &str, object: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let name = text(object, "metadata/name");
    let age = since(at(object, "metadata/creationTimestamp"), now);
    let spec = &object["spec"];
    let or_none = |value: &Value| if value.is_null() { "<none>".into() } else { value.clone() };
    let cells = match kind {
        "FlowSchema" => {
            let mut conditions = items(object, "status/conditions").iter();
            let dangling = conditions.find(|one| one["type"] == "Dangling");
            json!([
                name,
                text(spec, "priorityLevelConfiguration/name"),
                spec["matchingPrecedence"],
                text_or(spec, "distinguisherMethod/type", "<none>"),
                age,
                dangling.map_or("?", |one| text(one, "status")),
            ])
        }
        "PriorityLevelConfiguration" => {
            let limited = &spec["limited"];
            let queuing = |member: &str| or_none(&limited["limitResponse"]["queuing"][member]);
            json!([
                name,
                text(spec, "type"),
                or_none(&limited["nominalConcurrencyShares"]),
                queuing("queues"),
                queuing("handSize"),
                queuing("queueLengthLimit"),
                age,
            ])
        }
        "CertificateSigningRequest" => {
            let lasts = spec["expirationSeconds"].as_i64();
            json!([
                name,
                age,
                text_or(spec, "signerName", "<none>"),
                text(spec, "username"),
                lasts.map_or("<none>".to_owned(), lasting),
                request_state(object),
            ])
        }
        "RuntimeClass" => json!([name, text(object, "handler"), age]),
        "PriorityClass" => json!([
            name,
            object["value"],
            object["globalDefault"].as_bool().unwrap_or(false),
            age,
            text(object, "preemptionPolicy"),
        ]),
        "APIService" => {
            let service = match &spec["service"] {
                Value::Null => "Local".to_owned(),
                service => format!("{}/{}", text(service, "namespace"), text(service, "name")),
            };
            json!([name, service, availability(object), age])
        }
        "ResourceClaim" => json!([name, claim_state(object), age]),
        "DeviceClass" | "ResourceClaimTemplate" => json!([name, age]),
        "ResourceSlice" => {
            json!([
                name,
                text(spec, "nodeName"),
                text(spec, "driver"),
                text(spec, "pool/name"),
                age
            ])
        }
        _ => return None,
    };
    cells.as_array().cloned()
}

fn has_condition(object: &Value, name: &str) -> bool {
    items(object, "status/conditions").iter().any(|one| one["type"] == name)
}

/// The state of a request for a certificate.
fn request_state(object: &Value) -> String {
    let decision = if has_condition(object, "Denied") {
        "Denied"
    } else if has_condition(object, "Approved") {
        "Approved"
    } else {
        "Pending"
    };
    let failed = if has_condition(object, "Failed") { ",Failed" } else { "" };
    let issued = if text(object, "status/certificate").is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

/// Whether an API service is available.
fn availability(object: &Value) -> String {
    let mut conditions = items(object, "status/conditions").iter();
    let Some(one) = conditions.find(|one| one["type"] == "Available") else {
        return "Unknown".to_owned();
    };
    match (text(one, "status"), text(one, "reason")) {
        ("True", _) => "True".to_owned(),
        (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

/// The state of a claim of devices.
fn claim_state(object: &Value) -> String {
    let mut states = Vec::new();
    if is_going(object) {
        states.push("deleted");
    }
    if at(object, "status/allocation").is_null() {
        if !is_going(object) {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        if !items(object, "status/reservedFor").is_empty() {
            states.push("reserved");
        }
    }
    states.join(",")
}
