//! Objects as lines, without what differs in each run.

use serde_json::Value;

/// The leaves of all objects, one a line, without what differs in each run.
pub(crate) fn normalised(all: &[Value]) -> Vec<String> {
    let replaced = replacements(all);
    let lines = all.iter().filter(|one| !is_repeated_deletion(one)).flat_map(lines_of);
    let mut lines: Vec<String> = lines.map(|line| replace(line, &replaced)).collect();
    lines.sort();
    lines
}

/// The texts that differ in each run, and what they are replaced by: the longest first, since one
/// may contain another.
fn replacements(all: &[Value]) -> Vec<(String, String)> {
    let mut replaced: Vec<(String, String)> = Vec::new();
    for object in all {
        let metadata = &object["metadata"];
        let kind = object["kind"].as_str().unwrap();
        let name = metadata["name"].as_str().unwrap();
        if let Some(prefix) = metadata["generateName"].as_str() {
            replaced.push((name.to_owned(), format!("{prefix}RANDOM")));
        }
        if let Some(hash) = metadata["labels"]["pod-template-hash"].as_str() {
            replaced.push((hash.to_owned(), "HASH".to_owned()));
        }
        if let Some(hash) = metadata["labels"]["controller.kubernetes.io/hash"].as_str() {
            // By what it is a revision of, so that two are kept apart.
            let number = &object["revision"];
            replaced.push((hash.to_owned(), format!("REVISION-{number}")));
        }
        if kind == "controllerrevisions"
            && let Some(hash) = metadata["labels"]["controller-revision-hash"].as_str()
        {
            replaced.push((hash.to_owned(), format!("REVISION-{}", object["revision"])));
        }
        if let Some(minute) = name.strip_prefix("tick-")
            && kind == "jobs"
        {
            replaced.push((format!("tick-{minute}"), "tick-MINUTE".to_owned()));
        }
        replaced.push((metadata["uid"].as_str().unwrap().to_owned(), format!("UID of {kind}")));
    }
    replaced.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    replaced
}

/// Whether an object is the Event of a real StatefulSet controller that deleted a Pod twice: its
/// cache still had the Pod after the first deletion. That is chance.
fn is_repeated_deletion(object: &Value) -> bool {
    let message = object["message"].as_str().unwrap_or_default();
    object["kind"] == "events"
        && object["involvedObject"]["kind"] == "StatefulSet"
        && object["reason"] == "FailedDelete"
        && message.ends_with("not found")
}

/// An object as lines: of an Event one, of any other object one for each leaf.
fn lines_of(object: &Value) -> Vec<String> {
    let kind = object["kind"].as_str().unwrap();
    let object = comparable(object.clone(), kind);
    let mut leaves = Vec::new();
    leaf(&object, "", &mut leaves);
    if kind == "events" && !leaves.is_empty() {
        return vec![format!("{kind} {}", leaves.join(" "))];
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    leaves.into_iter().map(|leaf| format!("{kind} {name} {leaf}")).collect()
}

/// An object without the members that differ by chance or are known to differ.
fn comparable(mut object: Value, kind: &str) -> Value {
    remove(&mut object["metadata"], &["resourceVersion", "managedFields"]);
    match kind {
        // How often it was written is chance, and so what was new the last time.
        "endpoints" | "endpointslices" => {
            remove(&mut object["metadata"], &["generation", "annotations"]);
            // A slice has them in the order of a Go map.
            if let Some(endpoints) = object.get_mut("endpoints").and_then(Value::as_array_mut) {
                endpoints.sort_by_key(|one| one["targetRef"]["name"].to_string());
            }
        }
        // Addresses are known to differ.
        "services" => {
            let spec = object["spec"].as_object_mut().unwrap();
            spec.retain(|name, _| !name.starts_with("clusterIP"));
        }
        "events" => comparable_event(&mut object),
        "persistentvolumes" => remove(&mut object["spec"]["claimRef"], &["resourceVersion"]),
        // What admission gives a Pod is a known difference.
        "pods" => {
            object["spec"] = Value::Null;
            remove(&mut object["status"], &["qosClass"]);
        }
        _ => {}
    }
    // Those of several Pods are written in the order of chance.
    remove(&mut object["status"], &["podIP", "podIPs"]);
    object
}

fn comparable_event(event: &mut Value) {
    event["metadata"].as_object_mut().unwrap().clear();
    let about = event["involvedObject"].as_object_mut().unwrap();
    about.remove("resourceVersion");
    if matches!(about["kind"].as_str(), Some("StatefulSet" | "PersistentVolumeClaim")) {
        // A real controller that reads an old state sometimes reports twice what it did once, and
        // of a claim as long as it waits.
        event["count"] = Value::Null;
    }
}

/// Removes members of a map, if it is one.
fn remove(map: &mut Value, names: &[&str]) {
    let Some(map) = map.as_object_mut() else { return };
    map.retain(|name, _| !names.contains(&name.as_str()));
}

/// A line without the texts that differ in each run.
fn replace(mut line: String, replaced: &[(String, String)]) -> String {
    for (text, instead) in replaced {
        line = line.replace(text, instead);
    }
    // Of a Pod that is gone there are only Events.
    let mut beginnings = ["pod: web-HASH-", "pod: agent-"].into_iter();
    let at = beginnings.find_map(|text| line.find(text).map(|at| at + text.len()));
    if let Some(at) = at {
        let end = line[at..].find('"').map_or(line.len(), |end| at + end);
        line.replace_range(at..end, "RANDOM");
    }
    line
}

fn leaf(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, value) in map {
                leaf(value, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, value) in list.iter().enumerate() {
                leaf(value, &format!("{path}[{index}]"), found);
            }
        }
        Value::String(text) if text.len() >= 20 && text.parse::<jiff::Timestamp>().is_ok() => {
            found.push(format!("{path}=TIME"));
        }
        Value::String(text) if text.starts_with("10.1.0.") => found.push(format!("{path}=IP")),
        other => found.push(format!("{path}={other}")),
    }
}

/// What one side has and not the other.
pub(crate) fn compare(real: &[String], simulated: &[String]) {
    let missing: Vec<&String> = real.iter().filter(|line| !simulated.contains(line)).collect();
    let surplus: Vec<&String> = simulated.iter().filter(|line| !real.contains(line)).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "only on the real one: {missing:#?}\nonly on the simulated one: {surplus:#?}"
    );
    assert!(real.len() > 100, "there is something to compare");
}
