//! A policy that denies everything, with a host and without one: users always get the cluster back.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, PolicyStage, Printed, eventually};
use innkeeper_tiny_guests::Tiny;
use serde_json::json;

const CONFIGURATION: (Kind, &str, &str) = (
    Kind::new("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    "",
    "innkeeper-policy-closed",
);

/// A policy that denies all requests of all kinds that a policy may review.
fn closed() -> Tiny {
    let rules = json!([{"groups": ["*"], "resources": ["*/*"],
        "operations": ["CREATE", "UPDATE", "DELETE"]}]);
    let manifest = json!({"name": "closed", "policy": {"kind": "Validate", "rules": rules}});
    Tiny::policy(r#"{"allowed":false,"message":"the cluster is closed"}"#)
        .manifest(&manifest.to_string())
}

/// Creates a ConfigMap in a namespace with kubectl, and stores nothing: the policy may begin to
/// deny at any time, so a stored ConfigMap could not be deleted again.
async fn create(stage: &PolicyStage, namespace: &str) -> Result<Printed> {
    let line = ["-n", namespace, "create", "configmap", "one", "--dry-run=server"];
    stage.kubectl(&line, "").await
}

/// Waits until a create in the namespace `default` is refused with this text; gives all of it.
async fn until_refused(stage: &PolicyStage, text: &str) -> Result<String> {
    eventually(&format!("a create is refused with {text:?}"), SOON, async || {
        let Printed { is_success, stdout, stderr } = create(stage, "default").await?;
        let is_so = !is_success && stderr.contains(text);
        Ok(if is_so { Ok(stderr) } else { Err(format!("{stdout}{stderr}")) })
    })
    .await
}

async fn until_admitted(stage: &PolicyStage) -> Result<()> {
    eventually("a create is admitted", SOON, async || {
        let printed = create(stage, "default").await?;
        Ok(if printed.is_success { Ok(()) } else { Err(printed.stderr) })
    })
    .await
}

async fn prints(stage: &PolicyStage, line: &str) -> Result<String> {
    let arguments: Vec<&str> = line.split(' ').collect();
    let Printed { is_success, stdout, stderr } = stage.kubectl(&arguments, "").await?;
    assert!(is_success, "kubectl {line}: {stderr}");
    Ok(stdout)
}

/// What has to work in each state of the cluster, or nobody could repair it.
async fn repairs_are_admitted(stage: &PolicyStage) -> Result<()> {
    for namespace in ["kube-system", "kube-public", "innkeeper-system", "innkeeper-modules"] {
        let Printed { is_success, stderr, .. } = create(stage, namespace).await?;
        assert!(is_success, "{namespace}: {stderr}");
    }
    for line in [
        "label --overwrite namespace kube-system repaired=yes",
        "label --overwrite namespace innkeeper-system repaired=yes",
        "label --overwrite module closed repaired=yes",
        "label --overwrite crd modules.innkeeper.dev repaired=yes",
        "label --overwrite clusterrole innkeeper repaired=yes",
        "label --overwrite clusterrolebinding innkeeper repaired=yes",
        "create token --namespace innkeeper-system innkeeper",
        "auth can-i create pods",
    ] {
        prints(stage, line).await?;
    }
    let node = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "node", "namespace": "kube-node-lease"}});
    stage.admin.apply(&node.to_string()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_closed_by_a_policy_is_repaired_with_a_host_and_without() -> Result<()> {
    let stage = PolicyStage::new().await?;
    let replica = stage.replica("a").await?;
    // A preview would hold it back, since it denies objects that exist.
    let spec = json!({"policy": {}, "rollout": {"strategy": "Immediate"}});
    stage.module_of_bytes("closed", &closed().component(), &spec).await?;
    stage.reviews_with("closed", "Fail").await?;

    // Given a host: the user reads who denies, and the annotation switches the policy off.
    let text = until_refused(&stage, "denied the request").await?;
    let denial = "\"closed.policy.innkeeper.dev\" denied the request: the cluster is closed";
    assert!(text.contains(denial), "{text}");
    repairs_are_admitted(&stage).await?;
    prints(&stage, "annotate module closed innkeeper.dev/break-glass=incident-7").await?;
    until_admitted(&stage).await?;
    let message = stage.module_says("closed", "Ready", "False", "BreakGlass").await?;
    assert!(message.contains("incident-7") && message.contains("remove it"), "{message}");
    prints(&stage, "annotate module closed innkeeper.dev/break-glass-").await?;
    until_refused(&stage, "denied the request").await?;

    // Given no host: requests fail, repairs do not, and without configurations nothing fails.
    replica.kill().await?;
    let text = until_refused(&stage, "failed calling webhook").await?;
    assert!(text.contains("closed.policy.innkeeper.dev"), "{text}");
    repairs_are_admitted(&stage).await?;
    let line = "delete validatingwebhookconfigurations,mutatingwebhookconfigurations -l innkeeper.dev/policy";
    let stdout = prints(&stage, line).await?;
    assert!(stdout.contains("\"innkeeper-policy-closed\" deleted"), "{stdout}");
    until_admitted(&stage).await?;

    // A host that starts again writes the configuration again: the Module still wants it.
    let replica = stage.replica("b").await?;
    until_refused(&stage, "denied the request").await?;
    replica.kill().await?;
    until_refused(&stage, "failed calling webhook").await?;

    // The Module takes its configuration with it, also without a host.
    prints(&stage, "delete module closed --wait=false").await?;
    stage.admin.until_gone(SOON, CONFIGURATION).await?;
    until_admitted(&stage).await
}

#[tokio::test(flavor = "multi_thread")]
async fn request_without_a_host_is_admitted_under_ignore_and_refused_under_fail() -> Result<()> {
    let stage = PolicyStage::new().await?;
    let replica = stage.replica("a").await?;
    for (module, failure_policy) in [("fails", "Fail"), ("ignores", "Ignore")] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": module, "labels": {"of": module}}});
        stage.admin.apply(&namespace.to_string()).await?;
        let spec = json!({"rollout": {"strategy": "Immediate"},
            "policy": {"failurePolicy": failure_policy,
                "namespaceSelector": {"matchLabels": {"of": module}}}});
        stage.module_of_bytes(module, &closed().component(), &spec).await?;
        stage.reviews_with(module, failure_policy).await?;
        eventually(&format!("{module} denies"), SOON, async || {
            let Printed { is_success, stderr, .. } = create(&stage, module).await?;
            let is_denied = !is_success && stderr.contains("the cluster is closed");
            Ok(if is_denied { Ok(()) } else { Err(stderr) })
        })
        .await?;
    }
    replica.kill().await?;
    eventually("the policy that ignores admits", SOON, async || {
        let Printed { is_success, stderr, .. } = create(&stage, "ignores").await?;
        Ok(if is_success { Ok(()) } else { Err(stderr) })
    })
    .await?;
    let Printed { is_success, stderr, .. } = create(&stage, "fails").await?;
    assert!(!is_success, "{stderr}");
    assert!(stderr.contains("failed calling webhook \"fails.policy.innkeeper.dev\""), "{stderr}");
    until_admitted(&stage).await
}
