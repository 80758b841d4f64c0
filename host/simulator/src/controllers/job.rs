//! The Job controller: creates Pods until enough have succeeded, or too many have failed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{Client, JOBS, PODS};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::replica_set::{has_ended, is_ready, pod_of};
use crate::state::cluster::{Cluster, later};
use crate::state::controller_set::Workload;
use crate::types::members::{condition, counts, number, text, time};
use crate::types::object::{finalizers, is_terminating, meta, set_finalizers};
use crate::types::object_key::Key;

const CLIENT: Client = Client::controller("system:serviceaccount:kube-system:job-controller");
const TTL: Client =
    Client::controller("system:serviceaccount:kube-system:ttl-after-finished-controller");
const COMPONENT: &str = "job-controller";

/// The finalizer of a Pod until the Job has counted it.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The wait after the first failure; each further one doubles it.
const BACKOFF_S: i64 = 10;
const BACKOFF_MAX_S: i64 = 600;

/// How a Job ends.
struct End {
    good: bool,
    reason: &'static str,
    message: String,
}

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(job) = client::get(cluster, &JOBS, key) else { return let_go(cluster, key) };
    if is_finished(&job) {
        for pod in client::controlled_by(cluster, &job, &PODS) {
            remove_tracking_finalizer(cluster, &pod);
        }
        return expire(cluster, key, &job);
    }
    if is_terminating(&job) {
        for pod in
            client::controlled_by(cluster, &job, &PODS).iter().filter(|pod| is_terminating(pod))
        {
            remove_tracking_finalizer(cluster, pod);
        }
        return;
    }
    let mut job = Value::clone(&job);
    let before = job["status"].clone();
    count_ended(cluster, &mut job);
    let end = end_of(cluster, key, &job, &before);
    let suspended = job["spec"]["suspend"] == true;
    if end.is_some() || suspended {
        end_pods(cluster, &job);
    } else {
        create_pods(cluster, key, &job);
    }
    update_status(cluster, &mut job, &before, end, suspended);
}

/// Counts the Pods that have ended since, and removes their finalizer.
fn count_ended(cluster: &mut Cluster, job: &mut Value) {
    let (mut succeeded, mut failed) =
        (number(&job["status"]["succeeded"]), number(&job["status"]["failed"]));
    let mut indexes: BTreeSet<i64> = indexes(text(&job["status"]["completedIndexes"]));
    for pod in client::controlled_by(cluster, job, &PODS) {
        if !has_ended(&pod) || !finalizers(&pod).iter().any(|one| one == TRACKING) {
            continue;
        }
        if pod["status"]["phase"] == "Failed" {
            failed += 1;
        } else if is_indexed(job) {
            indexes.extend(index_of(&pod));
        } else {
            succeeded += 1;
        }
        remove_tracking_finalizer(cluster, &pod);
    }
    if is_indexed(job) {
        succeeded = i64::try_from(indexes.len()).unwrap_or(i64::MAX);
        if !indexes.is_empty() {
            job["status"]["completedIndexes"] = ranges(&indexes).into();
        }
    }
    job["status"]["succeeded"] = succeeded.into();
    job["status"]["failed"] = failed.into();
}

fn remove_tracking_finalizer(cluster: &mut Cluster, pod: &Value) {
    let kept = finalizers(pod);
    if !kept.iter().any(|one| one == TRACKING) {
        return;
    }
    let kept: Vec<String> = kept.into_iter().filter(|one| one != TRACKING).collect();
    let mut pod = pod.clone();
    set_finalizers(&mut pod, &kept);
    let _ = client::replace(cluster, &CLIENT, &PODS, "", pod);
}

/// Pods of a deleted Job are not counted.
fn let_go(cluster: &mut Cluster, key: &Key) {
    let Some(pods) = cluster.store.collection(&PODS.key()) else { return };
    let range = pods.objects.range((key.0.clone(), String::new())..);
    let left: Vec<Arc<ManagedObject>> = range
        .take_while(|(place, _)| place.0 == key.0)
        .map(|(_, stored)| stored.object())
        .filter(|pod| {
            crate::types::members::controller(pod)
                .is_some_and(|owner| owner["kind"] == "Job" && owner["name"] == key.1)
        })
        .collect();
    for pod in left {
        remove_tracking_finalizer(cluster, &pod);
    }
}

/// Whether the Job is over, and how.
fn end_of(cluster: &mut Cluster, key: &Key, job: &Value, before: &Value) -> Option<End> {
    let known = |name: &str| condition(before, name).filter(|one| one["status"] == "True");
    if let Some(known) = known("FailureTarget").or_else(|| known("SuccessCriteriaMet")) {
        let reason = match text(&known["reason"]) {
            "DeadlineExceeded" => "DeadlineExceeded",
            "CompletionsReached" => "CompletionsReached",
            _ => "BackoffLimitExceeded",
        };
        let good = known["type"] == "SuccessCriteriaMet";
        return Some(End { good, reason, message: text(&known["message"]).to_owned() });
    }
    let spec = &job["spec"];
    let (succeeded, failed) =
        (number(&job["status"]["succeeded"]), number(&job["status"]["failed"]));
    let pods = client::controlled_by(cluster, job, &PODS);
    let restarts: i64 = pods.iter().map(|pod| restarts(pod)).sum();
    let failed = if spec["template"]["spec"]["restartPolicy"] == "OnFailure" {
        failed.max(restarts)
    } else {
        failed
    };
    if failed > number(&spec["backoffLimit"]) {
        let message = "Job has reached the specified backoff limit".to_owned();
        return Some(End { good: false, reason: "BackoffLimitExceeded", message });
    }
    if let (Some(limit), Some(start)) =
        (spec["activeDeadlineSeconds"].as_i64(), before["startTime"].as_str())
    {
        let ends = later(time(&start.into()), SignedDuration::from_secs(limit));
        if ends <= cluster.now() {
            let message = "Job was active longer than specified deadline".to_owned();
            return Some(End { good: false, reason: "DeadlineExceeded", message });
        }
        cluster.work_queue.wake_at(ends, Workload::Jobs, key);
    }
    let active = pods.iter().filter(|pod| !has_ended(pod)).count();
    let enough = match spec["completions"].as_i64() {
        Some(completions) => succeeded >= completions,
        // A work queue Job ends after its first success, when the other Pods have ended.
        None => succeeded > 0 && active == 0,
    };
    let message = "Reached expected number of succeeded pods".to_owned();
    enough.then_some(End { good: true, reason: "CompletionsReached", message })
}

fn end_pods(cluster: &mut Cluster, job: &Value) {
    for pod in client::controlled_by(cluster, job, &PODS) {
        if is_terminating(&pod) || has_ended(&pod) {
            continue;
        }
        if client::delete(cluster, &CLIENT, &PODS, &pod, None) {
            let message = format!("Deleted pod: {}", meta(&pod, "name"));
            let event = EventSpec::normal(COMPONENT, "SuccessfulDelete", &message);
            event_recorder::record(cluster, &CLIENT, job, &event);
        }
    }
}

/// Creates the missing Pods, after a backoff if some have failed.
fn create_pods(cluster: &mut Cluster, key: &Key, job: &Value) {
    let spec = &job["spec"];
    let pods = client::controlled_by(cluster, job, &PODS);
    let active: Vec<&Arc<ManagedObject>> = pods.iter().filter(|pod| !has_ended(pod)).collect();
    let succeeded = number(&job["status"]["succeeded"]);
    let parallelism = spec["parallelism"].as_i64().unwrap_or(1);
    let wanted = match spec["completions"].as_i64() {
        Some(completions) => parallelism.min(completions - succeeded),
        None if succeeded > 0 => 0,
        None => parallelism,
    };
    let active_count = i64::try_from(active.len()).unwrap_or(i64::MAX);
    let missing = usize::try_from(wanted - active_count).unwrap_or(0);
    if missing == 0 {
        return;
    }
    let last = pods
        .iter()
        .filter(|pod| pod["status"]["phase"] == "Failed")
        .filter_map(|pod| ended_at(pod));
    if let Some(last) = last.max() {
        let times = u32::try_from(number(&job["status"]["failed"]) - 1).unwrap_or(0).min(16);
        let wait = SignedDuration::from_secs((BACKOFF_S << times).min(BACKOFF_MAX_S));
        let again = later(last, wait);
        if again > cluster.now() {
            cluster.work_queue.wake_at(again, Workload::Jobs, key);
            return;
        }
    }
    let done = indexes(text(&job["status"]["completedIndexes"]));
    let taken: BTreeSet<i64> = active.iter().filter_map(|pod| index_of(pod)).collect();
    let free = (0..).filter(|index| !done.contains(index) && !taken.contains(index));
    for index in free.take(missing) {
        if create_pod(cluster, job, index).is_err() {
            let again = client::after_seconds(cluster, BACKOFF_S);
            cluster.work_queue.wake_at(again, Workload::Jobs, key);
            return;
        }
    }
}

fn create_pod(cluster: &mut Cluster, job: &Value, index: i64) -> Result<(), ()> {
    let name = meta(job, "name");
    let mut pod = pod_of(&job["spec"]["template"], job, &JOBS);
    pod["metadata"]["generateName"] = format!("{name}-").into();
    let mut held = finalizers(&pod);
    held.push(TRACKING.to_owned());
    set_finalizers(&mut pod, &held);
    if is_indexed(job) {
        pod["metadata"]["generateName"] = format!("{name}-{index}-").into();
        pod["spec"]["hostname"] = format!("{name}-{index}").into();
        for member in ["labels", "annotations"] {
            pod["metadata"][member][INDEX] = index.to_string().into();
        }
        let path = format!("metadata.labels['{INDEX}']");
        let variable = json!({"name": "JOB_COMPLETION_INDEX",
            "valueFrom": {"fieldRef": {"fieldPath": path}}});
        for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
            match container["env"].as_array_mut() {
                Some(list) => list.push(variable.clone()),
                None => container["env"] = json!([variable]),
            }
        }
    }
    match client::create(cluster, &CLIENT, &PODS, meta(job, "namespace"), pod) {
        Ok(pod) => {
            let message = format!("Created pod: {}", meta(&pod, "name"));
            event_recorder::record(
                cluster,
                &CLIENT,
                job,
                &EventSpec::normal(COMPONENT, "SuccessfulCreate", &message),
            );
            Ok(())
        }
        Err(why) => {
            let message = format!("Error creating: {why}");
            event_recorder::record(
                cluster,
                &CLIENT,
                job,
                &EventSpec::warning(COMPONENT, "FailedCreate", &message),
            );
            Err(())
        }
    }
}

/// Writes the status.
fn update_status(
    cluster: &mut Cluster,
    job: &mut Value,
    before: &Value,
    end: Option<End>,
    suspended: bool,
) {
    let pods: Vec<Arc<ManagedObject>> = client::controlled_by(cluster, job, &PODS)
        .into_iter()
        .filter(|pod| !has_ended(pod))
        .collect();
    let count = |fits: &dyn Fn(&Value) -> bool| {
        i64::try_from(pods.iter().filter(|pod| fits(pod)).count()).unwrap_or(i64::MAX)
    };
    let active = count(&|pod| !is_terminating(pod));
    let terminating = count(&is_terminating);
    let mut status = counts(&[
        ("active", active),
        ("succeeded", number(&job["status"]["succeeded"])),
        ("failed", number(&job["status"]["failed"])),
    ]);
    status["ready"] = count(&|pod| !is_terminating(pod) && is_ready(pod)).into();
    status["terminating"] = terminating.into();
    status["uncountedTerminatedPods"] = json!({});
    for member in ["completedIndexes", "conditions", "startTime"] {
        if let Some(value) = job["status"].get(member) {
            status[member] = value.clone();
        }
    }
    if status["startTime"].is_null() && !suspended {
        status["startTime"] = cluster.time().into();
    }
    job["status"] = status;
    suspend(cluster, job, suspended);
    if let Some(end) = &end {
        let (first, last) =
            if end.good { ("SuccessCriteriaMet", "Complete") } else { ("FailureTarget", "Failed") };
        add_condition(cluster, job, first, end.reason, &end.message);
        if active == 0 && terminating == 0 {
            add_condition(cluster, job, last, end.reason, &end.message);
            if end.good {
                job["status"]["completionTime"] = cluster.time().into();
            }
        }
    }
    if job["status"] == *before {
        return;
    }
    if client::replace(cluster, &CLIENT, &JOBS, "status", job.clone()).is_err() {
        return;
    }
    if let Some(end) = end.filter(|_| is_finished(job)) {
        let event = if end.good {
            EventSpec::normal(COMPONENT, "Completed", "Job completed")
        } else {
            EventSpec::warning(COMPONENT, end.reason, &end.message)
        };
        event_recorder::record(cluster, &CLIENT, job, &event);
    }
}

fn suspend(cluster: &mut Cluster, job: &mut Value, suspended: bool) {
    let known = condition(&job["status"], "Suspended").map(|one| one["status"] == "True");
    let (status, reason, message) = match (known, suspended) {
        (None | Some(false), true) => ("True", "JobSuspended", "Job suspended"),
        (Some(true), false) => ("False", "JobResumed", "Job resumed"),
        _ => return,
    };
    if let Some(list) = job["status"]["conditions"].as_array_mut() {
        list.retain(|one| one["type"] != "Suspended");
    }
    add_condition(cluster, job, "Suspended", reason, message);
    let list = job["status"]["conditions"].as_array_mut().into_iter().flatten();
    for one in list.filter(|one| one["type"] == "Suspended") {
        one["status"] = status.into();
    }
    if let Some(map) = job["status"].as_object_mut().filter(|_| suspended) {
        map.remove("startTime");
    } else {
        job["status"]["startTime"] = cluster.time().into();
    }
    let reason = if suspended { "Suspended" } else { "Resumed" };
    event_recorder::record(cluster, &CLIENT, job, &EventSpec::normal(COMPONENT, reason, message));
}

fn add_condition(cluster: &Cluster, job: &mut Value, name: &str, reason: &str, message: &str) {
    if condition(&job["status"], name).is_some() {
        return;
    }
    let now = cluster.time();
    let new = json!({
        "type": name, "status": "True", "reason": reason, "message": message,
        "lastProbeTime": now, "lastTransitionTime": now,
    });
    match job["status"]["conditions"].as_array_mut() {
        Some(list) => list.push(new),
        None => job["status"]["conditions"] = json!([new]),
    }
}

/// Deletes a finished Job when its `ttlSecondsAfterFinished` is over.
fn expire(cluster: &mut Cluster, key: &Key, job: &Value) {
    let Some(seconds) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else { return };
    if is_terminating(job) {
        return;
    }
    let ended = ["Complete", "Failed"].iter().find_map(|name| condition(&job["status"], name));
    let ended = ended.map_or(cluster.now(), |one| time(&one["lastTransitionTime"]));
    let expires = later(ended, SignedDuration::from_secs(seconds));
    if expires <= cluster.now() {
        client::delete(cluster, &TTL, &JOBS, job, None);
    } else {
        cluster.work_queue.wake_at(expires, Workload::Jobs, key);
    }
}

/// Whether a Job is over.
pub(crate) fn is_finished(job: &Value) -> bool {
    ["Complete", "Failed"].iter().any(|name| {
        condition(&job["status"], name).is_some_and(|condition| condition["status"] == "True")
    })
}

fn is_indexed(job: &Value) -> bool {
    job["spec"]["completionMode"] == "Indexed"
}

fn index_of(pod: &Value) -> Option<i64> {
    pod["metadata"]["annotations"][INDEX].as_str()?.parse().ok()
}

fn restarts(pod: &Value) -> i64 {
    let list = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    list.map(|one| number(&one["restartCount"])).sum()
}

fn ended_at(pod: &Value) -> Option<jiff::Timestamp> {
    let list = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    list.filter_map(|one| one["state"]["terminated"]["finishedAt"].as_str()?.parse().ok()).max()
}

/// Reads indexes: `0,2-4`.
fn indexes(text: &str) -> BTreeSet<i64> {
    let parts = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i64>().ok()?..=last.parse().ok()?)
    });
    parts.flatten().collect()
}

/// Writes indexes as they are read.
fn ranges(indexes: &BTreeSet<i64>) -> String {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for &index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == index => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let text = |(first, last): &(i64, i64)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_indexes_are_printed_as_they_are_parsed() {
        for text in ["", "0", "0,1", "0-2", "1,3-5,7,8"] {
            assert_eq!(ranges(&indexes(text)), text);
        }
    }
}
