//! The guests imo, kuri and kabocha on a real API server: a parent and its children, each
//! reconciled by its own module; finalizers, parameters, periods and statuses.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::{HOST, SOON, message, output, says};
use innkeeper_cluster_tests::{
    Admin, AuditFilter, Host, Kind, Stage, condition, eventually, kubelet,
};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

const IMO: Kind = Kind::new("imo.example.com/v1alpha1", "Imo");
const KURI: Kind = Kind::new("kuri.example.com/v1alpha1", "Kuri");
const KABOCHA: Kind = Kind::new("kabocha.example.com/v1alpha1", "Kabocha");
const FINALIZER: &str = "finalizer.kabocha.example.com";

/// A stage with these of the three modules serving, and a namespace.
async fn stage(modules: &[(&str, Value)]) -> Result<(Stage, Host, String)> {
    let stage = Stage::new().await?;
    for (module, spec) in modules {
        let mut spec = spec.clone();
        spec["allowedCRDGroups"] = json!([format!("{module}.example.com")]);
        stage.module(module, module, &spec).await?;
    }
    let host = stage.host().await?;
    for (module, _) in modules {
        stage.ready(module).await?;
    }
    let namespace = stage.admin.namespace("family").await?;
    Ok((stage, host, namespace))
}

async fn edit(admin: &Admin, at: (Kind, &str, &str), patch: &Value) -> Result<Value> {
    admin.merge(at.0, at.1, at.2, "kubectl-edit", patch).await
}

/// Waits until `status.phase` is this.
async fn until_phase(stage: &Stage, at: (Kind, &str, &str), phase: &str) -> Result<Value> {
    let what = format!("{} {} has the phase {phase}", at.0, at.2);
    stage.admin.until(&what, SOON, at, |one| one["status"]["phase"] == phase).await
}

/// Waits until nothing of a kind is left in a namespace.
async fn until_none(admin: &Admin, kind: Kind, namespace: &str) -> Result<()> {
    eventually(&format!("no {kind} is left"), 2 * SOON, async || {
        let left = admin.list(kind, namespace).await?;
        let names: Vec<_> = left.iter().map(|one| one["metadata"]["name"].to_string()).collect();
        Ok(if names.is_empty() { Ok(()) } else { Err(names.join(", ")) })
    })
    .await
}

/// The pod that the controller manager has made for a Job.
async fn pod_of(admin: &Admin, namespace: &str, job: &str) -> Result<String> {
    eventually(&format!("Job {job} has a pod"), SOON, async || {
        let pods = kubelet::pods(admin, namespace, ("job-name", job)).await?;
        let name = pods.first().and_then(|pod| pod["metadata"]["name"].as_str());
        Ok(name.map(str::to_owned).ok_or_else(|| "there is none".to_owned()))
    })
    .await
}

fn owner(object: &Value) -> String {
    let owner = &object["metadata"]["ownerReferences"][0];
    format!("{} {}", owner["kind"].as_str().unwrap(), owner["name"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_reports_its_childrens_readiness_and_takes_them_down_in_order() -> Result<()> {
    let none = json!({});
    let modules = [("kabocha", none.clone()), ("kuri", none.clone()), ("imo", none)];
    let (stage, _host, namespace) = stage(&modules).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, include_str!("../../../deploy/samples/kabocha.yaml")).await?;
    let at = (KABOCHA, ns, "example-kabocha");
    let message = stage.says(at, ("Ready", "False", "ChildNotReady")).await?;
    assert!(
        message.contains("example-kabocha-red"),
        "the first child that is not ready: {message}"
    );

    // Down to the Deployments, each by its own module, and a size is a number all the way.
    for (name, parent, size) in [
        ("example-kabocha-red", "Kabocha example-kabocha", 2),
        ("example-kabocha-white", "Kabocha example-kabocha", 1),
        ("example-kabocha-small-purple", "Kabocha example-kabocha-small", 1),
    ] {
        let what = format!("the Deployment of {name}");
        let made = admin.until(&what, SOON, (Kind::DEPLOYMENT, ns, name), |_| true).await?;
        assert_eq!(owner(&made), format!("Imo {name}"));
        assert_eq!(made["spec"]["replicas"], json!(size));
        let imo = admin.must_get(IMO, ns, name).await?;
        assert_eq!(owner(&imo), parent);
        assert_eq!(imo["spec"]["size"], json!(size));
    }
    let small = admin.must_get(KABOCHA, ns, "example-kabocha-small").await?;
    for (one, kind) in
        [(&admin.must_get(at.0, ns, at.2).await?, "the parent"), (&small, "the child")]
    {
        assert_eq!(one["metadata"]["finalizers"], json!([FINALIZER]), "{kind}");
    }
    // The finalizer was written before the first child.
    let writes = stage.plane.audit()?.events(&AuditFilter::new().writes().namespace(ns))?;
    let by_module = |resource: &str| {
        writes.iter().position(|one| one.resource == resource && one.impersonated.is_some())
    };
    let first = by_module("kabochas").unwrap();
    assert_eq!(writes[first].name, "example-kabocha", "{writes:#?}");
    assert!(writes[first].uri.contains("finalizer"), "{}", writes[first].uri);
    for resource in ["imos", "kuris"] {
        assert!(first < by_module(resource).unwrap(), "{writes:#?}");
    }

    // Readiness goes up, as each module says it.
    until_phase(&stage, at, "setup").await?;
    kubelet::runs_all(admin, ns, ("app", "imo"), 4).await?;
    let three = |one: &Value| one["status"]["ready"] == "3/4";
    let parent = admin.until("three of four are ready", SOON, at, three).await?;
    let harvest = json!({"kind": "Kuri", "name": "example-kabocha-harvest", "ready": false,
        "message": "Job example-kabocha-harvest has not ended yet"});
    assert!(parent["status"]["children"].as_array().unwrap().contains(&harvest), "{parent:#}");
    let pod = pod_of(admin, ns, "example-kabocha-harvest").await?;
    kubelet::ends(admin, ns, &pod, "Succeeded").await?;
    stage.says(at, ("Ready", "True", "AllReady")).await?;
    let whole = until_phase(&stage, at, "ready").await?;
    assert_eq!(whole["status"]["ready"], "4/4");

    // From the bottom to the top: a pod of a grandchild.
    let pods = kubelet::pods(admin, ns, ("app", "imo")).await?;
    let purple = pods
        .iter()
        .filter_map(|one| one["metadata"]["name"].as_str())
        .find(|name| name.starts_with("example-kabocha-small-purple"))
        .unwrap();
    kubelet::is_unready(admin, ns, purple).await?;
    let message = stage.says(at, ("Ready", "False", "ChildNotReady")).await?;
    assert!(message.starts_with("Kabocha example-kabocha-small: Imo"), "{message}");

    gone_from_the_top(&stage, ns).await
}

/// Deletes the parent: all goes, in order.
async fn gone_from_the_top(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    admin.delete(KABOCHA, ns, "example-kabocha").await?;
    admin.until_gone(2 * SOON, (KABOCHA, ns, "example-kabocha")).await?;
    // At that moment no child is left, and no Job of a Kuri with its pods.
    for kind in [KABOCHA, KURI, IMO, Kind::JOB] {
        assert_eq!(admin.list(kind, ns).await?, [] as [Value; 0], "{kind}");
    }
    assert!(kubelet::pods(admin, ns, ("job-name", "example-kabocha-harvest")).await?.is_empty());
    for kind in [Kind::DEPLOYMENT, Kind::new("apps/v1", "ReplicaSet"), Kind::POD] {
        until_none(admin, kind, ns).await?;
    }

    let filter = AuditFilter::new().verb("delete").namespace(ns);
    let deletes = stage.plane.audit()?.events(&filter)?;
    let place = |name: &str| {
        let by_module = |one: &&innkeeper_cluster_tests::AuditEvent| {
            one.impersonated.is_some() && one.name == name
        };
        deletes.iter().filter(by_module).find_map(|one| one.succeeded().then(|| one.time.clone()))
    };
    let order = ["small", "small-purple", "harvest", "red"]
        .map(|name| place(&format!("example-kabocha-{name}")).unwrap());
    assert!(
        order.is_sorted(),
        "smaller ones with all in them, Kuris, Imos: {order:?} of {deletes:#?}"
    );
    Ok(())
}

async fn set_parameters(stage: &Stage, parameters: &Value) -> Result<()> {
    let patch = json!({"spec": {"parameters": parameters}});
    edit(&stage.admin, (Kind::MODULE, "", "kuri"), &patch).await?;
    Ok(())
}

fn kuri(namespace: &str, name: &str) -> String {
    json!({"apiVersion": KURI.api_version, "kind": KURI.kind,
        "metadata": {"name": name, "namespace": namespace}})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn clean_up_takes_the_job_and_its_pods_before_the_kuri_goes() -> Result<()> {
    let (stage, _host, namespace) = stage(&[("kuri", json!({}))]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, include_str!("../../../deploy/samples/kuri.yaml")).await?;
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
    edit(admin, at, &json!({"spec": {"command": ["echo", "again"]}})).await?;
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
async fn what_kuri_does_is_a_parameter_of_its_module() -> Result<()> {
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

    // Without `cleanup` a Kuri goes at once, and its Job after it.
    set_parameters(&stage, &json!({"operations": ["deploy"]})).await?;
    stage.ready("kuri").await?;
    kubelet::hold(admin, ns, &pod, true).await?;
    admin.delete(KURI, ns, "first").await?;
    admin.until_gone(SOON, (KURI, ns, "first")).await?;
    admin.must_get(Kind::POD, ns, &pod).await?;
    kubelet::hold(admin, ns, &pod, false).await?;
    admin.until_gone(2 * SOON, (Kind::JOB, ns, "first")).await?;

    // Without `deploy` the Jobs go that were made.
    set_parameters(&stage, &json!({"operations": ["cleanup"]})).await?;
    stage.ready("kuri").await?;
    let at = (KURI, ns, "second");
    stage.says(at, ("Ready", "True", "Clean")).await?;
    until_phase(&stage, at, "clean").await?;
    assert!(admin.get(Kind::JOB, ns, "second").await?.is_none());
    assert!(kubelet::pods(admin, ns, ("job-name", "second")).await?.is_empty());

    // And back.
    set_parameters(&stage, &json!({"operations": ["deploy", "cleanup"]})).await?;
    pod_of(admin, ns, "second").await?;
    until_phase(&stage, at, "setup").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_shows_what_its_last_run_came_to() -> Result<()> {
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

/// How often the guest of a module has been run.
async fn runs(host: &Host, module: &str) -> Result<f64> {
    let label = format!("module=\"{module}\"");
    Ok(host
        .metric("innkeeper_guest_call_duration_seconds_count", &[&*label])
        .await?
        .unwrap_or_default())
}

/// Waits until a guest has been run three times more.
async fn until_run_again(host: &Host, module: &str) -> Result<()> {
    let before = runs(host, module).await?;
    eventually(&format!("{module} is run from time to time"), SOON, async || {
        let now = runs(host, module).await?;
        Ok(if now >= before + 3.0 { Ok(()) } else { Err(format!("{before}, then {now} runs")) })
    })
    .await
}

/// Waits until a guest is not run for a time, since nothing changes any more.
async fn until_at_rest(stage: &Stage, host: &Host, module: &str) -> Result<()> {
    eventually(&format!("{module} is not run without a reason"), SOON, async || {
        let before = runs(host, module).await?;
        stage.quiet(Duration::from_secs(3)).await?;
        let after = runs(host, module).await?;
        Ok(if after <= before { Ok(()) } else { Err(format!("{before}, then {after} runs")) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_period_of_the_module_or_of_the_object_runs_the_guest_when_nothing_changes() -> Result<()>
{
    let (stage, host, namespace) = stage(&[("imo", json!({}))]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    admin.apply_in(ns, include_str!("../../../deploy/samples/imo.yaml")).await?;
    admin
        .apply_in(
            ns,
            &json!({"apiVersion": IMO.api_version, "kind": IMO.kind,
        "metadata": {"name": "other"}})
            .to_string(),
        )
        .await?;
    stage.all_synced(IMO, ns, 2).await?;
    let at = (IMO, ns, "example-imo");
    let module = (Kind::MODULE, "", "imo");
    // The guest asks for no period.
    until_at_rest(&stage, &host, "imo").await?;

    edit(admin, module, &json!({"spec": {"resyncPeriod": "1s"}})).await?;
    stage.ready("imo").await?;
    stage.quiet(Duration::from_secs(1)).await?;
    let mark = stage.plane.audit()?.mark()?;
    until_run_again(&host, "imo").await?;
    let writes = stage.plane.audit()?.since(mark, &AuditFilter::new().writes().user(HOST))?;
    assert!(writes.is_empty(), "looked at, and nothing to write: {writes:?}");

    // An object says otherwise: first that it is never to be looked at, as the other is not either.
    edit(admin, module, &json!({"spec": {"resyncPeriod": "1h"}})).await?;
    stage.ready("imo").await?;
    until_at_rest(&stage, &host, "imo").await?;
    let annotated = |period: Value| json!({"metadata": {"annotations": {"innkeeper.dev/resync-period": period}}});
    edit(admin, at, &annotated(json!("1s"))).await?;
    until_run_again(&host, "imo").await?;
    edit(admin, at, &annotated(json!("0s"))).await?;
    until_at_rest(&stage, &host, "imo").await?;
    edit(admin, at, &annotated(json!("often"))).await?;
    eventually("an Event says what is wrong", SOON, async || {
        let events = admin.list(Kind::EVENT, ns).await?;
        let found = events.iter().find(|one| one["reason"] == "InvalidResyncPeriod");
        let note = found.and_then(|one| one["message"].as_str()).unwrap_or_default();
        let whole = note.contains("innkeeper.dev/resync-period") && note.contains("\"often\"");
        Ok(if whole { Ok(()) } else { Err(format!("{events:?}")) })
    })
    .await?;
    edit(admin, at, &annotated(Value::Null)).await?;

    // One that is too short, or none at all, is reported on the Module.
    edit(admin, module, &json!({"spec": {"resyncPeriod": "10ms"}})).await?;
    eventually("the Module says what is wrong", SOON, async || {
        let module = admin.must_get(Kind::MODULE, "", "imo").await?;
        let conditions = module["status"]["conditions"].to_string();
        Ok(if conditions.contains("10ms is too short: at least 1s") {
            Ok(())
        } else {
            Err(conditions)
        })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guests_own_status_is_all_there_is_where_the_module_says_so() -> Result<()> {
    let (stage, _host, namespace) = stage(&[("imo", json!({"manageStatus": false}))]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let applied = admin.apply_in(ns, include_str!("../../../deploy/samples/imo.yaml")).await?;
    assert_eq!(applied[0]["spec"], json!({"size": 3}));
    let at = (IMO, ns, "example-imo");
    let seen = until_phase(&stage, at, "setup").await?;
    stage.says(at, ("Ready", "False", "InProgress")).await?;
    let deployment = admin.must_get(Kind::DEPLOYMENT, ns, "example-imo").await?;
    assert_eq!(deployment["spec"]["replicas"], json!(3), "a number");
    assert_eq!(deployment["spec"]["template"]["metadata"]["labels"], json!({"app": "imo"}));
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "nginx");
    assert_eq!(container["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]));
    assert_eq!(seen["status"]["observedGeneration"], Value::Null);

    kubelet::runs_all(admin, ns, ("app", "imo"), 3).await?;
    let seen = until_phase(&stage, at, "ready").await?;
    let mut status = seen["status"].clone();
    let conditions = status.as_object_mut().unwrap().remove("conditions").unwrap();
    assert_eq!(status, json!({"phase": "ready", "replicas": 3, "readyReplicas": 3}));
    let [ready] = &conditions.as_array().unwrap()[..] else { panic!("{conditions:#}") };
    let since = ready["lastTransitionTime"].as_str().unwrap().to_owned();
    assert!(since.ends_with('Z') && since.len() == "2026-01-01T00:00:00Z".len(), "{since}");
    assert_eq!(
        *ready,
        json!({"type": "Ready", "status": "True", "reason": "AllReady",
            "message": ready["message"], "lastTransitionTime": since})
    );

    // A text is not a number, for the server and for everybody.
    let wrong = |size: Value| json!({"spec": {"size": size}});
    for (size, why) in
        [(json!("3"), "must be of type integer"), (json!(-1), "greater than or equal to 0")]
    {
        let refused = edit(admin, at, &wrong(size)).await.map_err(|error| format!("{error:#}"));
        assert!(refused.as_ref().is_err_and(|error| error.contains(why)), "{refused:?}");
    }
    edit(admin, at, &wrong(json!(5))).await?;
    let five = |one: &Value| one["spec"]["replicas"] == json!(5);
    admin.until("five are wanted", SOON, (Kind::DEPLOYMENT, ns, "example-imo"), five).await?;

    // The host's own, as soon as the Module wants them.
    edit(admin, (Kind::MODULE, "", "imo"), &json!({"spec": {"manageStatus": null}})).await?;
    stage.says(at, ("Synced", "True", "Applied")).await?;
    let is_whole = |one: &Value| {
        one["status"]["observedGeneration"] == one["metadata"]["generation"]
            && says(one, "Ready", "False", "InProgress")
    };
    admin.until("the generation is reported", SOON, at, is_whole).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_is_none_is_refused_with_its_place_and_nothing_is_half_said() -> Result<()>
{
    let stage = Stage::new().await?;
    let crd: Value = serde_json::from_str(include_str!("../../../guests/imo/crd.json"))?;
    for crd in stage.admin.apply(&crd.to_string()).await? {
        stage.admin.until_established(&crd).await?;
    }
    // A guest that says what the SDK would not let it say.
    let manifest = json!({"name": "imo", "version": "1.0.0",
        "primary": {"apiVersion": IMO.api_version, "kind": IMO.kind, "plural": "imos"}});
    let says = |reason: &str| {
        let condition = json!({"type": "Tasty", "status": "True", "reason": reason, "message": ""});
        let outcome = json!({"status": {"phase": "setup"}, "conditions": [condition]});
        Tiny::default().manifest(&manifest.to_string()).outcome(0, &outcome.to_string()).component()
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("guest.wasm");
    std::fs::write(&file, says("Because"))?;
    let rights = output(&["rbac", &file.to_string_lossy(), "--module", "imo"]).await?;
    stage.admin.apply(&rights).await?;
    stage.module_of_bytes("imo", &says("not one word"), &json!({})).await?;
    let _host = stage.host().await?;
    stage.ready("imo").await?;
    let (admin, ns) = (&stage.admin, &*stage.admin.namespace("family").await?);
    admin.apply_in(ns, include_str!("../../../deploy/samples/imo.yaml")).await?;
    let at = (IMO, ns, "example-imo");
    let refused = |one: &Value| {
        let text = message(one, "Synced");
        condition(one, "Synced") == Some("False") && text.contains("conditions[0].reason")
    };
    let seen = admin.until("the condition is refused", SOON, at, refused).await?;
    assert_eq!(condition(&seen, "Tasty"), None);
    assert_eq!(seen["status"]["phase"], Value::Null, "nothing of such an answer is taken");

    stage.push_bytes("imo", &says("Because")).await?;
    stage.says(at, ("Tasty", "True", "Because")).await?;
    stage.says(at, ("Synced", "True", "Applied")).await?;
    Ok(())
}
