//! What users of kubectl see of policies on a real API server, by kind of request.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::policy_stage::policy;
use innkeeper_cluster_tests::stage::{MODULES, SOON};
use innkeeper_cluster_tests::{Kind, PolicyStage, Printed, eventually};
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

/// The namespace that the policies review.
const SHOP: &str = "shop";

/// The group of the custom resources.
const GROUP: &str = "shop.example.com";

fn rule(group: &str, resources: &[&str], operations: &[&str]) -> Value {
    json!({"groups": [group], "resources": resources, "operations": operations})
}

fn denied(message: &str) -> String {
    json!({"allowed": false, "message": message}).to_string()
}

fn warned(warning: &str) -> String {
    json!({"allowed": true, "warnings": [warning]}).to_string()
}

/// A policy about operations, subresources and custom resources.
fn gate() -> Tiny {
    let manifest = json!({"name": "gate", "policy": {"kind": "Validate", "rules": [
        rule("", &["configmaps"], &["CREATE", "UPDATE", "DELETE"]),
        rule("apps", &["deployments/scale", "deployments/status"], &["UPDATE"]),
        rule(GROUP, &["gadgets"], &["CREATE"]),
    ]}});
    let invalid = json!({"allowed": false, "message": "the gadget is too large",
        "reason": "Invalid", "code": 422,
        "causes": [{"field": "spec.size", "message": "\"huge\" is too large; use \"small\""}]});
    Tiny::policy(ALLOWED)
        .manifest(&manifest.to_string())
        .verdict_for(
            &[r#""operation":"DELETE""#, r#""protected":"true""#],
            &denied("the object is protected; remove the label protected first"),
        )
        // Only the stored object has the member.
        .verdict_for(
            &[r#""operation":"UPDATE""#, r#""sealed":"yes""#],
            &denied("a sealed object does not change"),
        )
        .verdict_for(&[r#""dryRun":true"#], &warned("the request is a dry run"))
        .verdict_for(
            &[r#""subresource":"scale""#, r#""replicas":9"#],
            &denied("at most 8 replicas are allowed"),
        )
        .verdict_for(
            &[r#""subresource":"status""#, r#""observedGeneration":77"#],
            &denied("only the controller sets the status"),
        )
        .verdict_for(&[r#""kind":"Gadget""#, r#""size":"huge""#], &invalid.to_string())
        .verdict_for(&[r#""old":"yes""#], &warned("data.old is deprecated; use data.new"))
}

/// A definition of a namespaced kind, whose spec and status take anything.
fn definition(kind: &str, plural: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema =
        json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": schema}]}})
}

async fn define(stage: &PolicyStage, kind: &str, plural: &str) -> Result<()> {
    for crd in stage.admin.apply(&definition(kind, plural).to_string()).await? {
        stage.admin.until_established(&crd).await?;
    }
    Ok(())
}

fn config_map(name: &str, labels: &Value, data: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": name, "namespace": SHOP, "labels": labels}})
    .to_string()
}

/// What kubectl prints for a request that succeeds: standard output and error.
async fn prints(stage: &PolicyStage, line: &str, input: &str) -> Result<(String, String)> {
    let Printed { is_success, stdout, stderr } = kubectl(stage, line, input).await?;
    assert!(is_success, "kubectl {line}: {stderr}");
    Ok((stdout, stderr))
}

/// What a user reads of a denial of the policy [`gate`].
fn denial(message: &str) -> String {
    format!("admission webhook \"gate.policy.innkeeper.dev\" denied the request: {message}")
}

/// What kubectl prints for a request that fails.
async fn refusal(stage: &PolicyStage, line: &str, input: &str) -> Result<String> {
    let Printed { is_success, stdout, stderr } = kubectl(stage, line, input).await?;
    assert!(!is_success, "kubectl {line}: {stdout}{stderr}");
    Ok(stderr)
}

async fn kubectl(stage: &PolicyStage, line: &str, input: &str) -> Result<Printed> {
    let arguments: Vec<&str> = ["-n", SHOP].into_iter().chain(line.split(' ')).collect();
    stage.kubectl(&arguments, input).await
}

/// A stage on which one host reviews the requests of the namespace [`SHOP`].
async fn stage() -> Result<PolicyStage> {
    let stage = PolicyStage::new().await?;
    stage.reviewed_namespace(SHOP).await?;
    Ok(stage)
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_user_reads_what_policies_decide() -> Result<()> {
    let stage = stage().await?;
    define(&stage, "Gadget", "gadgets").await?;
    let _replica = stage.replica("a").await?;
    let spec = json!({"policy": policy(&json!({}))});
    stage.module_of_bytes("gate", &gate().component(), &spec).await?;
    // It also denies the Namespace that exists, which would hold it.
    let labels = json!({"policy": policy(&json!({})), "rollout": {"strategy": "Immediate"},
        "parameters": {"labels": [{"name": "team"}]}});
    stage.module("required-labels", "required-labels", &labels).await?;
    stage.reviews_with("gate", "Fail").await?;
    stage.reviews_with("required-labels", "Fail").await?;
    until_the_server_knows(&stage).await?;

    creates(&stage).await?;
    updates_and_deletions(&stage).await?;
    subresources(&stage).await?;
    custom_resources(&stage).await?;
    connections(&stage).await
}

/// Waits until the API server has read the webhook configurations.
async fn until_the_server_knows(stage: &PolicyStage) -> Result<()> {
    let object = config_map("probe", &json!({}), &json!({"old": "yes"}));
    let service = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "probe"}, "spec": {"ports": [{"port": 80}]}}"#;
    eventually("the API server asks the policies", SOON, async || {
        let line = "create --dry-run=server -f -";
        let (first, second) =
            (kubectl(stage, line, &object).await?, kubectl(stage, line, service).await?);
        let is_so = first.stderr.contains("dry run") && !second.is_success;
        Ok(if is_so { Ok(()) } else { Err(format!("{first:?} {second:?}")) })
    })
    .await
}

async fn creates(stage: &PolicyStage) -> Result<()> {
    let free = config_map("free", &json!({}), &json!({}));
    let (stdout, stderr) = prints(stage, "create -f -", &free).await?;
    assert_eq!((&*stdout, &*stderr), ("configmap/free created\n", ""));

    let old = config_map("old", &json!({}), &json!({"old": "yes"}));
    let (stdout, stderr) = prints(stage, "create -f -", &old).await?;
    assert_eq!(stdout, "configmap/old created\n");
    assert_eq!(stderr, "Warning: data.old is deprecated; use data.new\n");

    // A dry run is reviewed as one, and stores nothing.
    let dry = config_map("dry", &json!({}), &json!({}));
    let (stdout, stderr) = prints(stage, "create --dry-run=server -f -", &dry).await?;
    assert_eq!(stdout, "configmap/dry created (server dry run)\n");
    assert_eq!(stderr, "Warning: the request is a dry run\n");
    assert_eq!(stage.admin.get(Kind::CONFIG_MAP, SHOP, "dry").await?, None);

    // A command that makes its own object shows the message without the fields.
    let text = refusal(stage, "create deployment web --image=web", "").await?;
    let webhook = "\"required-labels.policy.innkeeper.dev\"";
    let denial = format!(
        "admission webhook {webhook} denied the request: the label team is missing; add it"
    );
    assert!(text.contains(&denial), "{text}");
    Ok(())
}

async fn updates_and_deletions(stage: &PolicyStage) -> Result<()> {
    let sealed = config_map("sealed", &json!({}), &json!({"sealed": "yes"}));
    prints(stage, "create -f -", &sealed).await?;
    let opened = config_map("sealed", &json!({}), &json!({"sealed": "no"}));
    let text = refusal(stage, "replace -f -", &opened).await?;
    assert!(text.contains(&denial("a sealed object does not change")), "{text}");

    let protected = config_map("protected", &json!({"protected": "true"}), &json!({}));
    prints(stage, "create -f -", &protected).await?;
    for line in ["delete configmap protected", "delete --dry-run=server configmap protected"] {
        let text = refusal(stage, line, "").await?;
        let message = "the object is protected; remove the label protected first";
        assert!(text.contains(&denial(message)), "{text}");
    }
    prints(stage, "label configmap protected protected-", "").await?;
    let (stdout, _) = prints(stage, "delete configmap protected", "").await?;
    assert!(stdout.starts_with("configmap \"protected\" deleted"), "{stdout}");
    Ok(())
}

async fn subresources(stage: &PolicyStage) -> Result<()> {
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"team": "a"}}, "spec": {"replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web"}]}}}});
    prints(stage, "create -f -", &web.to_string()).await?;
    let (stdout, _) = prints(stage, "scale deployment web --replicas=2", "").await?;
    assert_eq!(stdout, "deployment.apps/web scaled\n");
    let text = refusal(stage, "scale deployment web --replicas=9", "").await?;
    assert!(text.contains(&denial("at most 8 replicas are allowed")), "{text}");
    let deployment = stage.admin.must_get(Kind::DEPLOYMENT, SHOP, "web").await?;
    assert_eq!(deployment["spec"]["replicas"], 2);

    let patch = r#"-p={"status":{"observedGeneration":77}}"#;
    let line = format!("patch deployment web --subresource=status --type=merge {patch}");
    let text = refusal(stage, &line, "").await?;
    assert!(text.contains(&denial("only the controller sets the status")), "{text}");
    Ok(())
}

async fn custom_resources(stage: &PolicyStage) -> Result<()> {
    let gadget = |size: &str| {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Gadget",
            "metadata": {"name": size}, "spec": {"size": size}})
        .to_string()
    };
    let (stdout, _) = prints(stage, "create -f -", &gadget("small")).await?;
    assert_eq!(stdout, "gadget.shop.example.com/small created\n");
    let text = refusal(stage, "create -f -", &gadget("huge")).await?;
    assert!(text.contains(r#"spec.size: "huge" is too large; use "small""#), "{text}");
    Ok(())
}

/// No policy reviews `CONNECT`, such as `kubectl exec`: a policy that asks for it is refused.
async fn connections(stage: &PolicyStage) -> Result<()> {
    let manifest = json!({"name": "exec", "policy": {"kind": "Validate",
        "rules": [rule("", &["pods/exec"], &["CONNECT"])]}});
    let exec = Tiny::policy(ALLOWED).manifest(&manifest.to_string());
    stage
        .module_of_bytes("exec", &exec.component(), &json!({"policy": policy(&json!({}))}))
        .await?;
    let message = stage.module_says("exec", "Loaded", "False", "InvalidManifest").await?;
    assert!(message.contains("CONNECT is not reviewed: a connection has no object"), "{message}");

    let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "exec"}, "spec": {"source": {"configMap": {"name": "exec"}},
            "serviceAccountName": "exec", "policy": {"rules": [rule("", &["pods/exec"], &["CONNECT"])]}}});
    prints(stage, "apply --server-side --force-conflicts -f -", &module.to_string()).await?;
    let message = stage.module_says("exec", "Ready", "False", "InvalidSpec").await?;
    assert!(message.contains("CONNECT is not reviewed: a connection has no object"), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_that_a_policy_changes_settle() -> Result<()> {
    let stage = stage().await?;
    define(&stage, "Maker", "makers").await?;
    let replica = stage.replica("a").await?;
    let labelling = Tiny::labelling("team", "shop").component();
    let spec = json!({"policy": policy(&json!({"failurePolicy": "Fail"}))});
    stage.module_of_bytes("labelling", &labelling, &spec).await?;
    stage.reviews_with("labelling", "Fail").await?;
    let probe = config_map("probe", &json!({"app": "probe"}), &json!({}));
    eventually("the API server asks the policy", SOON, async || {
        let applied = stage.admin.apply(&probe).await?.remove(0);
        let labels = &applied["metadata"]["labels"];
        Ok(if labels["team"] == "shop" { Ok(()) } else { Err(labels.to_string()) })
    })
    .await?;

    server_side_apply_settles(&stage).await?;
    client_side_apply_settles(&stage).await?;
    reconciler_settles(&stage).await?;
    replica.stop().await.map(drop)
}

async fn stored(stage: &PolicyStage, name: &str) -> Result<Value> {
    let object = stage.admin.must_get(Kind::CONFIG_MAP, SHOP, name).await?;
    assert_eq!(object["metadata"]["labels"], json!({"app": name, "team": "shop"}));
    Ok(object)
}

async fn server_side_apply_settles(stage: &PolicyStage) -> Result<()> {
    let object = config_map("server", &json!({"app": "server"}), &json!({"a": "1"}));
    let line = "apply --server-side -f -";
    let (stdout, _) = prints(stage, line, &object).await?;
    assert_eq!(stdout, "configmap/server serverside-applied\n");
    let first = stored(stage, "server").await?;
    for _ in 0..3 {
        prints(stage, line, &object).await?;
        assert_eq!(stored(stage, "server").await?, first, "an apply of the same changes nothing");
    }
    let (stdout, stderr) = prints(stage, "diff --server-side -f -", &object).await?;
    assert_eq!((&*stdout, &*stderr), ("", ""));

    // A change of the user stays, and so does that of the policy.
    let object = config_map("server", &json!({"app": "server"}), &json!({"a": "2"}));
    prints(stage, line, &object).await?;
    let second = stored(stage, "server").await?;
    assert_eq!(second["data"], json!({"a": "2"}));
    prints(stage, line, &object).await?;
    assert_eq!(stored(stage, "server").await?, second);
    Ok(())
}

async fn client_side_apply_settles(stage: &PolicyStage) -> Result<()> {
    let object = config_map("client", &json!({"app": "client"}), &json!({"a": "1"}));
    prints(stage, "apply -f -", &object).await?;
    let first = stored(stage, "client").await?;
    let (stdout, _) = prints(stage, "apply -f -", &object).await?;
    assert_eq!(stdout, "configmap/client unchanged\n");
    assert_eq!(stored(stage, "client").await?, first);
    Ok(())
}

/// The objects of a module are changed by a policy, and the module does not write them again.
async fn reconciler_settles(stage: &PolicyStage) -> Result<()> {
    let kind = |api_version: &str, kind: &str, plural: &str| json!({"apiVersion": api_version, "kind": kind, "plural": plural, "scope": "Namespaced"});
    let manifest = json!({"name": "maker", "version": "1.0.0",
        "primary": kind(&format!("{GROUP}/v1"), "Maker", "makers"),
        "owned": [{"kind": kind("v1", "ConfigMap", "configmaps")}]});
    let made = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
        "metadata": {"name": "made", "labels": {"app": "made"}}});
    let maker = Tiny::default()
        .manifest(&manifest.to_string())
        .outcome(0, &json!({"objects": [{"object": made}]}).to_string());
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "maker"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "maker", "namespace": MODULES}]});
    stage.admin.apply(&binding.to_string()).await?;
    stage.module_of_bytes("maker", &maker.component(), &json!({})).await?;
    stage.ready("maker").await?;
    let primary = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Maker",
        "metadata": {"name": "one", "namespace": SHOP}, "spec": {}});
    stage.admin.apply(&primary.to_string()).await?;
    let at = (Kind::CONFIG_MAP, SHOP, "made");
    stage.admin.until("the module makes its object", SOON, at, |_| true).await?;
    stage.quiet(Duration::from_secs(3)).await?;
    let first = stored(stage, "made").await?;

    // The module repairs its part of a change, and the policy has its part.
    let spoilt = json!({"data": {"a": "2"}, "metadata": {"labels": {"team": null}}});
    stage.admin.edit(at, &spoilt).await?;
    let is_repaired = |object: &Value| object["data"] == json!({"a": "1"});
    stage.admin.until("the module repairs its object", SOON, at, is_repaired).await?;
    stage.quiet(Duration::from_secs(3)).await?;
    let last = stored(stage, "made").await?;
    assert_eq!(last["data"], first["data"]);
    Ok(())
}
