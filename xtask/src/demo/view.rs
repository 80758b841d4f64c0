//! What has changed in the cluster, one line a change.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::Value;

use crate::progress::say;

/// Remembers what was shown.
pub(super) struct View {
    started: Instant,
    /// By kind and name.
    shown: BTreeMap<String, String>,
}

impl View {
    /// Nothing shown yet.
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), shown: BTreeMap::new() }
    }

    /// Shows what is new, different or gone.
    pub(super) fn show(&mut self, objects: &[Value]) {
        for line in self.changes(objects) {
            say(&format!("      {:6.1} s  {line}", self.started.elapsed().as_secs_f32()));
        }
    }

    fn changes(&mut self, objects: &[Value]) -> Vec<String> {
        let mut now = BTreeMap::new();
        for object in objects {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let key = format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]));
            now.insert(key, summary(object));
        }
        let mut lines = Vec::new();
        for (key, summary) in &now {
            match self.shown.get(key) {
                None => lines.push(format!("+ {key}  {summary}")),
                Some(before) if before != summary => lines.push(format!("~ {key}  {summary}")),
                Some(_) => (),
            }
        }
        lines.extend(
            self.shown.keys().filter(|key| !now.contains_key(*key)).map(|key| format!("- {key}")),
        );
        self.shown = now;
        lines
    }
}

/// What matters of an object, in one line.
fn summary(object: &Value) -> String {
    let mut parts = Vec::new();
    let spec = &object["spec"];
    if let Some(replicas) = spec["replicas"].as_i64() {
        parts.push(format!("replicas={replicas}"));
    }
    if let Some(source) = spec["source"]["configMap"]["name"].as_str() {
        parts.push(format!("source={source}"));
    }
    if let Some(ports) = spec["ports"].as_array() {
        parts.extend(ports.iter().map(|port| format!("port={}", port["port"])));
    }
    if object["kind"] == "Deployment"
        && let Some(labels) = object["metadata"]["labels"].as_object()
    {
        let labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
            .collect();
        parts.push(format!("labels[{}]", labels.join(" ")));
    }
    // A Deployment's own conditions say little without nodes.
    if object["kind"] != "Deployment"
        && let Some(conditions) = object["status"]["conditions"].as_array()
    {
        parts.extend(conditions.iter().map(|condition| {
            let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
            format!("{}={}({})", text("type"), text("status"), text("reason"))
        }));
    }
    if object["metadata"]["deletionTimestamp"].is_string() {
        parts.push("terminating".to_owned());
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_new_different_or_gone_is_shown() {
        let deployment = |replicas: i64| {
            json!({
                "kind": "Deployment", "metadata": { "name": "a", "labels": { "app": "x" } },
                "spec": { "replicas": replicas },
            })
        };
        let mut view = View::new();
        assert_eq!(view.changes(&[deployment(3)]), ["+ Deployment a  replicas=3 labels[app=x]"]);
        assert!(view.changes(&[deployment(3)]).is_empty());
        assert_eq!(view.changes(&[deployment(5)]), ["~ Deployment a  replicas=5 labels[app=x]"]);
        assert_eq!(view.changes(&[]), ["- Deployment a"]);
    }

    #[test]
    fn conditions_are_shown_with_their_reason() {
        let module = json!({
            "kind": "Module", "metadata": { "name": "m" },
            "spec": { "source": { "configMap": { "name": "m-123" } } },
            "status": { "conditions": [{ "type": "Serving", "status": "True", "reason": "Serving" }] },
        });
        assert_eq!(summary(&module), "source=m-123 Serving=True(Serving)");
    }
}
