//! Kuri: its Job, its parameters, and its status.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, Stage, eventually, kubelet};
use serde_json::{Value, json};

use crate::stage::{KURI, pod_of, stage, until_phase, until_run_again};

async fn set_parameters(stage: &Stage, parameters: &Value) -> Result<()> {
    let patch = json!({"spec": {"parameters": parameters}});
    stage.admin.edit((Kind::MODULE, "", "kuri"), &patch).await?;
    Ok(())
}

pub(crate) fn kuri(namespace: &str, name: &str) -> String {
    json!({"apiVersion": KURI.api_version, "kind": KURI.kind,
        "metadata": {"name": name, "namespace": namespace}})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn kuri_cleanup_deletes_the_job_and_its_pods_before_the_kuri() -> Result<()> {
    let (stage, _host, namespace) = stage(&[("kuri", json!({}))]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, include_str!("../../../../deploy/samples/kuri.yaml")).await?;
    let at = (KURI, ns, "example-kuri");
    until_phase(&stage, at, "setup").await?;
    // The Job controller counts the pods that it waits for by the Job's name: if a Job is replaced
    // before its pod is seen, the next one of its name has no pod for five minutes.
    let at_job = (Kind::JOB, ns, "example-kuri");
    let has_pod = |one: &Value| one["status"]["active"] == 1;
    let job = admin.until("the Job has its pod", SOON, at_job, has_pod).await?;
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["name"], &container["image"]), (&json!("kuri"), &json!("busybox")));
    assert_eq!(container["command"], json!(["echo", "kuri"]));

    // Another command is another Job, since a Job's template is immutable.
    admin.edit(at, &json!({"spec": {"command": ["echo", "again"]}})).await?;
    let is_another = |one: &Value| {
        one["metadata"]["uid"] != job["metadata"]["uid"]
            && one["spec"]["template"]["spec"]["containers"][0]["command"]
                == json!(["echo", "again"])
    };
    let another = admin.until("there is another Job", SOON, at_job, is_another).await?;
    let uid = &another["metadata"]["uid"];

    // A pod that takes its time holds the Kuri.
    let pod = eventually("the new Job has a pod", SOON, async || {
        let pods = kubelet::pods(admin, ns, ("job-name", "example-kuri")).await?;
        let mut its =
            pods.iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == *uid);
        Ok(its
            .find_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
            .ok_or_else(|| format!("{} pods, none of it", pods.len())))
    })
    .await?;
    kubelet::hold(admin, ns, &pod, true).await?;
    kubelet::runs(admin, ns, &pod).await?;
    admin.delete(KURI, ns, "example-kuri").await?;
    admin.until_gone(SOON, at_job).await?;
    stage.says(at, ("Ready", "False", "CleaningUp")).await?;
    until_phase(&stage, at, "cleanup").await?;
    let going = |one: &Value| one["metadata"]["deletionTimestamp"].is_string();
    admin.until("the pod goes", SOON, (Kind::POD, ns, &pod), going).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    admin.must_get(KURI, ns, "example-kuri").await?;

    kubelet::hold(admin, ns, &pod, false).await?;
    admin.until_gone(SOON, at).await?;
    assert!(admin.list(Kind::POD, ns).await?.is_empty(), "the pods went first");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kuri_operations_follow_the_parameters_of_the_module() -> Result<()> {
    let parameters = json!({"parameters": {"operations": ["deploy", "cleanup"]}});
    let (stage, _host, namespace) = stage(&[("kuri", parameters)]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply(&kuri(ns, "first")).await?;
    let pod = pod_of(admin, ns, "first").await?;
    kubelet::ends(admin, ns, &pod, "Succeeded").await?;
    until_phase(&stage, (KURI, ns, "first"), "done").await?;
    stage.says((KURI, ns, "first"), ("Ready", "True", "Succeeded")).await?;

    // Parameters that do not fit are refused and say why; the old ones go on.
    set_parameters(&stage, &json!({"operations": ["deploy", "destroy"]})).await?;
    let message = stage.module_says("kuri", "Ready", "False", "InvalidParameters").await?;
    assert!(message.contains("spec.parameters.operations[1]"), "the place is named: {message}");
    assert!(message.contains("one of 'deploy', 'cleanup'"), "and what fits: {message}");
    stage.module_says("kuri", "Serving", "True", "RevisionActive").await?;
    admin.apply(&kuri(ns, "second")).await?;
    pod_of(admin, ns, "second").await?;

    // Without `cleanup` a Kuri goes at once, and its Job after it. A period has no effect.
    set_parameters(&stage, &json!({"operations": ["deploy"]})).await?;
    stage.ready("kuri").await?;
    let at = (KURI, ns, "second");
    admin.edit(at, &json!({"spec": {"period": "10m"}})).await?;
    stage.says(at, ("Periodic", "False", "PeriodNeedsCleanup")).await?;
    admin.edit(at, &json!({"spec": {"period": null}})).await?;
    stage.says(at, ("Periodic", "False", "RunsOnce")).await?;
    kubelet::hold(admin, ns, &pod, true).await?;
    admin.delete(KURI, ns, "first").await?;
    admin.until_gone(SOON, (KURI, ns, "first")).await?;
    admin.must_get(Kind::POD, ns, &pod).await?;
    kubelet::hold(admin, ns, &pod, false).await?;
    admin.until_gone(2 * SOON, (Kind::JOB, ns, "first")).await?;

    // Without `deploy` the Jobs go that were made.
    set_parameters(&stage, &json!({"operations": ["cleanup"]})).await?;
    stage.ready("kuri").await?;
    stage.says(at, ("Ready", "True", "Clean")).await?;
    until_phase(&stage, at, "clean").await?;
    assert!(admin.get(Kind::JOB, ns, "second").await?.is_none());
    assert!(kubelet::pods(admin, ns, ("job-name", "second")).await?.is_empty());

    // And back.
    set_parameters(&stage, &json!({"operations": ["deploy", "cleanup"]})).await?;
    pod_of(admin, ns, "second").await?;
    until_phase(&stage, at, "setup").await?;

    // A period of nonsense: the API server refuses what is no duration, the guest the others.
    let with_period = |period: &str| json!({"spec": {"period": period}});
    let refused = admin.edit(at, &with_period("-30s")).await.map_err(|error| format!("{error:#}"));
    assert!(refused.as_ref().is_err_and(|error| error.contains("spec.period")), "{refused:?}");
    admin.edit(at, &with_period("0s")).await?;
    stage.says(at, ("Periodic", "False", "InvalidPeriod")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn periodic_kuri_runs_again_when_the_pods_of_its_last_run_are_deleted() -> Result<()> {
    let (stage, _host, namespace) = stage(&[("kuri", json!({}))]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let periodic = json!({"apiVersion": KURI.api_version, "kind": KURI.kind,
        "metadata": {"name": "chestnut"}, "spec": {"period": "10s", "deadlineSeconds": 600}});
    admin.apply_in(ns, &periodic.to_string()).await?;
    let (at, at_job) = ((KURI, ns, "chestnut"), (Kind::JOB, ns, "chestnut"));
    let first = pod_of(admin, ns, "chestnut").await?;
    let job = admin.must_get(Kind::JOB, ns, "chestnut").await?;
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 600);
    stage.says(at, ("Periodic", "True", "Scheduled")).await?;
    kubelet::hold(admin, ns, &first, true).await?;
    kubelet::ends(admin, ns, &first, "Succeeded").await?;
    let has_runs = |runs: u32| move |one: &Value| one["status"]["runs"] == runs;
    admin.until("the first run is reported", SOON, at, has_runs(1)).await?;

    // The period passes, and a pod that takes its time holds the next run.
    admin.until_gone(SOON, at_job).await?;
    stage.says(at, ("Periodic", "True", "CleaningUp")).await?;
    stage.says(at, ("Ready", "True", "Succeeded")).await?;
    stage.quiet(Duration::from_secs(2)).await?;
    assert!(admin.get(Kind::JOB, ns, "chestnut").await?.is_none());
    admin.must_get(Kind::POD, ns, &first).await?;
    kubelet::hold(admin, ns, &first, false).await?;
    let is_another = |one: &Value| one["metadata"]["uid"] != job["metadata"]["uid"];
    admin.until("there is another Job", SOON, at_job, is_another).await?;
    assert!(admin.get(Kind::POD, ns, &first).await?.is_none(), "the pod went first");

    let second = pod_of(admin, ns, "chestnut").await?;
    kubelet::ends(admin, ns, &second, "Succeeded").await?;
    let shown = admin.until("the second run is reported", SOON, at, has_runs(2)).await?;
    let history = shown["status"]["history"].as_array().unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[1]["start"], job["metadata"]["creationTimestamp"]);
    admin.delete(KURI, ns, "chestnut").await?;
    admin.until_gone(SOON, at).await?;
    assert!(admin.list(Kind::POD, ns).await?.is_empty(), "the pods went first");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn status_last_run_changes_only_with_its_outcome() -> Result<()> {
    let (stage, host, namespace) = stage(&[("kuri", json!({"resyncPeriod": "1s"}))]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let last_run = async |what: &str, wanted: Value| {
        let shows = |one: &Value| {
            let run = &one["status"]["lastRun"];
            ["ok", "changed", "failures"].iter().all(|name| run[name] == wanted[name])
                && run["completionTime"].is_string()
        };
        let primary = admin.until(what, SOON, (KURI, ns, "first"), shows).await?;
        anyhow::Ok(primary["status"]["lastRun"].clone())
    };
    // Somebody has a Job of that name.
    let job = json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "first", "namespace": ns},
        "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "theirs", "image": "busybox"}]}}}});
    admin.apply(&job.to_string()).await?;
    admin.apply(&kuri(ns, "first")).await?;
    let failed = json!({"ok": 0, "changed": 0, "failures": 1});
    let first = last_run("a failure is reported", failed.clone()).await?;
    until_run_again(&host, "kuri").await?;
    assert_eq!(last_run("it is reported once", failed).await?, first);

    admin.delete(Kind::JOB, ns, "first").await?;
    let changed = json!({"ok": 1, "changed": 1, "failures": 0});
    let second = last_run("what was made is reported", changed.clone()).await?;
    // What changes nothing leaves it: runs by the period, and another status.
    let pod = pod_of(admin, ns, "first").await?;
    kubelet::ends(admin, ns, &pod, "Succeeded").await?;
    until_phase(&stage, (KURI, ns, "first"), "done").await?;
    until_run_again(&host, "kuri").await?;
    assert_eq!(last_run("it stays", changed).await?, second);
    Ok(())
}
