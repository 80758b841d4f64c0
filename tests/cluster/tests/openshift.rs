//! The overlay deploy/openshift and the pods of the guests. An API server does what OpenShift's
//! security context constraints `restricted-v2` do, by the policies of tests/cluster/openshift, and
//! enforces the Pod Security Standard `restricted`.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs;

use anyhow::{Result, ensure};
use innkeeper_cluster_tests::stage::{SOON, root};
use innkeeper_cluster_tests::{Admin, ControlPlane, Kind, Options, eventually};
use innkeeper_controlplane::Programs;
use serde::Deserialize as _;
use serde_json::{Value, json};

const RESTRICTED_V2: &str = include_str!("../openshift/restricted-v2.yaml");

/// The namespace of the host.
const SYSTEM: &str = "innkeeper-system";

/// The first id of the range of each namespace.
const FIRST_ID: u64 = 1_000_660_000;

/// A control plane with the stand-in for `restricted-v2`.
async fn openshift() -> Result<(ControlPlane, Admin)> {
    let options = Options {
        controller_manager: true,
        apiserver_flags: vec![
            "--feature-gates=MutatingAdmissionPolicy=true".to_owned(),
            "--runtime-config=admissionregistration.k8s.io/v1beta1=true".to_owned(),
        ],
        ..Options::default()
    };
    let plane = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await??;
    let admin = Admin::of(&plane).await?;
    admin.apply(RESTRICTED_V2).await?;
    Ok((plane, admin))
}

/// Makes a namespace as OpenShift does: with the ranges of its ids.
async fn namespace(admin: &Admin, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name,
    "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    "annotations": {
        "openshift.io/sa.scc.uid-range": format!("{FIRST_ID}/10000"),
        "openshift.io/sa.scc.supplemental-groups": format!("{FIRST_ID}/10000"),
        "openshift.io/sa.scc.mcs": "s0:c26,c5",
    }}});
    admin.apply_as("openshift", true, &namespace.to_string()).await?;
    let account = (Kind::SERVICE_ACCOUNT, name, "default");
    admin.until("the namespace has its account", SOON, account, |_| true).await?;
    // The API server learns of the policies a moment after they are made.
    let foreign = pod(
        name,
        "foreign",
        &json!({"metadata": {}, "spec": {
        "securityContext": {"runAsUser": 65532},
        "containers": [{"name": "a", "image": "a"}]}}),
    );
    eventually("a user id outside of the range is refused", SOON, async || {
        let Err(refused) = admin.create(&foreign.to_string()).await else {
            admin.delete(Kind::POD, name, "foreign").await?;
            return Ok(Err("the pod was created".to_owned()));
        };
        let refused = format!("{refused:#}");
        Ok(if refused.contains("restricted-v2: runAsUser") { Ok(()) } else { Err(refused) })
    })
    .await
}

/// A Pod of a template.
fn pod(namespace: &str, name: &str, template: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": template["metadata"]["labels"]},
        "spec": template["spec"]})
}

/// What `kubectl kustomize` makes of a folder of the repository.
fn kustomize(folder: &str) -> Result<String> {
    let mut kubectl = Programs::find(&mut |_| ())?.command("kubectl")?;
    let output = kubectl.arg("kustomize").arg(root().join(folder)).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl kustomize {folder}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The template of the host's pods in a kustomization.
fn host_template(manifests: &str) -> Result<Value> {
    for document in serde_yaml_ng::Deserializer::from_str(manifests) {
        let object = Value::deserialize(document)?;
        if object["kind"] == "Deployment" {
            return Ok(object["spec"]["template"].clone());
        }
    }
    anyhow::bail!("no Deployment")
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_the_overlay_run_with_ids_of_the_namespaces_range() -> Result<()> {
    let (_plane, admin) = openshift().await?;
    namespace(&admin, SYSTEM).await?;

    let overlay = kustomize("deploy/openshift")?;
    admin.apply(&overlay).await?;
    let pods = eventually("there are pods of the host", SOON, async || {
        let pods = admin.list(Kind::POD, SYSTEM).await?;
        Ok(if pods.len() == 2 { Ok(pods) } else { Err(format!("{} pods", pods.len())) })
    })
    .await?;
    for pod in &pods {
        let (spec, container) = (&pod["spec"], &pod["spec"]["containers"][0]["securityContext"]);
        assert_eq!(container["runAsUser"], FIRST_ID);
        assert_eq!(container["readOnlyRootFilesystem"], true);
        assert_eq!(spec["securityContext"]["fsGroup"], FIRST_ID);
        assert_eq!(spec["securityContext"]["seLinuxOptions"]["level"], "s0:c26,c5");
        assert_eq!(spec["securityContext"]["runAsGroup"], Value::Null);
    }
    // A second time nothing is refused.
    admin.apply(&overlay).await?;

    // The pods of the plain manifests have fixed ids: OpenShift refuses them.
    let fixed = pod(SYSTEM, "fixed", &host_template(&kustomize("deploy")?)?);
    let refused = admin.create(&fixed.to_string()).await.unwrap_err();
    assert!(format!("{refused:#}").contains("restricted-v2: runAsUser"), "{refused:#}");
    Ok(())
}

#[test]
fn overlay_differs_from_the_plain_manifests_in_ids_only() -> Result<()> {
    let fixed = ["runAsUser: 65532", "runAsGroup: 65532", "fsGroup: 65532"];
    let plain = kustomize("deploy")?;
    let without_ids: Vec<&str> =
        plain.lines().filter(|line| !fixed.contains(&line.trim())).collect();
    assert_eq!(without_ids.len() + fixed.len(), plain.lines().count());
    let overlay = kustomize("deploy/openshift")?;
    assert_eq!(overlay.lines().collect::<Vec<_>>(), without_ids);
    Ok(())
}

/// The pods that a guest desires for its sample, by its golden file.
fn pods_of_guest(guest: &str, namespace: &str) -> Result<Vec<Value>> {
    let file = root().join(format!("guests/{guest}/tests/golden/objects.json"));
    let text = fs::read_to_string(file)?;
    let mut pods = Vec::new();
    for object in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        let object = object?;
        let template = match object["kind"].as_str().unwrap_or_default() {
            "Pod" => &object,
            "Deployment" | "Job" => &object["spec"]["template"],
            "CronJob" => &object["spec"]["jobTemplate"]["spec"]["template"],
            _ => continue,
        };
        let mut pod = pod(namespace, &format!("{guest}-{}", pods.len()), template);
        if object["kind"] == "Deployment" {
            pod["spec"]["restartPolicy"] = json!("Always");
        }
        pods.push(pod);
    }
    Ok(pods)
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_of_the_guests_get_ids_of_the_namespaces_range() -> Result<()> {
    let (_plane, admin) = openshift().await?;
    let ns = "project";
    namespace(&admin, ns).await?;
    for (guest, count) in
        [("imo", 1), ("kuri", 1), ("maintpage", 2), ("podroute", 1), ("postgres", 2)]
    {
        let pods = pods_of_guest(guest, ns)?;
        assert_eq!(pods.len(), count, "{guest}");
        for pod in pods {
            let created = admin.create(&pod.to_string()).await?;
            let spec = &created["spec"];
            assert_eq!(spec["securityContext"]["fsGroup"], FIRST_ID, "{guest}");
            for containers in ["containers", "initContainers"] {
                for container in spec[containers].as_array().into_iter().flatten() {
                    assert_eq!(container["securityContext"]["runAsUser"], FIRST_ID, "{guest}");
                }
            }
        }
    }
    Ok(())
}
