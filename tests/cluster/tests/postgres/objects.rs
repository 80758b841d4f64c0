//! The pod, the original's objects, and the definition.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, eventually, kubelet};
use serde_json::{Value, json};

use crate::stage::{ALL, NAME, OLD, POSTGRESQL, SAMPLE, is_owned, made, stage, synced};

#[tokio::test(flavor = "multi_thread")]
async fn pod_is_labelled_when_its_data_is_prepared_and_is_not_owned() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let at = (POSTGRESQL, ns, NAME);
    admin.apply_in(ns, SAMPLE).await?;
    synced(&stage, ns).await?;
    let pod = eventually("the Deployment has a pod", SOON, async || {
        let pods = kubelet::pods(admin, ns, ("name", NAME)).await?;
        let name = pods.first().and_then(|pod| pod["metadata"]["name"].as_str());
        Ok(name.map(str::to_owned).ok_or_else(|| "there is none".to_owned()))
    })
    .await?;
    let ended_with = async |code: u32| {
        let container =
            json!({"terminated": {"exitCode": code, "startedAt": null, "finishedAt": null}});
        let status = json!({"phase": "Pending", "initContainerStatuses": [{"name": "prepare",
            "state": container, "ready": code == 0, "restartCount": 0, "image": "postgres:15",
            "imageID": ""}]});
        admin.merge_status(Kind::POD, ns, &pod, &json!({ "status": status })).await
    };
    let of_pod = |one: &Value, is_ready: bool| {
        one["status"]["pod"] == *pod && one["status"]["appReady"] == is_ready
    };
    admin.until("its pod is reported", SOON, at, |one| of_pod(one, false)).await?;

    // Not while `prepare` has failed.
    ended_with(1).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    let seen = admin.must_get(Kind::POD, ns, &pod).await?;
    assert!(seen["metadata"]["labels"]["appReady"].is_null(), "{seen:#}");

    ended_with(0).await?;
    let labelled = |one: &Value| one["metadata"]["labels"]["appReady"] == "ok";
    let seen = admin.until("it is labelled", SOON, (Kind::POD, ns, &pod), labelled).await?;
    admin.until("and reported", SOON, at, |one| of_pod(one, true)).await?;
    let owners = seen["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(owners.len(), 1, "{owners:?}");
    assert_eq!(owners[0]["kind"], "ReplicaSet", "merged onto, not owned");
    let service = admin.must_get(Kind::SERVICE, ns, NAME).await?;
    assert_eq!(service["spec"]["selector"], json!({"name": NAME}), "it informs, it does not gate");

    // Taken off by hand, it is set again; of a pod that is replaced the next one waits its turn.
    admin.edit((Kind::POD, ns, &pod), &json!({"metadata": {"labels": {"appReady": null}}})).await?;
    admin.until("it is labelled again", SOON, (Kind::POD, ns, &pod), labelled).await?;
    kubelet::runs(admin, ns, &pod).await?;
    admin.delete(Kind::POD, ns, &pod).await?;
    let is_next = |one: &Value| {
        one["status"]["pod"].as_str().is_some_and(|name| name != pod)
            && one["status"]["appReady"] == false
    };
    let next = admin.until("the next pod is reported", SOON, at, is_next).await?;
    let next = next["status"]["pod"].as_str().unwrap();
    let next = admin.must_get(Kind::POD, ns, next).await?;
    assert!(next["metadata"]["labels"]["appReady"].is_null(), "{next:#}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn originals_service_and_deployment_are_adopted_as_the_same_objects() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let at = (POSTGRESQL, ns, NAME);
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": NAME, "namespace": ns},
        "spec": {"type": "NodePort", "selector": {"name": NAME}, "ports": [{"port": 5432}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": ns},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"name": NAME}},
            "template": {"metadata": {"labels": {"name": NAME}},
                "spec": {"containers": [{"name": "postgres", "image": "postgres:latest",
                    "ports": [{"containerPort": 5432}],
                    "env": [{"name": "POSTGRES_DB", "value": "foo"},
                        {"name": "POSTGRES_USER", "value": "foo"}]}]}}}});
    let before =
        [admin.create(&service.to_string()).await?, admin.create(&deployment.to_string()).await?];
    let kinds = [Kind::SERVICE, Kind::DEPLOYMENT];
    admin.apply_in(ns, SAMPLE).await?;
    stage.says(at, ("Synced", "False", "Conflict")).await?;
    for (kind, before) in kinds.into_iter().zip(&before) {
        let now = admin.must_get(kind, ns, NAME).await?;
        assert_eq!(now["spec"], before["spec"], "left alone without a word");
        assert!(now["metadata"]["ownerReferences"].is_null());
    }
    assert!(admin.list(Kind::CLAIM, ns).await?.is_empty(), "nothing is half-made");

    admin.edit(at, &json!({"metadata": {"annotations": {"innkeeper.dev/adopt": "true"}}})).await?;
    synced(&stage, ns).await?;
    for (kind, before) in kinds.into_iter().zip(&before) {
        let now = admin.must_get(kind, ns, NAME).await?;
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "the same object");
        assert!(is_owned(&now), "{now:#}");
    }
    let server = admin.must_get(Kind::DEPLOYMENT, ns, NAME).await?;
    let port = |service: &Value| service["spec"]["ports"][0]["nodePort"].clone();
    assert_eq!(port(&admin.must_get(Kind::SERVICE, ns, NAME).await?), port(&before[0]));
    // Its strategy cannot be changed to Recreate, so it never has a pod more than wanted.
    assert_eq!(
        server["spec"]["strategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
    );
    let pod = &server["spec"]["template"]["spec"];
    assert_eq!(pod["initContainers"][0]["name"], "prepare");
    assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
    assert_eq!(pod["containers"][0]["image"], "postgres:15");
    assert_eq!(made(admin, ns).await?, ALL);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn crd_refuses_specs_that_are_invalid_or_would_lose_data() -> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let crd = admin.must_get(Kind::CRD, "", "postgresqls.exp.wheel.jp").await?;
    let names = &crd["spec"]["names"];
    assert_eq!(names["singular"], "postgresql");
    assert_eq!(names["shortNames"], json!(["pg"]));
    let refused = async |manifest: &str| {
        admin.apply_in(ns, manifest).await.map_err(|error| format!("{error:#}")).unwrap_err()
    };
    for (from, to, expected) in [
        ("name: foodb\n", "name: foo.db\n", "at most 63 lower-case letters"),
        ("name: foodb\n", "name: 9db\n", "at most 63 lower-case letters"),
        ("db: foo\n", "db: template1\n", "PostgreSQL reserves this name"),
        ("user: foo\n", "user: pg_foo\n", "names that begin with pg_"),
        ("db: foo\n", "database: foo\n", "spec"),
        ("db: foo\n", "db: 5\n", ".spec.db: expected string"),
    ] {
        let why = refused(&OLD.replace(from, to)).await;
        assert!(why.contains(expected), "{to}: {why}");
    }
    assert!(admin.list(POSTGRESQL, ns).await?.is_empty());

    admin.apply_in(ns, OLD).await?;
    for (from, to, expected) in [
        ("db: foo\n", "db: bar\n", "the database cannot be renamed"),
        ("user: foo\n", "user: bar\n", "the user cannot be renamed"),
        ("db: foo\n", "db: foo\n  storage: {claimName: ../other}\n", "spec.storage.claimName"),
        ("db: foo\n", "db: foo\n  backup: {claimName: a/b}\n", "spec.backup.claimName"),
    ] {
        let why = refused(&OLD.replace(from, to)).await;
        assert!(why.contains(expected), "{to}: {why}");
    }
    Ok(())
}
