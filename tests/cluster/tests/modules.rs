//! Modules on a real API server: a guest is replaced while it runs, broken ones never displace a
//! good one, and each module sees and writes only what its account may.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "what a condition says, shown when a test fails")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use innkeeper_cluster_tests::manifests::bench;
use innkeeper_cluster_tests::stage::{HOST, SOON, says};
use innkeeper_cluster_tests::{AuditFilter, Kind, Stage, eventually};
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

const LABEL: &str = "bench.example.com/version";

/// Follows the Deployments of a namespace, and notes for each whether the new version's label
/// was ever seen to go away again.
struct Labels {
    seen: Arc<Mutex<BTreeMap<String, bool>>>,
    lost: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Labels {
    fn follow(stage: &Stage, namespace: &str) -> Self {
        let resource = kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(
            "apps",
            "v1",
            "Deployment",
        ));
        let api: Api<DynamicObject> =
            Api::namespaced_with(stage.admin.client().clone(), namespace, &resource);
        let seen: Arc<Mutex<BTreeMap<String, bool>>> = Arc::default();
        let lost: Arc<Mutex<Vec<String>>> = Arc::default();
        let (noted, gone) = (seen.clone(), lost.clone());
        let task = tokio::spawn(async move {
            let mut objects = watcher(api, watcher::Config::default())
                .default_backoff()
                .applied_objects()
                .boxed();
            while let Ok(Some(object)) = objects.try_next().await {
                let name = object.metadata.name.clone().unwrap_or_default();
                let labelled =
                    object.metadata.labels.is_some_and(|labels| labels.contains_key(LABEL));
                let before = noted.lock().unwrap().insert(name.clone(), labelled);
                if before == Some(true) && !labelled {
                    gone.lock().unwrap().push(name);
                }
            }
        });
        Self { seen, lost, task }
    }

    fn labelled(&self) -> usize {
        self.seen.lock().unwrap().values().filter(|labelled| **labelled).count()
    }
}

impl Drop for Labels {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn swap_under_load_loses_no_reconcile_and_never_goes_back() -> Result<()> {
    const COUNT: usize = 200;
    let stage = Arc::new(Stage::new().await?);
    stage
        .module("bench", "bench-guest", &json!({"allowedCRDGroups": ["bench.innkeeper.dev"]}))
        .await?;
    let host = stage.host().await?;
    stage.ready("bench").await?;
    let namespace = stage.admin.namespace("reload").await?;
    for index in 0..COUNT {
        stage.admin.apply(&bench(&namespace, &format!("b{index:03}"), 1)).await?;
    }
    stage.all_synced(Kind::BENCH, &namespace, COUNT).await?;
    let labels = Labels::follow(&stage, &namespace);

    let changes = Changes::begin(&stage, &namespace);
    changes.until_under_way().await?;
    stage.push("bench", "bench-labelled").await?;
    eventually("the new version has served every key", 3 * SOON, async || {
        let count = labels.labelled();
        Ok(if count == COUNT { Ok(()) } else { Err(format!("{count} of {COUNT} have its label")) })
    })
    .await?;
    changes.end().await?;

    stage.all_synced(Kind::BENCH, &namespace, COUNT).await?;
    deployments_have_the_replicas_that_were_asked_for_last(&stage, &namespace).await?;
    let lost = labels.lost.lock().unwrap().clone();
    assert!(lost.is_empty(), "the old version wrote {lost:?} after the new one had");
    assert!(host.log().iter().all(|line| !line.contains("panicked")), "the host panicked");
    Ok(())
}

/// How many resources are changed during the swap.
const CHANGED: usize = 7;

/// One of [`CHANGED`] resources is changed every 50 ms, until the end.
struct Changes {
    done: Arc<AtomicBool>,
    count: Arc<AtomicU32>,
    task: tokio::task::JoinHandle<Result<()>>,
}

impl Changes {
    fn begin(stage: &Arc<Stage>, namespace: &str) -> Self {
        let (done, count): (Arc<AtomicBool>, Arc<AtomicU32>) = Default::default();
        let (stage, namespace) = (stage.clone(), namespace.to_owned());
        let (is_done, counted) = (done.clone(), count.clone());
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(50));
            while !is_done.load(Ordering::Acquire) {
                ticks.tick().await;
                let change = counted.fetch_add(1, Ordering::AcqRel);
                let patch = json!({"spec": {"replicas": 2 + change}});
                let name = format!("b{:03}", change as usize % CHANGED);
                stage.admin.merge(Kind::BENCH, &namespace, &name, "somebody", &patch).await?;
            }
            Ok(())
        });
        Self { done, count, task }
    }

    async fn until_under_way(&self) -> Result<()> {
        eventually("changes are under way", SOON, async || {
            let count = self.count.load(Ordering::Acquire);
            Ok(if count > 20 { Ok(()) } else { Err(format!("{count} changes")) })
        })
        .await
    }

    async fn end(self) -> Result<()> {
        self.done.store(true, Ordering::Release);
        self.task.await?
    }
}

async fn deployments_have_the_replicas_that_were_asked_for_last(
    stage: &Stage,
    namespace: &str,
) -> Result<()> {
    for index in 0..CHANGED {
        let name = format!("b{index:03}");
        let wanted =
            stage.admin.must_get(Kind::BENCH, namespace, &name).await?["spec"]["replicas"].clone();
        let made = stage.admin.must_get(Kind::DEPLOYMENT, namespace, &name).await?;
        assert_eq!(made["spec"]["replicas"], wanted, "{name}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_candidate_never_replaces_the_active_revision() -> Result<()> {
    let stage = Stage::new().await?;
    // Without a preview, which would hold what fails, and without going back: to see what the
    // primaries say.
    let unguarded = json!({"allowedCRDGroups": ["bench.innkeeper.dev"],
        "rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}});
    stage.module("bench", "bench-guest", &unguarded).await?;
    stage
        .module("settings", "settings", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]}))
        .await?;
    let _host = stage.host().await?;
    stage.ready("bench").await?;
    stage.ready("settings").await?;
    let namespace = stage.admin.namespace("broken").await?;
    let ns = namespace.as_str();
    stage.admin.apply(&bench(ns, "a", 1)).await?;
    stage.all_synced(Kind::BENCH, ns, 1).await?;

    stage.push_bytes("bench", b"this is no component").await?;
    unloadable_candidate_is_reported(&stage, ns, "garbage", "SourceMalformed", 2).await?;
    stage.push("bench", "imports-wasi").await?;
    unloadable_candidate_is_reported(&stage, ns, "imports-wasi", "UnknownImport", 3).await?;
    stage.push("bench", "traps-in-describe").await?;
    unloadable_candidate_is_reported(&stage, ns, "traps-in-describe", "DescribeFailed", 4).await?;

    failing_reconcile_is_reported(&stage, ns, "loops-in-reconcile", "GuestTimeout").await?;
    failing_reconcile_is_reported(&stage, ns, "allocates-in-reconcile", "GuestOutOfMemory").await?;
    failing_reconcile_is_reported(&stage, ns, "makes-undeclared-kind", "UndeclaredKind").await?;

    // A good one again: all is well again.
    stage.push("bench", "bench-guest").await?;
    stage.says((Kind::BENCH, ns, "a"), ("Synced", "True", "Applied")).await?;
    stage.module_says("bench", "Healthy", "True", "ReconcileSucceeded").await?;
    Ok(())
}

/// A pushed component cannot be loaded: the Module says why, and the active revision takes up a
/// change. Ends with the good component.
async fn unloadable_candidate_is_reported(
    stage: &Stage,
    ns: &str,
    what: &str,
    reason: &str,
    replicas: u32,
) -> Result<()> {
    let loaded = eventually("the Module says why", SOON, async || {
        let module = stage.admin.must_get(Kind::MODULE, "", "bench").await?;
        let loaded = module["status"]["conditions"]
            .as_array()
            .and_then(|all| all.iter().find(|one| one["type"] == "Loaded"))
            .cloned()
            .unwrap_or_default();
        Ok(if loaded["status"] == "False" && loaded["message"] != "" {
            Ok(loaded)
        } else {
            Err(format!("Loaded is {loaded}"))
        })
    })
    .await?;
    println!("{what}: {} {}", loaded["reason"], loaded["message"]);
    assert_eq!(loaded["reason"], reason, "{what}: {loaded}");
    let module = stage.admin.must_get(Kind::MODULE, "", "bench").await?;
    assert!(says(&module, "Serving", "True", "RevisionActive"), "{what}: {module:#}");

    stage.admin.apply(&bench(ns, "a", replicas)).await?;
    let follows = |one: &Value| one["spec"]["replicas"] == replicas;
    let at = (Kind::DEPLOYMENT, ns, "a");
    stage.admin.until("the active revision goes on", SOON, at, follows).await?;
    // The next is another source again.
    stage.push("bench", "bench-guest").await?;
    stage.ready("bench").await?;
    Ok(())
}

/// A component that fails in reconcile becomes active: its primary and the Module say why, no
/// object is touched, and another module goes on.
async fn failing_reconcile_is_reported(
    stage: &Stage,
    ns: &str,
    component: &str,
    reason: &str,
) -> Result<()> {
    let before = stage.admin.must_get(Kind::DEPLOYMENT, ns, "a").await?;
    stage.push("bench", component).await?;
    let message = stage.says((Kind::BENCH, ns, "a"), ("Synced", "False", reason)).await?;
    println!("{component}: {message}");
    let message = stage.module_says("bench", "Healthy", "False", reason).await?;
    assert!(!message.is_empty(), "the Module says it too");
    let deployment = stage.admin.must_get(Kind::DEPLOYMENT, ns, "a").await?;
    assert_eq!(deployment["spec"]["replicas"], before["spec"]["replicas"]);
    assert_eq!(deployment["spec"]["replicas"], 4);
    let name = format!("during-{}", component.split('-').next().unwrap_or(component));
    other_module_works(stage, ns, &name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn object_that_is_no_longer_desired_is_deleted() -> Result<()> {
    let stage = Stage::new().await?;
    stage
        .module("settings", "settings", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]}))
        .await?;
    let _host = stage.host().await?;
    stage.ready("settings").await?;
    let namespace = stage.admin.namespace("prune").await?;
    let ns = namespace.as_str();
    let settings = |names: &[&str]| {
        json!({"apiVersion": Kind::SETTINGS.api_version, "kind": Kind::SETTINGS.kind,
            "metadata": {"name": "s", "namespace": ns}, "spec": {"names": names}})
        .to_string()
    };
    stage.admin.apply(&settings(&["x", "y", "z"])).await?;
    for name in ["s-x", "s-y", "s-z"] {
        stage.admin.until("it is made", SOON, (Kind::CONFIG_MAP, ns, name), |_| true).await?;
    }
    stage.admin.apply(&settings(&["y"])).await?;
    for name in ["s-x", "s-z"] {
        stage.admin.until_gone(SOON, (Kind::CONFIG_MAP, ns, name)).await?;
    }
    assert!(stage.admin.get(Kind::CONFIG_MAP, ns, "s-y").await?.is_some());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn module_reads_and_writes_only_with_the_rights_of_its_account() -> Result<()> {
    let stage = Stage::new().await?;
    stage
        .module("settings", "settings", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]}))
        .await?;
    // The account of the second may do everything but Services.
    stage
        .module_without_rights(
            "bench",
            "bench-guest",
            &json!({"allowedCRDGroups": ["bench.innkeeper.dev"]}),
        )
        .await?;
    stage.admin.apply(&bench_rights(&["get"])).await?;
    let _host = stage.host().await?;
    stage.ready("settings").await?;
    let mark = stage.plane.audit()?.mark()?;
    stage.module_says("bench", "Serving", "True", "RevisionActive").await?;
    let namespace = stage.admin.namespace("rights").await?;
    let ns = namespace.as_str();

    missing_right_is_named_and_the_rest_goes_on(&stage, ns).await?;
    right_to_read_does_not_grant_writes(&stage, ns).await?;
    granted_rights_count_without_a_restart(&stage, ns).await?;
    accounts_touched_their_own_kinds_only(&stage, mark)
}

/// The rights of the module `bench`, with these verbs for Services.
fn bench_rights(services: &[&str]) -> String {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
    "metadata": {"name": "bench-partly"},
    "rules": [
        {"apiGroups": ["bench.innkeeper.dev"], "resources": ["benches", "benches/status", "benches/finalizers"],
            "verbs": ["get", "list", "watch", "patch", "update"]},
        {"apiGroups": ["apps"], "resources": ["deployments"],
            "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": services},
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
            "verbs": ["get", "create", "patch"]},
    ]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "bench-partly"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench-partly"},
        "subjects": [{"kind": "ServiceAccount", "name": "bench", "namespace": "innkeeper-modules"}]});
    format!("{role}\n---\n{binding}")
}

/// A condition names verb, resource and scope; other objects and other modules are worked on.
async fn missing_right_is_named_and_the_rest_goes_on(stage: &Stage, ns: &str) -> Result<()> {
    let message = stage.module_says("bench", "Authorized", "False", "Forbidden").await?;
    assert!(message.contains("list services") && message.contains("whole cluster"), "{message}");
    stage.admin.apply(&bench(ns, "a", 1)).await?;
    let message = stage.says((Kind::BENCH, ns, "a"), ("Synced", "False", "Unreadable")).await?;
    assert!(message.contains("services"), "{message}");
    stage
        .admin
        .until("the Deployment is made", SOON, (Kind::DEPLOYMENT, ns, "a"), |_| true)
        .await?;
    other_module_works(stage, ns, "s").await
}

/// The module `settings` makes a ConfigMap for a new primary.
async fn other_module_works(stage: &Stage, ns: &str, name: &str) -> Result<()> {
    let settings = json!({"apiVersion": Kind::SETTINGS.api_version, "kind": Kind::SETTINGS.kind,
        "metadata": {"name": name, "namespace": ns}, "spec": {"names": ["x"]}});
    stage.admin.apply(&settings.to_string()).await?;
    let at = (Kind::CONFIG_MAP, ns, &*format!("{name}-x"));
    stage.admin.until("the other module works", SOON, at, |_| true).await?;
    Ok(())
}

async fn right_to_read_does_not_grant_writes(stage: &Stage, ns: &str) -> Result<()> {
    stage.admin.apply(&bench_rights(&["get", "list", "watch"])).await?;
    let message = stage.says((Kind::BENCH, ns, "a"), ("Synced", "False", "Forbidden")).await?;
    assert!(message.contains("services") && message.contains(ns), "{message}");
    Ok(())
}

async fn granted_rights_count_without_a_restart(stage: &Stage, ns: &str) -> Result<()> {
    let all = bench_rights(&["get", "list", "watch", "create", "patch", "delete"]);
    stage.admin.apply(&all).await?;
    stage.admin.until("the Service is made", 3 * SOON, (Kind::SERVICE, ns, "a"), |_| true).await?;
    stage.says((Kind::BENCH, ns, "a"), ("Synced", "True", "Applied")).await?;
    Ok(())
}

/// From the audit log: each account touched its own kinds only, and the host nothing of theirs.
fn accounts_touched_their_own_kinds_only(stage: &Stage, mark: u64) -> Result<()> {
    let common = [
        "events",
        "customresourcedefinitions",
        "selfsubjectaccessreviews",
        "selfsubjectreviews",
        "",
        "secrets",
    ];
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new())?;
    for event in events.iter().filter(|event| event.user == HOST) {
        let own: &[&str] = match event.impersonated.as_deref() {
            Some("system:serviceaccount:innkeeper-modules:bench") => {
                &["benches", "deployments", "services"]
            }
            Some("system:serviceaccount:innkeeper-modules:settings") => &["settings", "configmaps"],
            Some(other) => anyhow::bail!("the host acted as {other}"),
            None => &["modules", "configmaps"],
        };
        let resource = event.resource.as_str();
        assert!(
            own.contains(&resource) || common.contains(&resource),
            "{:?} {} {}",
            event.impersonated,
            event.verb,
            event.uri
        );
        if event.impersonated.is_none() && resource == "configmaps" {
            assert_eq!(event.namespace, "innkeeper-modules", "{}", event.uri);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn primary_with_a_resync_period_is_reconciled_periodically() -> Result<()> {
    let stage = Stage::new().await?;
    stage
        .module("settings", "settings", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]}))
        .await?;
    let host = stage.host().await?;
    stage.ready("settings").await?;
    let namespace = stage.admin.namespace("resync").await?;
    let settings = |period: &str| {
        json!({"apiVersion": Kind::SETTINGS.api_version, "kind": Kind::SETTINGS.kind,
            "metadata": {"name": "s", "namespace": namespace,
                "annotations": {"innkeeper.dev/resync-period": period}},
            "spec": {"names": ["x"]}})
        .to_string()
    };
    // What cannot be read is reported, and the module's own period counts: none.
    stage.admin.apply(&settings("often")).await?;
    eventually("an Event says what is wrong", SOON, async || {
        let events = stage.admin.list(Kind::EVENT, &namespace).await?;
        let found = events.iter().find(|one| one["reason"] == "InvalidResyncPeriod");
        let message = found.and_then(|one| one["message"].as_str()).unwrap_or_default();
        Ok(if message.contains("30s") { Ok(()) } else { Err(format!("{events:?}")) })
    })
    .await?;
    stage.says((Kind::SETTINGS, &namespace, "s"), ("Synced", "True", "Applied")).await?;

    stage.admin.apply(&settings("1s")).await?;
    let runs = async || -> Result<f64> {
        let runs =
            host.metric("innkeeper_guest_call_duration_seconds_count", &["settings"]).await?;
        Ok(runs.unwrap_or_default())
    };
    let before = runs().await?;
    eventually("it has run three times more", SOON, async || {
        let now = runs().await?;
        Ok(if now >= before + 3.0 { Ok(()) } else { Err(format!("{before}, then {now}")) })
    })
    .await?;
    Ok(())
}
