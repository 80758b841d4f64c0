//! The two versions of HorizontalPodAutoscaler. The simulator stores `v2`; `v1` has one member for
//! the load of processors, and the rest in annotations.

use serde_json::{Map, Value, json};

use crate::types::kind::Kind;

/// The version that is stored.
const STORED: &str = "autoscaling/v2";

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// The members of the kinds of metrics: in `v1`, and in `v2` by their pointer in the metric.
const METRIC_MEMBERS: [(&str, &[(&str, &str)]); 5] = [
    (
        "object",
        &[
            ("target", "/describedObject"),
            ("metricName", "/metric/name"),
            ("targetValue", "/target/value"),
            ("selector", "/metric/selector"),
            ("averageValue", "/target/averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "/metric/name"),
            ("targetAverageValue", "/target/averageValue"),
            ("selector", "/metric/selector"),
        ],
    ),
    (
        "resource",
        &[
            ("name", "/name"),
            ("targetAverageUtilization", "/target/averageUtilization"),
            ("targetAverageValue", "/target/averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "/name"),
            ("targetAverageUtilization", "/target/averageUtilization"),
            ("targetAverageValue", "/target/averageValue"),
            ("container", "/container"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "/metric/name"),
            ("metricSelector", "/metric/selector"),
            ("targetValue", "/target/value"),
            ("targetAverageValue", "/target/averageValue"),
        ],
    ),
];

/// Whether a kind is the version that is not stored.
pub(crate) fn is_v1(kind: &Kind) -> bool {
    kind.is("autoscaling", "HorizontalPodAutoscaler") && kind.version == "v1"
}

/// Fills in the defaults of the stored version.
pub(crate) fn default(object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["minReplicas"].is_null() {
        spec["minReplicas"] = 1.into();
    }
    if spec["metrics"].as_array().is_none_or(Vec::is_empty) {
        spec["metrics"] = json!([processor_metric(&80.into())]);
    }
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let defaults =
        [("scaleUp", json!([pods, percent]), Some(0)), ("scaleDown", json!([percent]), None)];
    let Some(behavior) = spec.get_mut("behavior").filter(|one| one.is_object()) else { return };
    for (direction, policies, window) in defaults {
        let rules = &mut behavior[direction];
        let mut put = |name: &str, value: Value| {
            if rules[name].is_null() && !value.is_null() {
                rules[name] = value;
            }
        };
        put("selectPolicy", "Max".into());
        put("policies", policies);
        put("stabilizationWindowSeconds", window.map_or(Value::Null, Value::from));
    }
}

fn processor_metric(percent: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}})
}

/// The percentage of a metric about the load of processors.
fn processor_percent(metric: &Value) -> Option<&Value> {
    let resource = &metric["resource"];
    let percent = &resource["target"]["averageUtilization"];
    (metric["type"] == "Resource" && resource["name"] == "cpu" && !percent.is_null())
        .then_some(percent)
}

/// Turns a stored object into one of `v1`.
pub(crate) fn to_v1(object: &mut Value) {
    if object["apiVersion"] != STORED {
        return;
    }
    object["apiVersion"] = "autoscaling/v1".into();
    let metrics = object["spec"]["metrics"].as_array().cloned().unwrap_or_default();
    let behavior = object["spec"]["behavior"].clone();
    let mut annotations = Map::new();
    let others = metrics.iter().filter(|one| processor_percent(one).is_none());
    let others: Vec<String> = others.filter_map(old_metric).collect();
    if !others.is_empty() {
        annotations.insert(METRICS.to_owned(), format!("[{}]", others.join(",")).into());
    }
    let status = object["status"].clone();
    let current: Vec<String> =
        status["currentMetrics"].as_array().into_iter().flatten().filter_map(old_current).collect();
    if !current.is_empty() {
        annotations.insert(CURRENT.to_owned(), format!("[{}]", current.join(",")).into());
    }
    if behavior.is_object() {
        annotations.insert(BEHAVIOR.to_owned(), old_behavior(&behavior).into());
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let order = ["type", "status", "lastTransitionTime", "reason", "message"];
    let conditions: Vec<String> =
        conditions.map(|one| ordered(&order.map(|name| (name, &one[name])))).collect();
    if !conditions.is_empty() {
        annotations.insert(CONDITIONS.to_owned(), format!("[{}]", conditions.join(",")).into());
    }
    let percent = metrics.iter().find_map(processor_percent).cloned();
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.remove("metrics");
        spec.remove("behavior");
        if let Some(percent) = percent {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
    }
    object["status"] = old_status(&status);
    for (name, value) in annotations {
        object["metadata"]["annotations"][name] = value;
    }
}

fn old_status(status: &Value) -> Value {
    let mut old = json!({});
    for name in ["observedGeneration", "lastScaleTime"] {
        if let Some(value) = status.get(name) {
            old[name] = value.clone();
        }
    }
    for name in ["currentReplicas", "desiredReplicas"] {
        old[name] = status[name].as_i64().unwrap_or(0).into();
    }
    let mut current = status["currentMetrics"].as_array().into_iter().flatten();
    let percent = current.find(|one| one["resource"]["name"] == "cpu");
    if let Some(percent) = percent.map(|one| &one["resource"]["current"]["averageUtilization"])
        && !percent.is_null()
    {
        old["currentCPUUtilizationPercentage"] = percent.clone();
    }
    old
}

/// Turns an object of `v1` into a stored one.
pub(crate) fn to_stored(object: &mut Value) {
    if object["apiVersion"] == STORED {
        return;
    }
    object["apiVersion"] = STORED.into();
    let mut kept = Map::new();
    if let Some(annotations) =
        object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        for name in [METRICS, CURRENT, BEHAVIOR, CONDITIONS] {
            let text = annotations.remove(name).unwrap_or_default();
            let value = text.as_str().and_then(|text| serde_json::from_str(text).ok());
            kept.insert(name.to_owned(), value.unwrap_or_default());
        }
        if annotations.is_empty()
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
    let list = |name: &str| kept.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut metrics: Vec<Value> = list(METRICS).iter().filter_map(stored_metric).collect();
    if let Some(spec) = object["spec"].as_object_mut() {
        let percent = spec.remove("targetCPUUtilizationPercentage");
        metrics.extend(percent.filter(|one| !one.is_null()).as_ref().map(processor_metric));
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
        if let Some(behavior) = kept.get(BEHAVIOR).filter(|one| one.is_object()) {
            spec.insert("behavior".to_owned(), stored_behavior(behavior));
        }
    }
    let percent = object["status"]["currentCPUUtilizationPercentage"].clone();
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("currentCPUUtilizationPercentage");
        if status.get("currentReplicas").is_some_and(|count| *count == 0) {
            status.remove("currentReplicas");
        }
        let mut current: Vec<Value> = list(CURRENT).iter().filter_map(stored_current).collect();
        if current.is_empty() && !percent.is_null() {
            let value = json!({"averageUtilization": percent, "averageValue": "0"});
            current
                .push(json!({"type": "Resource", "resource": {"name": "cpu", "current": value}}));
        }
        let current = if current.is_empty() { Value::Null } else { current.into() };
        status.insert("currentMetrics".to_owned(), current);
        let conditions = list(CONDITIONS);
        if !conditions.is_empty() {
            status.insert("conditions".to_owned(), conditions.into());
        }
    }
    default(object);
}

/// A metric in the form of the annotation.
fn old_metric(metric: &Value) -> Option<String> {
    let type_ = metric["type"].as_str()?;
    let (member, names) = METRIC_MEMBERS.iter().find(|(one, _)| one.eq_ignore_ascii_case(type_))?;
    let of = &metric[*member];
    let parts: Vec<(&str, &Value)> = names
        .iter()
        .map(|(name, pointer)| (*name, of.pointer(pointer).unwrap_or(&Value::Null)))
        .collect();
    Some(format!("{{\"type\":{},\"{member}\":{}}}", metric["type"], ordered(&parts)))
}

/// A metric of the annotation, as it is stored.
fn stored_metric(metric: &Value) -> Option<Value> {
    let type_ = metric["type"].as_str()?;
    let (member, names) = METRIC_MEMBERS.iter().find(|(one, _)| one.eq_ignore_ascii_case(type_))?;
    let mut of = json!({});
    for (name, pointer) in *names {
        let value = &metric[*member][*name];
        if value.is_null() || *value == "0" {
            continue;
        }
        let mut place = &mut of;
        for part in pointer.split('/').skip(1) {
            place = &mut place[part];
        }
        *place = value.clone();
    }
    let target = &mut of["target"];
    for (name, type_) in [
        ("averageUtilization", "Utilization"),
        ("averageValue", "AverageValue"),
        ("value", "Value"),
    ] {
        if target["type"].is_null() && target.get(name).is_some() {
            target["type"] = type_.into();
        }
    }
    let mut stored = json!({ "type": type_ });
    stored[*member] = of;
    Some(stored)
}

/// The current value of a metric about a resource, in the form of the annotation.
fn old_current(metric: &Value) -> Option<String> {
    let resource = metric.get("resource").filter(|_| metric["type"] == "Resource")?;
    let parts = [
        ("name", &resource["name"]),
        ("currentAverageUtilization", &resource["current"]["averageUtilization"]),
        ("currentAverageValue", &resource["current"]["averageValue"]),
    ];
    Some(format!("{{\"type\":\"Resource\",\"resource\":{}}}", ordered(&parts)))
}

fn stored_current(metric: &Value) -> Option<Value> {
    let resource = metric.get("resource").filter(|_| metric["type"] == "Resource")?;
    let mut current = json!({});
    for (old, new) in [
        ("currentAverageUtilization", "averageUtilization"),
        ("currentAverageValue", "averageValue"),
    ] {
        if !resource[old].is_null() {
            current[new] = resource[old].clone();
        }
    }
    Some(json!({"type": "Resource", "resource": {"name": resource["name"], "current": current}}))
}

/// The rules of scaling in the annotation: members in the form of Go's own type.
fn old_behavior(behavior: &Value) -> String {
    let null = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
    let rules = |rules: &Value| {
        if !rules.is_object() {
            return "null".to_owned();
        }
        let policies = rules["policies"].as_array().map(|list| {
            let policies = list.iter().map(|one| {
                format!(
                    "{{\"Type\":{},\"Value\":{},\"PeriodSeconds\":{}}}",
                    one["type"], one["value"], one["periodSeconds"]
                )
            });
            format!("[{}]", policies.collect::<Vec<_>>().join(","))
        });
        format!(
            "{{\"StabilizationWindowSeconds\":{},\"SelectPolicy\":{},\"Policies\":{},\"Tolerance\":{}}}",
            rules["stabilizationWindowSeconds"],
            rules["selectPolicy"],
            null(policies),
            rules["tolerance"]
        )
    };
    format!(
        "{{\"ScaleUp\":{},\"ScaleDown\":{}}}",
        rules(&behavior["scaleUp"]),
        rules(&behavior["scaleDown"])
    )
}

/// The rules of the annotation, as they are stored.
fn stored_behavior(behavior: &Value) -> Value {
    match behavior {
        Value::Object(members) => {
            let renamed =
                members.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                    let mut name = name.clone();
                    if let Some(first) = name.get_mut(..1) {
                        first.make_ascii_lowercase();
                    }
                    (name, stored_behavior(value))
                });
            Value::Object(renamed.collect())
        }
        Value::Array(items) => items.iter().map(stored_behavior).collect(),
        other => other.clone(),
    }
}

/// An object in JSON with its members in this order, as Go writes them; without those that are
/// absent.
fn ordered(parts: &[(&str, &Value)]) -> String {
    let parts = parts.iter().filter(|(_, value)| !value.is_null());
    let parts: Vec<String> = parts.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Value {
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "annotations": {"a": "b"}},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 1, "maxReplicas": 4,
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "requests"},
                        "target": {"type": "AverageValue", "averageValue": "100"}}},
                    {"type": "Resource", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 70}}},
                ],
                "behavior": {
                    "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
                        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]},
                    "scaleDown": {"selectPolicy": "Disabled",
                        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]},
                },
            },
            "status": {"currentMetrics": null, "desiredReplicas": 2},
        })
    }

    #[test]
    fn stored_version_survives_the_way_through_the_old_one() {
        let mut object = stored();
        to_v1(&mut object);
        assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 70);
        assert_eq!(object["status"], json!({"currentReplicas": 0, "desiredReplicas": 2}));
        let annotations = &object["metadata"]["annotations"];
        let metrics =
            r#"[{"type":"Pods","pods":{"metricName":"requests","targetAverageValue":"100"}}]"#;
        assert_eq!(annotations[METRICS], metrics);
        to_stored(&mut object);
        assert_eq!(object, stored());
    }

    #[test]
    fn old_version_without_a_percentage_gets_the_default_metric() {
        let mut object = json!({"apiVersion": "autoscaling/v1", "metadata": {},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {}}});
        to_stored(&mut object);
        assert_eq!(processor_percent(&object["spec"]["metrics"][0]), Some(&80.into()));
        assert_eq!(object["spec"]["minReplicas"], 1);
    }
}
