//! Workloads in tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::table::age::{lasting, since};
use crate::api::table::parts::{
    at, containers, count, is_going, is_true, items, labels, number, or_none, selector, text,
    text_or,
};

/// The cells of a kind of `apps`, `batch`, `autoscaling` or `policy`.
pub(crate) fn cells(kind: &str, object: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let name = text(object, "metadata/name");
    let age = since(at(object, "metadata/creationTimestamp"), now);
    let status = |member: &str| Value::from(number(object, &format!("status/{member}")));
    let wanted = number(object, "spec/replicas");
    let [names, images] = containers(at(object, "spec/template/spec"));
    let chosen = or_none(selector(at(object, "spec/selector")));
    let ready = || format!("{}/{wanted}", number(object, "status/readyReplicas"));
    let cells = match kind {
        "Deployment" => {
            let chosen = selector(at(object, "spec/selector"));
            let updated = status("updatedReplicas");
            json!([name, ready(), updated, status("availableReplicas"), age, names, images, chosen])
        }
        "ReplicaSet" => {
            let [there, ready] = ["replicas", "readyReplicas"].map(status);
            json!([name, wanted, there, ready, age, names, images, chosen])
        }
        "StatefulSet" => json!([name, ready(), age, names, images]),
        "DaemonSet" => json!([
            name,
            status("desiredNumberScheduled"),
            status("currentNumberScheduled"),
            status("numberReady"),
            status("updatedNumberScheduled"),
            status("numberAvailable"),
            labels(at(object, "spec/template/spec/nodeSelector")),
            age,
            names,
            images,
            chosen
        ]),
        "ControllerRevision" => json!([name, owner(object), number(object, "revision"), age]),
        "Job" => {
            let (done, took) = (completions(object), duration(object, now));
            json!([name, job_status(object), done, took, age, names, images, chosen])
        }
        "CronJob" => cron_job(object, now),
        "HorizontalPodAutoscaler" => {
            let target = at(object, "spec/scaleTargetRef");
            let target = format!("{}/{}", text(target, "kind"), text(target, "name"));
            let least = at(object, "spec/minReplicas").as_i64();
            let least = least.map_or("<unset>".to_owned(), |least| least.to_string());
            let most = number(object, "spec/maxReplicas");
            json!([name, target, load(object), least, most, status("currentReplicas"), age])
        }
        "PodDisruptionBudget" => {
            let bound = |member: &str| match at(object, &format!("spec/{member}")) {
                Value::String(text) => text.clone(),
                Value::Null => "N/A".to_owned(),
                number => number.to_string(),
            };
            let allowed = status("disruptionsAllowed");
            json!([name, bound("minAvailable"), bound("maxUnavailable"), allowed, age])
        }
        _ => return None,
    };
    cells.as_array().cloned()
}

/// Kind, group and name of the controller.
fn owner(object: &Value) -> String {
    let owners = items(object, "metadata/ownerReferences");
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return "<none>".to_owned();
    };
    let kind = text(owner, "kind").to_lowercase();
    match text(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{}", text(owner, "name")),
        None => format!("{kind}/{}", text(owner, "name")),
    }
}

fn completions(job: &Value) -> String {
    let done = number(job, "status/succeeded");
    match (at(job, "spec/completions").as_i64(), number(job, "spec/parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, at_once @ 2..) => format!("{done}/1 of {at_once}"),
        (None, _) => format!("{done}/1"),
    }
}

fn duration(job: &Value, now: Timestamp) -> String {
    let time = |path: &str| text(job, path).parse::<Timestamp>().ok();
    let Some(begun) = time("status/startTime") else { return String::new() };
    let ended = time("status/completionTime").unwrap_or(now);
    lasting(ended.duration_since(begun).as_secs())
}

fn job_status(job: &Value) -> &'static str {
    let shown = [
        ("Complete", "Complete"),
        ("Failed", "Failed"),
        ("", "Terminating"),
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ];
    let is = |kind: &str| if kind.is_empty() { is_going(job) } else { is_true(job, kind) };
    shown.into_iter().find(|(kind, _)| is(kind)).map_or("Running", |(_, shown)| shown)
}

fn cron_job(object: &Value, now: Timestamp) -> Value {
    let suspended = match at(object, "spec/suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = match at(object, "status/lastScheduleTime") {
        Value::Null => "<none>".into(),
        time => since(time, now),
    };
    let job = at(object, "spec/jobTemplate/spec");
    let [names, images] = containers(at(job, "template/spec"));
    json!([
        text(object, "metadata/name"),
        text(object, "spec/schedule"),
        text_or(object, "spec/timeZone", "<none>"),
        suspended,
        count(object, "status/active"),
        last,
        since(at(object, "metadata/creationTimestamp"), now),
        names,
        images,
        or_none(selector(at(job, "selector")))
    ])
}

/// The metrics of an autoscaler: the first two, and the number of the others.
fn load(object: &Value) -> String {
    let current = items(object, "status/currentMetrics");
    let list: Vec<String> = items(object, "spec/metrics")
        .iter()
        .enumerate()
        .map(|(index, metric)| measure(metric, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    match list.len() {
        0 => "<none>".to_owned(),
        1 | 2 => list.join(", "),
        many => format!("{} + {} more...", list[..2].join(", "), many - 2),
    }
}

/// One metric of an autoscaler, its current and its target value.
fn measure(metric: &Value, current: &Value) -> String {
    let (member, named) = match text(metric, "type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (wanted, current) = (&metric[member]["target"], &current[member]["current"]);
    let percent = |place: &Value| Some(format!("{}%", place["averageUtilization"].as_i64()?));
    let average = text(wanted, "averageValue");
    let unknown = "<unknown>";
    if named {
        let name = text(&metric[member], "name");
        return if average.is_empty() {
            let now = percent(current).unwrap_or(unknown.to_owned());
            format!("{name}: {now}/{}", percent(wanted).unwrap_or("<auto>".to_owned()))
        } else {
            format!("{name}: {}/{average}", text_or(current, "averageValue", unknown))
        };
    }
    match (average, member) {
        ("", _) => format!("{}/{}", text_or(current, "value", unknown), text(wanted, "value")),
        (average, "pods") => format!("{}/{average}", text_or(current, "averageValue", unknown)),
        (average, _) => format!("{}/{average} (avg)", text_or(current, "averageValue", unknown)),
    }
}
