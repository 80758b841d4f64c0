//! Pods in tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::table::age::{age, since};
use crate::api::table::parts::{at, is_going, is_true, items, number, text, text_or};

/// Counters over the containers of a pod.
#[derive(Default)]
struct Counted {
    ready: usize,
    restarts: i64,
    /// When the last container ended, as a text that sorts by time.
    last: String,
}

impl Counted {
    fn restart(&mut self, status: &Value) {
        self.restarts += number(status, "restartCount");
        let ended = text(status, "lastState/terminated/finishedAt");
        if ended > self.last.as_str() {
            ended.clone_into(&mut self.last);
        }
    }
}

/// Why a container ended; never empty.
fn ending(terminated: &Value) -> String {
    match (text(terminated, "reason"), number(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Whether an init container is a sidecar.
fn is_sidecar(pod: &Value, name: &Value) -> bool {
    let containers = items(pod, "spec/initContainers");
    containers.iter().any(|one| one["name"] == *name && one["restartPolicy"] == "Always")
}

/// The cells of a pod.
pub(crate) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let phase = text(pod, "status/phase");
    let mut reason = text_or(pod, "status/reason", phase).to_owned();
    let gated = "SchedulingGated";
    if items(pod, "status/conditions")
        .iter()
        .any(|one| one["type"] == "PodScheduled" && one["reason"] == gated)
    {
        gated.clone_into(&mut reason);
    }
    let init = items(pod, "spec/initContainers");
    let sidecars = init.iter().filter(|one| one["restartPolicy"] == "Always").count();
    let total = items(pod, "spec/containers").len() + sidecars;

    let (mut all, mut restartable) = (Counted::default(), Counted::default());
    let mut initializing = false;
    for (index, status) in items(pod, "status/initContainerStatuses").iter().enumerate() {
        let sidecar = is_sidecar(pod, &status["name"]);
        all.restart(status);
        if sidecar {
            restartable.restart(status);
        }
        let ended = at(status, "state/terminated");
        let waits = text(status, "state/waiting/reason");
        if ended.is_object() && number(ended, "exitCode") == 0 {
            continue;
        }
        if sidecar && status["started"] == true {
            all.ready += usize::from(status["ready"] == true);
            continue;
        }
        reason = if ended.is_object() {
            format!("Init:{}", ending(ended))
        } else if !matches!(waits, "" | "PodInitializing") {
            format!("Init:{waits}")
        } else {
            format!("Init:{index}/{}", init.len())
        };
        initializing = true;
        break;
    }
    if !initializing || is_true(pod, "Initialized") {
        restartable.ready = all.ready;
        all = restartable;
        running(pod, &mut all, &mut reason);
    }
    if is_going(pod) {
        if text(pod, "status/reason") == "NodeLost" {
            "Unknown".clone_into(&mut reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut reason);
        }
    }
    let restarts = match (all.restarts, all.last.as_str()) {
        (0, _) | (_, "") => all.restarts.to_string(),
        (restarts, last) => format!("{restarts} ({} ago)", age(last, now)),
    };
    let none = "<none>";
    let address = items(pod, "status/podIPs").first().map_or("", |one| text(one, "ip"));
    vec![
        text(pod, "metadata/name").into(),
        format!("{}/{total}", all.ready).into(),
        reason.into(),
        restarts.into(),
        since(at(pod, "metadata/creationTimestamp"), now),
        if address.is_empty() { none } else { address }.into(),
        text_or(pod, "spec/nodeName", none).into(),
        text_or(pod, "status/nominatedNodeName", none).into(),
        gates(pod).into(),
    ]
}

/// Counts the containers without init containers, and picks the reason to show.
fn running(pod: &Value, counted: &mut Counted, reason: &mut String) {
    let (mut runs, mut failure) = (false, String::new());
    for status in items(pod, "status/containerStatuses").iter().rev() {
        counted.restart(status);
        let ended = at(status, "state/terminated");
        let waits = text(status, "state/waiting/reason");
        if !waits.is_empty() {
            waits.clone_into(reason);
        } else if ended.is_object() {
            *reason = ending(ended);
            if number(ended, "exitCode") != 0 {
                failure.clone_from(reason);
            }
        } else if status["ready"] == true && at(status, "state/running").is_object() {
            runs = true;
            counted.ready += 1;
        }
    }
    if reason == "Completed" {
        if runs && is_true(pod, "Ready") {
            "Running".clone_into(reason);
        } else if !failure.is_empty() {
            *reason = failure;
        } else if runs {
            "NotReady".clone_into(reason);
        }
    }
}

fn gates(pod: &Value) -> String {
    let gates = items(pod, "spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| is_true(pod, text(gate, "conditionType"))).count();
    format!("{open}/{}", gates.len())
}

/// The row conditions of a pod that has ended.
pub(crate) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match text(pod, "status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pod: &Value) -> String {
        let cells = cells(pod, "2026-11-22T00:10:00Z".parse().unwrap());
        let texts: Vec<&str> = cells[1..4].iter().filter_map(Value::as_str).collect();
        texts.join(" ")
    }

    fn pod(phase: &str, states: &[Value]) -> Value {
        let containers: Vec<Value> = states.iter().map(|_| json!({"name": "a"})).collect();
        json!({"spec": {"containers": containers},
            "status": {"phase": phase, "containerStatuses": states}})
    }

    #[test]
    fn pod_status_is_the_worst_state_of_its_containers() {
        let running = json!({"ready": true, "restartCount": 0, "state": {"running": {}}});
        assert_eq!(shown(&pod("Pending", &[])), "0/0 Pending 0");
        assert_eq!(shown(&pod("Running", std::slice::from_ref(&running))), "1/1 Running 0");
        let crashing = json!({"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"finishedAt": "2026-11-22T00:09:00Z"}}});
        assert_eq!(
            shown(&pod("Running", &[running.clone(), crashing])),
            "1/2 CrashLoopBackOff 3 (60s ago)"
        );
        let done = json!({"state": {"terminated": {"reason": "Completed", "exitCode": 0}}});
        let failed = json!({"state": {"terminated": {"exitCode": 2}}});
        assert_eq!(shown(&pod("Succeeded", std::slice::from_ref(&done))), "0/1 Completed 0");
        assert_eq!(shown(&pod("Failed", &[done.clone(), failed])), "0/2 ExitCode:2 0");
        assert_eq!(shown(&pod("Running", &[done, running])), "1/2 NotReady 0");
    }

    #[test]
    fn status_of_a_starting_pod_is_that_of_its_init_containers() {
        let mut begins =
            pod("Pending", &[json!({"state": {"waiting": {"reason": "PodInitializing"}}})]);
        begins["spec"]["initContainers"] = json!([{"name": "i"}, {"name": "j"}]);
        begins["status"]["initContainerStatuses"] = json!([{"name": "i", "state": {"terminated": {"exitCode": 0}}}, {"name": "j", "state": {"running": {}}}]);
        assert_eq!(shown(&begins), "0/1 Init:1/2 0");
        begins["metadata"] = json!({"deletionTimestamp": "2026-11-22T00:10:00Z"});
        assert_eq!(shown(&begins), "0/1 Terminating 0");
    }
}
