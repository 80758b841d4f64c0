//! Defaults of the kinds that only administrators write: priorities, flow control and devices.

use serde_json::Value;

use crate::types::kinds::defaults::fill::{each, or, or_text};

/// The defaults of a PriorityClass.
pub(crate) fn priority_class(object: &mut Value) {
    or_text(object, "preemptionPolicy", "PreemptLowerPriority");
}

/// The defaults of a FlowSchema.
pub(crate) fn flow_schema(object: &mut Value) {
    or_number(&mut object["spec"], "matchingPrecedence", 1000);
}

/// A number that is 0 if it is absent.
fn or_number(object: &mut Value, name: &str, value: i64) {
    if object[name].as_i64().unwrap_or(0) == 0 {
        object[name] = value.into();
    }
}

/// The defaults of a PriorityLevelConfiguration.
pub(crate) fn priority_level(object: &mut Value) {
    let spec = &mut object["spec"];
    match spec["type"].as_str() {
        Some("Exempt") => {
            let exempt = &mut spec["exempt"];
            or(exempt, "nominalConcurrencyShares", 0.into());
            or(exempt, "lendablePercent", 0.into());
        }
        _ if spec["limited"].is_object() => {
            let limited = &mut spec["limited"];
            or(limited, "nominalConcurrencyShares", 30.into());
            or(limited, "lendablePercent", 0.into());
            if let Some(queuing @ Value::Object(_)) = limited["limitResponse"].get_mut("queuing") {
                or_number(queuing, "queues", 64);
                or_number(queuing, "handSize", 8);
                or_number(queuing, "queueLengthLimit", 50);
            }
        }
        _ => {}
    }
}

/// The defaults of a ResourceClaim, or of the claim in a template.
pub(crate) fn resource_claim(spec: &mut Value) {
    if !spec["devices"].is_object() {
        return;
    }
    each(&mut spec["devices"], "requests", &mut |request| {
        if let Some(exactly @ Value::Object(_)) = request.get_mut("exactly") {
            count(exactly);
        }
        each(request, "firstAvailable", &mut count);
    });
}

fn count(request: &mut Value) {
    or_text(request, "allocationMode", "ExactCount");
    if request["allocationMode"] == "ExactCount" {
        or_number(request, "count", 1);
    }
}
