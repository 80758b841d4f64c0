//! A parent and its children, each reconciled by its own module.

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, AuditFilter, Kind, Stage, kubelet};
use serde_json::{Value, json};

use crate::stage::{IMO, KABOCHA, KURI, owner, pod_of, stage, until_none, until_phase};

const FINALIZER: &str = "finalizer.kabocha.example.com";

/// The sample's parent.
const PARENT: &str = "example-kabocha";

#[tokio::test(flavor = "multi_thread")]
async fn kabocha_reports_its_childrens_readiness_and_deletes_them_in_order() -> Result<()> {
    let none = json!({});
    let modules = [("kabocha", none.clone()), ("kuri", none.clone()), ("imo", none)];
    let (stage, _host, namespace) = stage(&modules).await?;
    let ns = &*namespace;
    stage.admin.apply_in(ns, include_str!("../../../../deploy/samples/kabocha.yaml")).await?;
    let at = (KABOCHA, ns, PARENT);
    let message = stage.says(at, ("Ready", "False", "ChildNotReady")).await?;
    assert!(
        message.contains("example-kabocha-red"),
        "the first child that is not ready: {message}"
    );

    each_imo_has_its_deployment_parent_and_size(&stage.admin, ns).await?;
    kabochas_have_the_finalizer(&stage.admin, ns).await?;
    finalizer_was_written_before_the_first_child(&stage, ns)?;
    readiness_of_children_reaches_the_parent(&stage, ns).await?;
    unready_pod_of_a_grandchild_reaches_the_parent(&stage, ns).await?;
    gone_from_the_top(&stage, ns).await
}

#[tokio::test(flavor = "multi_thread")]
async fn original_sample_passes_strict_validation_and_its_status_is_the_phase_alone() -> Result<()>
{
    // The settings of deploy/samples/module-kabocha.yaml.
    let settings = json!({"resyncPeriod": "90s", "manageStatus": false,
        "parameters": {"phase": ["setup"], "another_variable": {"of": "the role"}}});
    let (stage, _host, namespace) = stage(&[("kabocha", settings)]).await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let original = include_str!("../../../../deploy/samples/kabocha-original.yaml");
    // Strict field validation, as kubectl asks for by default.
    let applied = admin.apply_in(ns, original).await?;
    assert_eq!(applied[0]["spec"]["dummy"], "Imo, Kuri and Kabocha");
    let at = (KABOCHA, ns, PARENT);
    let seen = until_phase(&stage, at, "setup").await?;
    assert_eq!(seen["status"], json!({"phase": "setup"}));
    assert_eq!(seen["metadata"]["finalizers"], json!([FINALIZER]));
    // A misspelt field is still refused.
    let misspelt = original.replace("dummy", "dumy");
    let refused = admin.apply_in(ns, &misspelt).await.map_err(|error| format!("{error:#}"));
    assert!(refused.as_ref().is_err_and(|error| error.contains("spec.dumy")), "{refused:?}");
    admin.delete(KABOCHA, ns, PARENT).await?;
    admin.until_gone(SOON, at).await
}

/// Down to the Deployments, each by its own module, and a size is a number all the way.
async fn each_imo_has_its_deployment_parent_and_size(admin: &Admin, ns: &str) -> Result<()> {
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
    Ok(())
}

async fn kabochas_have_the_finalizer(admin: &Admin, ns: &str) -> Result<()> {
    for name in [PARENT, "example-kabocha-small"] {
        let one = admin.must_get(KABOCHA, ns, name).await?;
        assert_eq!(one["metadata"]["finalizers"], json!([FINALIZER]), "{name}");
    }
    Ok(())
}

fn finalizer_was_written_before_the_first_child(stage: &Stage, ns: &str) -> Result<()> {
    let writes = stage.plane.audit()?.events(&AuditFilter::new().writes().namespace(ns))?;
    let by_module = |resource: &str| {
        writes.iter().position(|one| one.resource == resource && one.impersonated.is_some())
    };
    let first = by_module("kabochas").unwrap();
    assert_eq!(writes[first].name, PARENT, "{writes:#?}");
    assert!(writes[first].uri.contains("finalizer"), "{}", writes[first].uri);
    for resource in ["imos", "kuris"] {
        assert!(first < by_module(resource).unwrap(), "{writes:#?}");
    }
    Ok(())
}

/// Readiness goes up, as each module reports it.
async fn readiness_of_children_reaches_the_parent(stage: &Stage, ns: &str) -> Result<()> {
    let (admin, at) = (&stage.admin, (KABOCHA, ns, PARENT));
    until_phase(stage, at, "setup").await?;
    kubelet::runs_all(admin, ns, ("app", "imo"), 4).await?;
    let three = |one: &Value| one["status"]["ready"] == "3/4";
    let parent = admin.until("three of four are ready", SOON, at, three).await?;
    let harvest = json!({"kind": "Kuri", "name": "example-kabocha-harvest", "ready": false,
        "message": "Job example-kabocha-harvest has not ended yet"});
    let children = parent["status"]["children"].as_array().unwrap();
    assert!(children.contains(&harvest), "{parent:#}");
    let pod = pod_of(admin, ns, "example-kabocha-harvest").await?;
    kubelet::ends(admin, ns, &pod, "Succeeded").await?;
    stage.says(at, ("Ready", "True", "AllReady")).await?;
    let whole = until_phase(stage, at, "ready").await?;
    assert_eq!(whole["status"]["ready"], "4/4");
    Ok(())
}

async fn unready_pod_of_a_grandchild_reaches_the_parent(stage: &Stage, ns: &str) -> Result<()> {
    let pods = kubelet::pods(&stage.admin, ns, ("app", "imo")).await?;
    let purple = pods
        .iter()
        .filter_map(|one| one["metadata"]["name"].as_str())
        .find(|name| name.starts_with("example-kabocha-small-purple"))
        .unwrap();
    kubelet::is_unready(&stage.admin, ns, purple).await?;
    let message = stage.says((KABOCHA, ns, PARENT), ("Ready", "False", "ChildNotReady")).await?;
    assert!(message.starts_with("Kabocha example-kabocha-small: Imo"), "{message}");
    Ok(())
}

/// Deletes the parent: all goes, in order.
async fn gone_from_the_top(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    admin.delete(KABOCHA, ns, PARENT).await?;
    admin.until_gone(2 * SOON, (KABOCHA, ns, PARENT)).await?;
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
