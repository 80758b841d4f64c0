//! What may change of a Job.

use serde_json::{Map, Value};

use crate::status_error::FieldError;

/// What is wrong with a change of a Job's template or of how many times it is to be done.
pub(super) fn immutable(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (before, started) = (&old["spec"], !old["status"]["startTime"].is_null());
    let movable = before["suspend"] == true && !started;
    let template = if movable {
        placed_as(&before["template"], &new["template"])
    } else {
        before["template"].clone()
    };
    if new["template"] != template {
        let why = "field is immutable";
        errors.push(FieldError::invalid("spec.template", new["template"].clone(), why));
    } else if new["manualSelector"] != true && !is_selected(new) {
        errors.push(FieldError::required("spec.template.metadata.labels", "must be set"));
    }
    let completions = &new["completions"];
    if *completions != before["completions"] {
        if new["completionMode"] != "Indexed" {
            let why = "field is immutable";
            errors.push(FieldError::invalid("spec.completions", completions.clone(), why));
        } else if !completions.is_null() && *completions != new["parallelism"] {
            let why = "can only be modified in tandem with spec.parallelism";
            errors.push(FieldError::invalid("spec.completions", completions.clone(), why));
        }
    }
}

/// A template with what another one says of where its Pods run and what they are called: as long as a Job is suspended and
/// has not been started, whoever queues Jobs may change that.
fn placed_as(template: &Value, other: &Value) -> Value {
    let mut template = template.clone();
    if let Some(metadata) = member(&mut template, "metadata") {
        take(metadata, &other["metadata"], &["labels", "annotations"]);
    }
    let Some(spec) = member(&mut template, "spec") else { return template };
    let from = &other["spec"];
    take(spec, from, &["nodeSelector", "tolerations", "schedulingGates"]);
    if from["affinity"].is_object() && !spec.contains_key("affinity") {
        spec.insert("affinity".to_owned(), Value::Object(Map::new()));
    }
    if let Some(Value::Object(affinity)) = spec.get_mut("affinity") {
        take(affinity, &from["affinity"], &["nodeAffinity"]);
        if affinity.is_empty() {
            take(spec, from, &["affinity"]);
        }
    }
    template
}

fn member<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(name)?.as_object_mut()
}

/// Gives `object` these members as `other` has them, or has them not.
fn take(object: &mut Map<String, Value>, other: &Value, names: &[&str]) {
    for name in names {
        match other.get(*name) {
            Some(value) => object.insert((*name).to_owned(), value.clone()),
            None => object.remove(*name),
        };
    }
}

/// Whether the Pods of the template are found by the selector that was made for them.
fn is_selected(spec: &Value) -> bool {
    let labels = &spec["template"]["metadata"]["labels"];
    let mut selected = spec["selector"]["matchLabels"].as_object().into_iter().flatten();
    selected.all(|(name, value)| labels[name] == *value)
        && ["job-name", "batch.kubernetes.io/job-name", "controller-uid"]
            .iter()
            .all(|name| labels[*name].is_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(new: &Value, old: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        immutable(new, old, &mut errors);
        errors.into_iter().map(|error| error.field).collect()
    }

    fn job(template: &Value, rest: &Value) -> Value {
        let mut spec = json!({"manualSelector": true, "template": template, "suspend": true});
        for (name, value) in rest.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        spec
    }

    #[test]
    fn where_the_pods_of_a_suspended_job_run_may_change_until_it_is_started() {
        let plain =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"image": "a"}]}});
        let placed = json!({
            "metadata": {"labels": {"a": "c"}, "annotations": {"d": "e"}},
            "spec": {
                "containers": [{"image": "a"}], "nodeSelector": {"f": "g"},
                "affinity": {"nodeAffinity": {"h": "i"}}
            }
        });
        let old = json!({"spec": job(&plain, &json!({}))});
        assert!(wrong(&job(&placed, &json!({})), &old).is_empty());
        assert!(wrong(&old["spec"], &json!({"spec": job(&placed, &json!({}))})).is_empty());
        let started = json!({"spec": old["spec"], "status": {"startTime": "2026-01-01T00:00:00Z"}});
        assert_eq!(wrong(&job(&placed, &json!({})), &started), ["spec.template"]);
        let running = json!({"spec": job(&plain, &json!({"suspend": false}))});
        assert_eq!(wrong(&job(&placed, &json!({})), &running), ["spec.template"]);
        let mut image = plain.clone();
        image["spec"]["containers"][0]["image"] = "b".into();
        assert_eq!(wrong(&job(&image, &json!({})), &old), ["spec.template"]);
    }

    #[test]
    fn an_indexed_job_may_be_done_more_often_with_as_many_at_a_time() {
        let times = |mode: &str, number: u64, at_once: u64| {
            job(
                &json!({}),
                &json!({"completionMode": mode, "completions": number, "parallelism": at_once}),
            )
        };
        let old = json!({"spec": times("Indexed", 1, 1)});
        assert!(wrong(&times("Indexed", 2, 2), &old).is_empty());
        assert_eq!(wrong(&times("Indexed", 2, 1), &old), ["spec.completions"]);
        let old = json!({"spec": times("NonIndexed", 1, 1)});
        assert_eq!(wrong(&times("NonIndexed", 2, 2), &old), ["spec.completions"]);
    }

    #[test]
    fn the_labels_that_were_made_for_the_pods_stay() {
        let labels = json!({
            "job-name": "a", "batch.kubernetes.io/job-name": "a", "controller-uid": "1",
            "batch.kubernetes.io/controller-uid": "1"
        });
        let template = json!({"metadata": {"labels": labels}});
        let rest = json!({
            "manualSelector": false,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}}
        });
        let old = json!({"spec": job(&template, &rest)});
        assert!(wrong(&old["spec"], &old).is_empty());
        let bare = job(&json!({"metadata": {"labels": {"a": "b"}}}), &rest);
        assert_eq!(wrong(&bare, &old), ["spec.template.metadata.labels"]);
    }
}
