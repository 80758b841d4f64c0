//! The CronJob controller: creates Jobs on a schedule.

use std::sync::Arc;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{CRON_JOBS, Client, JOBS, owned_by};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::job::is_finished;
use crate::state::cluster::{Cluster, later};
use crate::state::controller_set::Workload;
use crate::types::cron::Schedule;
use crate::types::members::{condition, text, time};
use crate::types::object::{is_terminating, meta};
use crate::types::object_key::Key;

const CLIENT: Client = Client::controller("system:serviceaccount:kube-system:cronjob-controller");
const COMPONENT: &str = "cronjob-controller";
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// With more missed times than this, the controller computes only the last.
const MISSED_MAX: usize = 10_000;

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(cron) = client::get(cluster, &CRON_JOBS, key) else { return };
    let mut cron = Arc::unwrap_or_clone(cron);
    let before = cron["status"].clone();
    let jobs = client::controlled_by(cluster, &cron, &JOBS);
    forget_finished(cluster, &mut cron, &jobs);
    if !is_terminating(&cron) {
        delete_old_jobs(cluster, &cron, &jobs);
        if cron["spec"]["suspend"] != true {
            run_if_due(cluster, key, &mut cron);
        }
    }
    if cron["status"] != before {
        let _ = client::replace(cluster, &CLIENT, &CRON_JOBS, "status", cron);
    }
}

/// Removes finished and deleted Jobs from the list of active Jobs.
fn forget_finished(cluster: &mut Cluster, cron: &mut Value, jobs: &[Arc<ManagedObject>]) {
    let active = cron["status"]["active"].as_array().cloned().unwrap_or_default();
    let mut kept = Vec::new();
    for reference in active {
        let job = jobs.iter().find(|job| job["metadata"]["uid"] == reference["uid"]);
        let Some(job) = job else { continue };
        if !is_finished(job) {
            kept.push(reference);
            continue;
        }
        let name = meta(job, "name");
        let complete = condition(&job["status"], "Complete").is_some();
        let how = if complete { "Complete" } else { "Failed" };
        let message = format!("Saw completed job: {name}, condition: {how}");
        event_recorder::record(
            cluster,
            &CLIENT,
            cron,
            &EventSpec::normal(COMPONENT, "SawCompletedJob", &message),
        );
        let ended = &job["status"]["completionTime"];
        if complete && time(ended) > time(&cron["status"]["lastSuccessfulTime"]) {
            cron["status"]["lastSuccessfulTime"] = ended.clone();
        }
    }
    if kept.is_empty() {
        if let Some(status) = cron["status"].as_object_mut() {
            status.remove("active");
        }
    } else {
        cron["status"]["active"] = kept.into();
    }
}

fn delete_old_jobs(cluster: &mut Cluster, cron: &Value, jobs: &[Arc<ManagedObject>]) {
    for (name, limit) in
        [("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")]
    {
        let Some(limit) = cron["spec"][limit].as_i64() else { continue };
        let mut over: Vec<&Arc<ManagedObject>> = jobs
            .iter()
            .filter(|job| is_finished(job) && condition(&job["status"], name).is_some())
            .filter(|job| !is_terminating(job))
            .collect();
        over.sort_by_key(|job| (time(&job["status"]["startTime"]), meta(job, "name").to_owned()));
        let surplus = over.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for job in over.into_iter().take(surplus) {
            if client::delete_in_background(cluster, &CLIENT, &JOBS, job) {
                let message = format!("Deleted job {}", meta(job, "name"));
                let event = EventSpec::normal(COMPONENT, "SuccessfulDelete", &message);
                event_recorder::record(cluster, &CLIENT, cron, &event);
            }
        }
    }
}

fn run_if_due(cluster: &mut Cluster, key: &Key, cron: &mut Value) {
    let spec = cron["spec"].clone();
    let Some(schedule) = Schedule::parse(text(&spec["schedule"])).filter(Schedule::is_runnable)
    else {
        let message = format!("unparseable schedule: {}", text(&spec["schedule"]));
        let event = EventSpec::warning(COMPONENT, "UnparseableSchedule", &message);
        return event_recorder::record(cluster, &CLIENT, cron, &event);
    };
    let zone = spec["timeZone"].as_str().map_or(Ok(TimeZone::UTC), TimeZone::get);
    let Ok(zone) = zone else {
        let message = format!("invalid timeZone: {}", spec["timeZone"]);
        let event = EventSpec::warning(COMPONENT, "UnknownTimeZone", &message);
        return event_recorder::record(cluster, &CLIENT, cron, &event);
    };
    let now = cluster.now();
    let created = time(&cron["metadata"]["creationTimestamp"]);
    let mut since = time(&cron["status"]["lastScheduleTime"]).max(created);
    let deadline = spec["startingDeadlineSeconds"].as_i64();
    if let Some(seconds) = deadline {
        since = since.max(later(now, SignedDuration::from_secs(-seconds)));
    }
    let mut due = None;
    for _ in 0..MISSED_MAX {
        match schedule.next(due.unwrap_or(since), &zone) {
            Some(next) if next <= now => due = Some(next),
            Some(next) => {
                cluster.work_queue.wake_at(next, Workload::CronJobs, key);
                break;
            }
            None => break,
        }
    }
    let Some(due) = due else { return };
    let active = cron["status"]["active"].as_array().cloned().unwrap_or_default();
    match text(&spec["concurrencyPolicy"]) {
        "Forbid" if !active.is_empty() => {
            let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
            let event = EventSpec::normal(COMPONENT, "JobAlreadyActive", message);
            return event_recorder::record(cluster, &CLIENT, cron, &event);
        }
        "Replace" => {
            for reference in &active {
                let place = (key.0.clone(), text(&reference["name"]).to_owned());
                if let Some(job) = client::get(cluster, &JOBS, &place)
                    && client::delete_in_background(cluster, &CLIENT, &JOBS, &job)
                {
                    let message = format!("Deleted job {}", place.1);
                    let event = EventSpec::normal(COMPONENT, "SuccessfulDelete", &message);
                    event_recorder::record(cluster, &CLIENT, cron, &event);
                }
            }
            if let Some(status) = cron["status"].as_object_mut() {
                status.remove("active");
            }
        }
        _ => {}
    }
    start_job(cluster, cron, due, &zone);
}

fn start_job(cluster: &mut Cluster, cron: &mut Value, due: jiff::Timestamp, zone: &TimeZone) {
    let template = &cron["spec"]["jobTemplate"];
    let name = format!("{}-{}", meta(cron, "name"), due.as_second() / 60);
    let mut job = json!({
        "metadata": {"name": name, "ownerReferences": owned_by(cron, &CRON_JOBS)},
        "spec": template["spec"],
    });
    for member in ["labels", "annotations"] {
        if let Some(value) = template["metadata"].get(member) {
            job["metadata"][member] = value.clone();
        }
    }
    let stamp = due.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
    job["metadata"]["annotations"][SCHEDULED] = stamp.replace("+00:00", "Z").into();
    let made = client::create(cluster, &CLIENT, &JOBS, meta(cron, "namespace"), job);
    match made {
        Ok(job) => {
            let message = format!("Created job {name}");
            event_recorder::record(
                cluster,
                &CLIENT,
                cron,
                &EventSpec::normal(COMPONENT, "SuccessfulCreate", &message),
            );
            let reference = json!({
                "kind": "Job", "namespace": meta(&job, "namespace"), "name": name,
                "uid": meta(&job, "uid"), "apiVersion": "batch/v1",
                "resourceVersion": meta(&job, "resourceVersion"),
            });
            match cron["status"]["active"].as_array_mut() {
                Some(list) => list.push(reference),
                None => cron["status"]["active"] = json!([reference]),
            }
        }
        // An earlier run created it.
        Err(why) if why.contains("already exists") => {}
        Err(why) => {
            let message = format!("Error creating job: {why}");
            let event = EventSpec::warning(COMPONENT, "FailedCreate", &message);
            return event_recorder::record(cluster, &CLIENT, cron, &event);
        }
    }
    cron["status"]["lastScheduleTime"] = due.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
}
