//! Whether the Pods of a DaemonSet fit a node: by name, labels and taints.

use serde_json::{Value, json};

use crate::types::members::{condition, text};

/// The taints of unhealthy nodes that each Pod of a DaemonSet tolerates, and their effects.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// How a node fits the Pods of a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeFit {
    /// A Pod is to run there.
    Runs,
    /// A Pod that runs there stays, but none is created: the node has a taint without `NoExecute`.
    Stays,
    /// No Pod may run there.
    None,
}

impl NodeFit {
    /// The fit of a node for the `spec` of a template. The node of which no kubelet has reported a
    /// condition is ready, though admission taints it.
    pub(crate) fn of(template: &Value, node: &Value) -> Self {
        let name = text(&template["nodeName"]);
        let is_named = name.is_empty() || node["metadata"]["name"] == name;
        if !is_named || !is_selected(template, node) {
            return Self::None;
        }
        let tolerations = tolerations(template);
        let reported = condition(&node["status"], "Ready").is_some();
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let untolerated = taints.filter(|taint| {
            (reported || taint["key"] != TOLERATED[0].0)
                && !tolerations.iter().any(|one| tolerates(one, taint))
        });
        let mut fit = Self::Runs;
        for taint in untolerated {
            match text(&taint["effect"]) {
                "NoExecute" => return Self::None,
                "NoSchedule" => fit = Self::Stays,
                _ => {}
            }
        }
        fit
    }
}

/// Whether the node selector and the required node affinity select a node.
fn is_selected(template: &Value, node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let mut selector = template["nodeSelector"].as_object().into_iter().flatten();
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let affinity = &template["affinity"]["nodeAffinity"][required];
    selector.all(|(name, value)| labels.get(name) == Some(value))
        && (affinity.is_null()
            || affinity["nodeSelectorTerms"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|term| is_term_true(term, node)))
}

/// Whether all requirements of a term hold. A term without requirements selects nothing.
fn is_term_true(term: &Value, node: &Value) -> bool {
    let requirements = |name: &str| term[name].as_array().map_or(&[][..], Vec::as_slice);
    let (labels, fields) = (requirements("matchExpressions"), requirements("matchFields"));
    let metadata = &node["metadata"];
    let is_name = |one: &Value| one["key"] == "metadata.name";
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|one| {
            holds(one, metadata["labels"].get(text(&one["key"])).and_then(Value::as_str))
        })
        && fields.iter().all(|one| is_name(one) && holds(one, metadata["name"].as_str()))
}

fn holds(requirement: &Value, value: Option<&str>) -> bool {
    let values = requirement["values"].as_array().map_or(&[][..], Vec::as_slice);
    let is_listed = value.is_some_and(|value| values.iter().any(|one| one == value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let numbers = number(value).zip(number(values.first().and_then(Value::as_str)));
    match text(&requirement["operator"]) {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers.is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers.is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let absent_or = |name: &str| {
        toleration[name].as_str().is_none_or(str::is_empty) || toleration[name] == taint[name]
    };
    let exists = toleration["operator"] == "Exists";
    absent_or("effect")
        && absent_or("key")
        && (exists || text(&toleration["value"]) == text(&taint["value"]))
        && (exists || !text(&toleration["key"]).is_empty())
}

/// The tolerations of a template's `spec`, with those of each Pod of a DaemonSet.
pub(crate) fn tolerations(template: &Value) -> Vec<Value> {
    let mut all = template["tolerations"].as_array().cloned().unwrap_or_default();
    let network = ("node.kubernetes.io/network-unavailable", "NoSchedule");
    let network = Some(network).filter(|_| template["hostNetwork"] == true);
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
        if !all.contains(&toleration) {
            all.push(toleration);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(taint: &str) -> Value {
        let taints = match taint {
            "" => json!([]),
            effect => json!([{"key": "gpu", "value": "yes", "effect": effect}]),
        };
        json!({"metadata": {"name": "a", "labels": {"zone": "x", "cores": "8"}},
            "spec": {"taints": taints}})
    }

    #[test]
    fn taint_keeps_new_pods_away_and_removes_running_ones_only_with_no_execute() {
        let fit = |taint: &str| NodeFit::of(&json!({}), &node(taint));
        assert_eq!(fit(""), NodeFit::Runs);
        assert_eq!(fit("PreferNoSchedule"), NodeFit::Runs);
        assert_eq!(fit("NoSchedule"), NodeFit::Stays);
        assert_eq!(fit("NoExecute"), NodeFit::None);
        let tolerant = json!({"tolerations": [{"key": "gpu", "operator": "Exists"}]});
        assert_eq!(NodeFit::of(&tolerant, &node("NoExecute")), NodeFit::Runs);
    }

    #[test]
    fn node_fits_when_its_name_and_its_affinity_match() {
        let fits = |template: &Value| NodeFit::of(template, &node("")) == NodeFit::Runs;
        assert!(fits(&json!({"nodeName": "a"})) && !fits(&json!({"nodeName": "b"})));
        let affinity = |terms: &Value| {
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
        };
        for (key, operator, values, expected) in [
            ("zone", "In", json!(["x", "y"]), true),
            ("zone", "NotIn", json!(["x"]), false),
            ("rack", "NotIn", json!(["x"]), true),
            ("zone", "Exists", Value::Null, true),
            ("zone", "DoesNotExist", Value::Null, false),
            ("cores", "Gt", json!(["4"]), true),
            ("cores", "Lt", json!(["4"]), false),
            ("zone", "Gt", json!(["4"]), false),
        ] {
            let one = json!({"key": key, "operator": operator, "values": values});
            let terms = json!([{"matchExpressions": [one]}]);
            assert_eq!(fits(&affinity(&terms)), expected, "{one}");
        }
        let name =
            json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]});
        assert!(fits(&affinity(&json!([{}, name]))));
        assert!(!fits(&affinity(&json!([{}]))) && !fits(&affinity(&json!([]))));
    }
}
