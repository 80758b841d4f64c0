//! Policies on a real API server: it calls the host over HTTPS, and shows users what policies say.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::net::Ipv4Addr;

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Host, Kind, Options, Stage, eventually};
use innkeeper_controlplane::free_address;
use innkeeper_tiny_guests::Tiny;
use serde::Deserialize as _;
use serde_json::{Value, json};

const VALIDATING: Kind =
    Kind::new("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");

/// The label of the namespaces that the policies of this test review.
const REVIEWED: &str = "reviewed";

/// The name of the policy that denies, and of its Module.
const LABELS: &str = "required-labels";

/// A host outside of the cluster with the rights of `deploy/policies`, which answers at a URL.
async fn reviewing_host(stage: &Stage) -> Result<Host> {
    for rights in [
        include_str!("../../../deploy/policies/cluster-role.yaml"),
        include_str!("../../../deploy/policies/roles.yaml"),
    ] {
        stage.admin.apply(rights).await?;
    }
    let address = free_address(Ipv4Addr::LOCALHOST)?;
    let mut options = stage.host_options(stage.kubeconfig()).await?;
    options.flags =
        vec![format!("--admission-bind={address}"), format!("--admission-url=https://{address}")];
    let mut host = Host::start(&options)?;
    host.ready(SOON).await?;
    Ok(host)
}

fn policy(extra: &Value) -> Value {
    let mut policy = json!({"namespaceSelector": {"matchLabels": {REVIEWED: "true"}}});
    for (member, value) in extra.as_object().into_iter().flatten() {
        policy[member] = value.clone();
    }
    policy
}

fn labels_spec(extra: &Value) -> Value {
    // It also denies the Namespaces that exist, which would hold it.
    json!({"policy": policy(extra), "rollout": {"strategy": "Immediate"},
        "parameters": {"labels": [{"name": "team"}]}})
}

fn service(namespace: &str, labels: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]},
        "metadata": {"name": "web", "namespace": namespace, "labels": labels}})
    .to_string()
}

/// Waits until a Service without labels is refused; gives the message that its user sees.
async fn until_denied(stage: &Stage, namespace: &str) -> Result<String> {
    let mut message = String::new();
    eventually("a Service without a team is denied", SOON, async || {
        if let Err(error) = stage.admin.create(&service(namespace, &json!({}))).await {
            message = format!("{error:#}");
            return Ok(Ok(()));
        }
        stage.admin.delete(Kind::SERVICE, namespace, "web").await?;
        Ok(Err("it was admitted".to_owned()))
    })
    .await?;
    Ok(message)
}

/// Waits until a Service without labels is admitted, and deletes it.
async fn until_admitted(stage: &Stage, namespace: &str) -> Result<()> {
    eventually("a Service without a team is admitted", SOON, async || {
        Ok(match stage.admin.create(&service(namespace, &json!({}))).await {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    stage.admin.delete(Kind::SERVICE, namespace, "web").await
}

async fn namespace(stage: &Stage, name: &str, labels: &Value) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": labels}});
    stage.admin.apply(&namespace.to_string()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_deny_change_and_warn_until_their_modules_go() -> Result<()> {
    let stage = Stage::new().await?;
    namespace(&stage, "reviewed", &json!({REVIEWED: "true", "team": "a"})).await?;
    namespace(&stage, "free", &json!({})).await?;
    let host = reviewing_host(&stage).await?;
    stage.module(LABELS, LABELS, &labels_spec(&json!({}))).await?;
    let labelling = Tiny::labelling("team", "shop").component();
    stage.module_of_bytes("labelling", &labelling, &json!({"policy": policy(&json!({}))})).await?;

    // The user reads which policy denies, and why.
    let denial = until_denied(&stage, "reviewed").await?;
    let webhook = format!("admission webhook \"{LABELS}.policy.innkeeper.dev\" denied the request");
    assert!(denial.contains(&webhook), "{denial}");
    assert!(denial.contains("the label team is missing; add it"), "{denial}");
    stage.ready(LABELS).await?;

    // What has the label, and what its selector leaves out, is admitted.
    stage.admin.create(&service("reviewed", &json!({"team": "a"}))).await?;
    stage.admin.delete(Kind::SERVICE, "reviewed", "web").await?;
    stage.admin.create(&service("free", &json!({}))).await?;

    a_mutating_policy_changes_what_is_stored_and_settles(&stage).await?;
    the_policies_answer_after_a_restart(&stage, host).await
}

/// Server-side apply of the same object again and again changes nothing.
async fn a_mutating_policy_changes_what_is_stored_and_settles(stage: &Stage) -> Result<()> {
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"name": "settings", "namespace": "reviewed", "labels": {"app": "a"}}})
    .to_string();
    let at = (Kind::CONFIG_MAP, "reviewed", "settings");
    eventually("the policy adds its label", SOON, async || {
        let stored = stage.admin.apply(&config_map).await?.remove(0);
        let labels = &stored["metadata"]["labels"];
        let is_changed = *labels == json!({"app": "a", "team": "shop"});
        Ok(if is_changed { Ok(()) } else { Err(format!("its labels are {labels}")) })
    })
    .await?;
    let first = stage.admin.must_get(at.0, at.1, at.2).await?;
    for _ in 0..10 {
        stage.admin.apply(&config_map).await?;
    }
    let last = stage.admin.must_get(at.0, at.1, at.2).await?;
    assert_eq!(first["metadata"]["resourceVersion"], last["metadata"]["resourceVersion"]);
    Ok(())
}

/// A host that starts again reviews with what was decided before, and what is changed or removed
/// then ends.
async fn the_policies_answer_after_a_restart(stage: &Stage, host: Host) -> Result<()> {
    // A host at a URL never blocks a cluster while it is away.
    drop(host);
    until_admitted(stage, "reviewed").await?;
    let host = reviewing_host(stage).await?;
    until_denied(stage, "reviewed").await?;
    let reviews = "innkeeper_policy_reviews_total";
    let denied = [r#"module="required-labels""#, r#"decision="denied""#];
    assert!(host.metric(reviews, &denied).await?.unwrap_or_default() >= 1.0);

    let warn = json!({"spec": labels_spec(&json!({"mode": "Warn"}))});
    stage.admin.edit((Kind::MODULE, "", LABELS), &warn).await?;
    until_admitted(stage, "reviewed").await?;
    let enforce = json!({"spec": labels_spec(&json!({"mode": "Enforce"}))});
    stage.admin.edit((Kind::MODULE, "", LABELS), &enforce).await?;
    until_denied(stage, "reviewed").await?;

    // The configuration goes with its Module.
    stage.admin.delete(Kind::MODULE, "", LABELS).await?;
    let configuration = format!("innkeeper-policy-{LABELS}");
    stage.admin.until_gone(SOON, (VALIDATING, "", &configuration)).await?;
    until_admitted(stage, "reviewed").await
}

/// A control plane that serves MutatingAdmissionPolicies, which Kubernetes 1.35 does not by itself.
async fn stage_with_policies_in_cel() -> Result<Stage> {
    let apiserver_flags = vec![
        "--feature-gates=MutatingAdmissionPolicy=true".to_owned(),
        "--runtime-config=admissionregistration.k8s.io/v1beta1=true".to_owned(),
    ];
    let options = Options { controller_manager: true, apiserver_flags, ..Options::default() };
    Stage::with(options).await
}

/// The policy in CEL of the README of pod-defaults.
fn policy_in_cel() -> &'static str {
    let readme = include_str!("../../../guests/policies/pod-defaults/README.md");
    let (_, section) = readme.split_once("\n## The same in CEL\n").unwrap();
    section.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0
}

/// The Pods of the golden file of pod-defaults, and a privileged one, in a namespace.
fn pods(namespace: &str) -> Result<Vec<Value>> {
    let golden = include_str!("../../../guests/policies/pod-defaults/tests/golden/objects.yaml");
    let mut pods = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(golden) {
        let object = Value::deserialize(document)?;
        if object["kind"] == "Pod" {
            pods.push(object);
        }
    }
    let mut privileged = pods[0].clone();
    privileged["metadata"]["name"] = "privileged".into();
    privileged["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    pods.push(privileged);
    for pod in &mut pods {
        pod["metadata"]["namespace"] = namespace.into();
    }
    Ok(pods)
}

/// The containers of the Pods of [`pods`], by name, as the API server stores them once the first of
/// them is changed.
async fn stored_containers(stage: &Stage, namespace: &str) -> Result<Vec<(String, Value)>> {
    let pods = pods(namespace)?;
    eventually("a Pod gets its security context", SOON, async || {
        let stored = stage.admin.create(&pods[0].to_string()).await?;
        stage.admin.delete(Kind::POD, namespace, "empty").await?;
        let container = &stored["spec"]["containers"][0];
        let is_changed = container["securityContext"].is_object();
        Ok(if is_changed { Ok(()) } else { Err(container.to_string()) })
    })
    .await?;
    let mut all = Vec::new();
    for pod in pods {
        let stored = stage.admin.create(&pod.to_string()).await?;
        let name = stored["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut containers = stored["spec"]["containers"].clone();
        for container in containers.as_array_mut().into_iter().flatten() {
            // The names of the tokens' volumes are random.
            if let Some(members) = container.as_object_mut() {
                members.remove("volumeMounts");
            }
        }
        all.push((name, containers));
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn policy_in_cel_of_the_readme_changes_pods_as_the_guest_does() -> Result<()> {
    // Given the guest with the parameter that the policy in CEL has in its expression.
    let stage = stage_with_policies_in_cel().await?;
    namespace(&stage, "guest", &json!({REVIEWED: "true"})).await?;
    namespace(&stage, "cel", &json!({})).await?;
    for name in ["guest", "cel"] {
        let account = (Kind::SERVICE_ACCOUNT, name, "default");
        stage.admin.until("the namespace has its account", SOON, account, |_| true).await?;
    }
    let host = reviewing_host(&stage).await?;
    let spec = json!({"policy": policy(&json!({})),
        "parameters": {"securityContext": {"allowPrivilegeEscalation": false}}});
    stage.module("pod-defaults", "pod-defaults", &spec).await?;
    let by_guest = stored_containers(&stage, "guest").await?;
    host.kill().await?;

    // When the API server has the policy in CEL.
    stage.admin.apply(policy_in_cel()).await?;

    // Then both store the same containers, some of which they have changed.
    let by_cel = stored_containers(&stage, "cel").await?;
    assert_eq!(by_cel, by_guest);
    let is_changed = |(_, containers): &&(String, Value)| {
        containers[0]["securityContext"]["allowPrivilegeEscalation"] == false
    };
    let changed: Vec<&str> = by_cel.iter().filter(is_changed).map(|(name, _)| &**name).collect();
    assert_eq!(changed, ["empty", "complete"]);
    Ok(())
}
