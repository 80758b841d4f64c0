//! Validation of Jobs, and their immutable members.

use serde_json::{Map, Value};

use crate::types::object::meta;
use crate::types::status_error::FieldError;

/// The generated labels of a Job and its Pods, for a Job without a manual selector.
pub(crate) fn generated(job: &Value) -> [(&'static str, &str); 4] {
    let (uid, name) = (meta(job, "uid"), meta(job, "name"));
    [
        ("controller-uid", uid),
        ("job-name", name),
        (CONTROLLER_UID, uid),
        ("batch.kubernetes.io/job-name", name),
    ]
}

/// The label that the generated selector asks for.
pub(crate) const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// Reports an invalid selector or invalid generated labels.
pub(crate) fn rules(job: &Value, errors: &mut Vec<FieldError>) {
    let spec = &job["spec"];
    let labels = &spec["template"]["metadata"]["labels"];
    let selected = || spec["selector"]["matchLabels"].as_object().into_iter().flatten();
    if spec["selector"].is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    } else if spec["manualSelector"] != true {
        let generated = generated(job);
        for (name, value) in generated {
            let field = format!("spec.template.metadata.labels[{name}]");
            let why = format!("must be '{value}'");
            if labels.get(name).is_none() {
                errors.push(FieldError::required(&*field, &*why));
            }
            if labels[name] != value {
                errors.push(FieldError::invalid(field, labels.clone(), why));
            }
        }
        if selected()
            .any(|(name, value)| !generated.iter().any(|one| one.0 == name && value == one.1))
        {
            let why = "`selector` not auto-generated";
            errors.push(FieldError::invalid("spec.selector", spec["selector"].clone(), why));
        }
    }
    if selected().any(|(name, value)| labels[name] != *value) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels.clone(), why));
    }
}

/// Reports an invalid change of a Job's template or completions.
pub(crate) fn immutable(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
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

/// A template with the scheduling and the labels of another one: a queue controller may change
/// these as long as a Job is suspended and has not started.
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
    fn scheduling_of_a_suspended_job_may_change_until_it_starts() {
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
    fn indexed_job_may_change_completions_together_with_parallelism() {
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
    fn job_with_a_generated_selector_needs_the_generated_pod_labels() {
        let job = |change: &dyn Fn(&mut Value)| {
            let labels = json!({
                "job-name": "a", "batch.kubernetes.io/job-name": "a", "controller-uid": "1",
                "batch.kubernetes.io/controller-uid": "1"
            });
            let mut job = json!({
                "metadata": {"name": "a", "uid": "1"},
                "spec": {
                    "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "1"}},
                    "template": {"metadata": {"labels": labels}}
                }
            });
            change(&mut job);
            let mut errors = Vec::new();
            rules(&job, &mut errors);
            errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
        };
        let labels = "spec.template.metadata.labels";
        assert!(job(&|_| {}).is_empty());
        let missing = job(&|job| job["spec"]["template"]["metadata"]["labels"] = json!({}));
        assert_eq!(missing.len(), 9, "{missing:?}");
        let other = job(&|job| job["metadata"]["uid"] = "2".into());
        assert!(other.contains(&"spec.selector".to_owned()), "{other:?}");
        let own = |labels: Value| {
            move |job: &mut Value| {
                job["spec"]["manualSelector"] = true.into();
                job["spec"]["selector"]["matchLabels"] = labels.clone();
            }
        };
        assert!(job(&own(json!({"job-name": "a"}))).is_empty());
        assert_eq!(job(&own(json!({"job-name": "b"}))), [labels]);
    }
}
