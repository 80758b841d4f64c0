//! What a module leaves behind on a real API server: finalizers, kinds that it dropped, what
//! outlives its primary.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::{MANY, MODULES, SOON, output_with};
use innkeeper_cluster_tests::{AuditEvent, AuditFilter, Kind, Stage, eventually, manifests};
use serde_json::{Value, json};

const STACK: Kind = Kind::new("example.innkeeper.dev/v1", "Stack");

const FINALIZER: &str = "innkeeper.dev/stack";

fn stack(namespace: &str, name: &str, layers: u32, stuck: bool) -> String {
    json!({"apiVersion": STACK.api_version, "kind": STACK.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"layers": layers, "stuck": stuck}})
    .to_string()
}

async fn stage() -> Result<(Stage, String)> {
    let stage = Stage::new().await?;
    stage.module("stack", "stack", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]})).await?;
    let namespace = stage.admin.namespace("stacks").await?;
    Ok((stage, namespace))
}

/// The names of the ConfigMaps of stacks, in order.
async fn config_maps(stage: &Stage, namespace: &str) -> Result<Vec<String>> {
    let all = stage.admin.list(Kind::CONFIG_MAP, namespace).await?;
    let mut names: Vec<String> = all
        .iter()
        .map(|one| one["metadata"]["name"].as_str().unwrap_or_default().to_owned())
        .filter(|name| name != "kube-root-ca.crt")
        .collect();
    names.sort();
    Ok(names)
}

fn has_finalizer(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
}

#[tokio::test(flavor = "multi_thread")]
async fn teardown_of_a_primary_deletes_in_order_and_retained_objects_are_adopted_again()
-> Result<()> {
    let (stage, namespace) = stage().await?;
    let _host = stage.host().await?;
    stage.ready("stack").await?;
    stage.admin.apply(&stack(&namespace, "app", 3, false)).await?;
    stage.all_synced(STACK, &namespace, 1).await?;
    let live = stage.admin.must_get(STACK, &namespace, "app").await?;
    assert!(has_finalizer(&live), "{}", live["metadata"]);
    assert_eq!(config_maps(&stage, &namespace).await?, ["app-0", "app-1", "app-2", "app-kept"]);
    let kept = stage.admin.must_get(Kind::CONFIG_MAP, &namespace, "app-kept").await?;

    // The finalizer was there before the first object.
    let audit = stage.plane.audit()?;
    let writes = audit.events(&AuditFilter::new().writes().namespace(&namespace))?;
    // The host's: the controller manager puts a ConfigMap into each namespace.
    let first = |resource: &str| {
        let is_first = |one: &AuditEvent| one.resource == resource && one.impersonated.is_some();
        writes.iter().position(is_first).unwrap()
    };
    assert!(first("stacks") < first("configmaps"), "{writes:#?}");

    stage.admin.delete(STACK, &namespace, "app").await?;
    stage.admin.until_gone(SOON, (STACK, &namespace, "app")).await?;
    assert_eq!(config_maps(&stage, &namespace).await?, ["app-kept"]);
    let filter = AuditFilter::new().verb("delete").namespace(&namespace);
    let deleted: Vec<String> = audit
        .events(&filter)?
        .iter()
        .filter(|one| one.resource == "configmaps")
        .map(|one| one.name.clone())
        .collect();
    assert_eq!(deleted, ["app-2", "app-1", "app-0"], "from above");

    // One of the same name takes up what was kept for it, whole: also what the one before it set.
    stage.admin.apply(&stack(&namespace, "app", 1, false)).await?;
    stage.all_synced(STACK, &namespace, 1).await?;
    let again = stage.admin.must_get(Kind::CONFIG_MAP, &namespace, "app-kept").await?;
    assert_eq!(again["metadata"]["uid"], kept["metadata"]["uid"], "the same object");
    let managers = again["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1, "the entry of the one before is gone: {managers:#?}");

    // Another has no claim to it.
    stage.admin.delete(STACK, &namespace, "app").await?;
    stage.admin.until_gone(SOON, (STACK, &namespace, "app")).await?;
    let other = json!({"metadata": {"labels": {"innkeeper.dev/retained-for": "0".repeat(32)}}});
    stage.admin.merge(Kind::CONFIG_MAP, &namespace, "app-kept", "kubectl", &other).await?;
    stage.admin.apply(&stack(&namespace, "app", 1, false)).await?;
    stage.says((STACK, &namespace, "app"), ("Synced", "False", "Conflict")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_object_without_an_entry_of_the_module_is_adopted_only_on_request() -> Result<()> {
    let (stage, namespace) = stage().await?;
    let _host = stage.host().await?;
    stage.ready("stack").await?;
    stage.admin.apply(&stack(&namespace, "app", 1, false)).await?;
    stage.all_synced(STACK, &namespace, 1).await?;
    let mut kept = stage.admin.must_get(Kind::CONFIG_MAP, &namespace, "app-kept").await?;
    stage.admin.delete(STACK, &namespace, "app").await?;
    stage.admin.until_gone(SOON, (STACK, &namespace, "app")).await?;

    // As a backup restores it, or a guest would mark it: the same labels, no entry of the module.
    stage.admin.delete(Kind::CONFIG_MAP, &namespace, "app-kept").await?;
    for member in ["managedFields", "resourceVersion", "uid", "creationTimestamp"] {
        kept["metadata"].as_object_mut().unwrap().remove(member);
    }
    let restored = stage.admin.create(&kept.to_string()).await?;
    assert!(restored["metadata"]["labels"]["innkeeper.dev/retained-for"].is_string());
    stage.admin.apply(&stack(&namespace, "app", 1, false)).await?;
    stage.says((STACK, &namespace, "app"), ("Synced", "False", "Conflict")).await?;

    let adopt = json!({"metadata": {"annotations": {"innkeeper.dev/adopt": "true"}}});
    stage.admin.merge(STACK, &namespace, "app", "kubectl", &adopt).await?;
    stage.says((STACK, &namespace, "app"), ("Synced", "True", "Applied")).await?;
    let adopted = stage.admin.must_get(Kind::CONFIG_MAP, &namespace, "app-kept").await?;
    assert_eq!(adopted["metadata"]["uid"], restored["metadata"]["uid"], "the same object");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizer_shared_with_another_module_is_given_up_and_not_removed() -> Result<()> {
    let (stage, namespace) = stage().await?;
    let _host = stage.host().await?;
    stage.ready("stack").await?;
    stage.admin.apply(&stack(&namespace, "app", 1, false)).await?;
    stage.all_synced(STACK, &namespace, 1).await?;
    let of_another = |finalizers: Value| {
        json!({"apiVersion": STACK.api_version, "kind": STACK.kind,
            "metadata": {"name": "app", "namespace": namespace, "finalizers": finalizers}})
        .to_string()
    };
    let another = "innkeeper/another/finalizer";
    stage.admin.apply_as(another, true, &of_another(json!([FINALIZER]))).await?;
    stage.admin.delete(STACK, &namespace, "app").await?;
    let at = (STACK, &*namespace, "app");
    let has_given_up = |one: &Value| {
        let managers = one["metadata"]["managedFields"].as_array();
        managers
            .is_some_and(|all| all.iter().all(|one| one["manager"] != "innkeeper/stack/finalizer"))
    };
    stage.admin.until("the module has given it up", SOON, at, has_given_up).await?;
    let held = stage.admin.must_get(STACK, &namespace, "app").await?;
    assert!(has_finalizer(&held), "{}", held["metadata"]);

    stage.admin.apply_as(another, true, &of_another(json!([]))).await?;
    stage.admin.until_gone(SOON, at).await
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_module_removes_its_finalizers_and_keeps_its_objects() -> Result<()> {
    let (stage, namespace) = stage().await?;
    let host = stage.host().await?;
    stage.ready("stack").await?;
    for index in 0..10 {
        stage.admin.apply(&stack(&namespace, &format!("s{index}"), 2, false)).await?;
    }
    stage.all_synced(STACK, &namespace, 10).await?;
    let made = config_maps(&stage, &namespace).await?;
    assert_eq!(made.len(), 30);
    let module = stage.admin.must_get(Kind::MODULE, "", "stack").await?;
    assert_eq!(module["metadata"]["finalizers"], json!(["innkeeper.dev/module"]));
    assert_eq!(module["status"]["finalizer"], FINALIZER);

    // One is being deleted while no host is there; it is asked when the Module goes.
    host.kill().await?;
    stage.admin.delete(STACK, &namespace, "s0").await?;
    stage.admin.delete(Kind::MODULE, "", "stack").await?;
    let _host = stage.host().await?;
    stage.admin.until_gone(MANY, (Kind::MODULE, "", "stack")).await?;

    let left = stage.admin.list(STACK, &namespace).await?;
    assert_eq!(left.len(), 9, "the one that was being deleted is gone");
    assert!(!left.iter().any(has_finalizer), "nobody is held any more");
    let expected: Vec<String> = made
        .iter()
        .filter(|name| !name.starts_with("s0-") || *name == "s0-kept")
        .cloned()
        .collect();
    assert_eq!(config_maps(&stage, &namespace).await?, expected, "what it made stays");
    let events = stage.admin.list(Kind::EVENT, "default").await?;
    let event = events.iter().find(|one| one["reason"] == "FinalizersRemoved").unwrap();
    // The one that was being deleted may have been asked before the host knew that the Module goes.
    let note = event["message"].as_str().unwrap();
    assert!(note.contains("off 10 primaries") || note.contains("off 9 primaries"), "{note}");

    // A primary that is deleted now is not held up.
    stage.admin.delete(STACK, &namespace, "s1").await?;
    stage.admin.until_gone(SOON, (STACK, &namespace, "s1")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_module_without_rights_says_what_it_lacks_and_goes_when_it_is_granted() -> Result<()>
{
    let (stage, namespace) = stage().await?;
    let _host = stage.host().await?;
    stage.ready("stack").await?;
    stage.admin.apply(&stack(&namespace, "app", 1, false)).await?;
    stage.all_synced(STACK, &namespace, 1).await?;
    let binding = Kind::new("rbac.authorization.k8s.io/v1", "ClusterRoleBinding");
    let before = stage.admin.must_get(binding, "", "innkeeper-module-stack").await?;
    stage.admin.delete(binding, "", "innkeeper-module-stack").await?;
    stage.admin.delete(Kind::MODULE, "", "stack").await?;
    let conditions = eventually("the Module says what it lacks", MANY, async || {
        let module = stage.admin.must_get(Kind::MODULE, "", "stack").await?;
        let text = module["status"]["conditions"].to_string();
        Ok(if text.contains("innkeeper.dev/module") { Ok(text) } else { Err(text) })
    })
    .await?;
    let names_cause = ["cannot be", "is still on"].iter().any(|text| conditions.contains(text));
    assert!(names_cause, "the cause is named: {conditions}");

    let again = json!({"apiVersion": binding.api_version, "kind": binding.kind,
        "metadata": {"name": "innkeeper-module-stack"},
        "roleRef": before["roleRef"], "subjects": before["subjects"]});
    stage.admin.apply(&again.to_string()).await?;
    stage.admin.until_gone(MANY, (Kind::MODULE, "", "stack")).await?;
    assert!(!has_finalizer(&stage.admin.must_get(STACK, &namespace, "app").await?));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kind_that_a_revision_no_longer_declares_is_reported_pruned_and_forgotten() -> Result<()> {
    let stage = Stage::new().await?;
    stage
        .module("settings", "settings", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]}))
        .await?;
    let host = stage.host().await?;
    stage.ready("settings").await?;
    let namespace = stage.admin.namespace("dropped").await?;
    for name in ["a", "b", "c"] {
        let manifest = manifests::settings(&namespace, name, &["x", "y"], "hello");
        stage.admin.apply(&manifest).await?;
    }
    stage.all_synced(Kind::SETTINGS, &namespace, 3).await?;

    // The Module reports beforehand what goes with the kind.
    stage.push("settings", "settings-nothing").await?;
    stage.module_says("settings", "Held", "True", "WouldDelete").await?;
    let module = stage.admin.must_get(Kind::MODULE, "", "settings").await?;
    assert_eq!(module["status"]["candidate"]["deletes"], 6);
    let digest = module["status"]["candidate"]["digest"].as_str().unwrap().to_owned();

    // Approved, and the host is restarted in between: what is known of the kind is in the status.
    let approve = json!({"metadata": {"annotations": {"innkeeper.dev/approve": digest}}});
    stage.admin.merge(Kind::MODULE, "", "settings", "kubectl-annotate", &approve).await?;
    stage
        .admin
        .until("it serves", SOON, (Kind::MODULE, "", "settings"), |one| {
            one["status"]["digest"] == digest.as_str()
        })
        .await?;
    host.kill().await?;
    let _host = stage.host().await?;
    eventually("what it made is gone", SOON, async || {
        let left = config_maps(&stage, &namespace).await?;
        Ok(if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) })
    })
    .await?;
    stage
        .admin
        .until("the kind is forgotten", SOON, (Kind::MODULE, "", "settings"), |one| {
            one["status"].get("ownedKinds").is_none()
        })
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_module_without_a_component_removes_its_finalizers() -> Result<()> {
    let (stage, namespace) = stage().await?;
    let host = stage.host().await?;
    stage.ready("stack").await?;
    stage.admin.apply(&stack(&namespace, "app", 2, false)).await?;
    stage.all_synced(STACK, &namespace, 1).await?;
    host.kill().await?;
    // Source and copy are lost while no host runs: nobody can be asked any more.
    for config_map in stage.admin.list(Kind::CONFIG_MAP, MODULES).await? {
        let name = config_map["metadata"]["name"].as_str().unwrap();
        stage.admin.delete(Kind::CONFIG_MAP, MODULES, name).await?;
    }
    stage.admin.delete(STACK, &namespace, "app").await?;
    stage.admin.delete(Kind::MODULE, "", "stack").await?;
    let _host = stage.host().await?;
    stage.admin.until_gone(MANY, (Kind::MODULE, "", "stack")).await?;
    stage.admin.until_gone(SOON, (STACK, &namespace, "app")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn primary_that_is_no_longer_selected_loses_the_finalizer_and_keeps_its_objects() -> Result<()>
{
    let (stage, seen) = stage().await?;
    let unseen = stage.admin.namespace("unseen").await?;
    let _host = stage.host().await?;
    stage.ready("stack").await?;
    for (namespace, name) in [(&seen, "stays"), (&seen, "unselected"), (&unseen, "app")] {
        stage.admin.apply(&stack(namespace, name, 1, false)).await?;
    }
    stage.all_synced(STACK, &seen, 2).await?;
    stage.all_synced(STACK, &unseen, 1).await?;
    let labels = json!({"metadata": {"labels": {"off": "yes"}}});
    stage.admin.merge(STACK, &seen, "unselected", "kubectl-label", &labels).await?;
    let selector = json!({"matchExpressions": [{"key": "off", "operator": "DoesNotExist"}]});
    let spec = json!({"spec": {"selector": selector, "namespaces": [seen]}});
    stage.admin.merge(Kind::MODULE, "", "stack", "kubectl-edit", &spec).await?;
    for at in [(STACK, &*seen, "unselected"), (STACK, &*unseen, "app")] {
        stage.admin.until("it is let go", SOON, at, |one| !has_finalizer(one)).await?;
    }
    assert!(has_finalizer(&stage.admin.must_get(STACK, &seen, "stays").await?));
    assert_eq!(config_maps(&stage, &unseen).await?, ["app-0", "app-kept"], "nothing is deleted");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn uninstall_removes_modules_and_finalizers_and_keeps_their_objects() -> Result<()> {
    let (stage, namespace) = stage().await?;
    stage.module("team", "labels", &json!({"parameters": {"labels": {"team": "a"}}})).await?;
    let _host = stage.host().await?;
    stage.ready("stack").await?;
    stage.ready("team").await?;
    stage.admin.apply(&stack(&namespace, "app", 2, false)).await?;
    stage.all_synced(STACK, &namespace, 1).await?;
    let kubeconfig = stage.plane.kubeconfig().to_owned();
    let output = output_with(&kubeconfig, &["uninstall"]).await?;
    assert!(output.contains("would delete Module stack, whose finalizer"), "{output}");
    assert!(stage.admin.get(Kind::MODULE, "", "stack").await?.is_some(), "only reported");

    let output = output_with(&kubeconfig, &["uninstall", "--yes"]).await?;
    assert!(
        output.contains("Module stack is gone\n") && output.contains("Module team is gone"),
        "{output}"
    );
    assert!(stage.admin.list(Kind::MODULE, "").await?.is_empty());
    assert!(!has_finalizer(&stage.admin.must_get(STACK, &namespace, "app").await?));
    assert_eq!(config_maps(&stage, &namespace).await?, ["app-0", "app-1", "app-kept"]);
    stage.admin.must_get(Kind::CRD, "", "stacks.example.innkeeper.dev").await?;
    let output = output_with(&kubeconfig, &["uninstall", "--yes"]).await?;
    assert!(output.starts_with("There is no Module."), "{output}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_teardown_of_a_primary_delays_its_module_for_a_bounded_time() -> Result<()> {
    let (stage, namespace) = stage().await?;
    let host = stage.host().await?;
    stage.ready("stack").await?;
    stage.admin.apply(&stack(&namespace, "app", 2, true)).await?;
    stage.all_synced(STACK, &namespace, 1).await?;
    // Its guest never says that nothing is left to do.
    stage.admin.delete(STACK, &namespace, "app").await?;
    eventually("it is taken down as far as it goes", SOON, async || {
        let left = config_maps(&stage, &namespace).await?;
        Ok(if left == ["app-0", "app-kept"] { Ok(()) } else { Err(format!("{left:?}")) })
    })
    .await?;
    let held = stage.admin.must_get(STACK, &namespace, "app").await?;
    assert!(has_finalizer(&held), "it waits");
    stage.admin.delete(Kind::MODULE, "", "stack").await?;
    stage.module_says("stack", "Ready", "False", "Finalizing").await?;
    // Killed in the middle of it, the next host goes on.
    host.kill().await?;
    let _host = stage.host().await?;
    stage.admin.until_gone(MANY, (Kind::MODULE, "", "stack")).await?;
    stage.admin.until_gone(SOON, (STACK, &namespace, "app")).await?;
    Ok(())
}
