//! The tools themselves, on a real control plane.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use innkeeper_cluster_tests::{
    Admin, AuditFilter, Fault, Kind, Matching, Proxy, When, eventually, shared,
};
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use serde_json::json;

const BOUND: Duration = Duration::from_mins(1);

fn config_map(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{namespace: {namespace}, name: {name}}}, data: {{key: {value}}}}}"
    )
}

fn config_maps(client: &Admin, namespace: &str) -> Api<DynamicObject> {
    let gvk = kube::api::GroupVersionKind::gvk("", "v1", "ConfigMap");
    let resource = kube::api::ApiResource::from_gvk(&gvk);
    Api::namespaced_with(client.client().clone(), namespace, &resource)
}

/// The next event that is not a bookmark: its object's name.
async fn next<S>(events: &mut S) -> Result<String>
where
    S: futures::TryStream<Ok = WatchEvent<DynamicObject>, Error = kube::Error> + Unpin,
{
    loop {
        match events.try_next().await?.context("the watch ended")? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                return object.metadata.name.context("no name");
            }
            WatchEvent::Bookmark(_) => (),
            other => anyhow::bail!("unexpected {other:?}"),
        }
    }
}

#[tokio::test]
async fn objects_are_applied_read_patched_and_deleted() -> Result<()> {
    let admin = Admin::of(shared()?).await?;
    let namespace = admin.namespace("harness").await?;
    admin.apply(&config_map(&namespace, "a", "one")).await?;
    let patch = json!({ "data": { "key": "two" } });
    admin.merge(Kind::CONFIG_MAP, &namespace, "a", "somebody", &patch).await?;
    let at = (Kind::CONFIG_MAP, namespace.as_str(), "a");
    let object = admin.until("two", BOUND, at, |object| object["data"]["key"] == "two").await?;
    let managers: Vec<_> = object["metadata"]["managedFields"]
        .as_array()
        .context("managedFields")?
        .iter()
        .map(|entry| (entry["manager"].clone(), entry["operation"].clone()))
        .collect();
    // The change took the only field away from `test`.
    assert_eq!(managers, [(json!("somebody"), json!("Update"))]);
    let taken = admin.apply_as("third", false, &config_map(&namespace, "a", "three")).await;
    assert!(format!("{:#}", taken.unwrap_err()).contains("conflict"));
    admin.delete(Kind::CONFIG_MAP, &namespace, "a").await?;
    admin.until_gone(BOUND, at).await
}

#[tokio::test]
async fn the_audit_log_counts_writes_by_user_and_resource() -> Result<()> {
    let plane = shared()?;
    let admin = Admin::of(plane).await?;
    let namespace = admin.namespace("harness").await?;
    let audit = plane.audit()?;
    admin.apply(&config_map(&namespace, "a", "one")).await?;
    let filter =
        AuditFilter::new().writes().user("admin").namespace(&namespace).resource("configmaps");
    let events = eventually("a write in the audit log", BOUND, async || {
        let events = audit.events(&filter)?;
        Ok(if events.is_empty() { Err("none".to_owned()) } else { Ok(events) })
    })
    .await?;
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].verb.as_str(), events[0].code), ("patch", 201));
    Ok(())
}

#[tokio::test]
async fn a_condition_that_does_not_come_says_what_there_is() -> Result<()> {
    let admin = Admin::of(shared()?).await?;
    let namespace = admin.namespace("harness").await?;
    let bound = Duration::from_millis(50);
    let at = (Kind::CONFIG_MAP, namespace.as_str(), "absent");
    let error = admin.until("it is there", bound, at, |_| true).await.unwrap_err().to_string();
    assert!(error.contains("it is there: not so after"), "{error}");
    assert!(error.contains("absent is not there"), "{error}");
    Ok(())
}

#[tokio::test]
async fn an_account_has_the_rights_that_it_was_given() -> Result<()> {
    let plane = shared()?;
    let admin = Admin::of(plane).await?;
    let namespace = admin.namespace("harness").await?;
    let account = format!(
        "{{apiVersion: v1, kind: ServiceAccount, metadata: {{namespace: {namespace}, name: weak}}}}"
    );
    admin.apply(&account).await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kubeconfig");
    admin.account_kubeconfig(plane.anonymous_kubeconfig()?, (&namespace, "weak"), &path).await?;
    let weak = Admin::connect(&path).await?;
    let error = format!("{:#}", weak.list(Kind::CONFIG_MAP, &namespace).await.unwrap_err());
    let user = format!("system:serviceaccount:{namespace}:weak");
    assert!(error.contains("forbidden") && error.contains(&user), "{error}");
    Ok(())
}

#[tokio::test]
async fn the_proxy_holds_watch_events_back_and_lets_them_go_in_order() -> Result<()> {
    let plane = shared()?;
    let admin = Admin::of(plane).await?;
    let namespace = admin.namespace("harness").await?;
    let proxy = Proxy::start(plane.kubeconfig()).await?;
    let through = Admin::connect(&proxy.kubeconfig()).await?;
    let api = config_maps(&through, &namespace);
    let fields = WatchParams::default().fields("metadata.name!=kube-root-ca.crt");
    let mut events = Box::pin(api.watch(&fields, "0").await?);
    admin.apply(&config_map(&namespace, "before", "x")).await?;
    assert_eq!(next(&mut events).await?, "before");

    proxy.hold("configmaps");
    admin.apply(&config_map(&namespace, "first", "x")).await?;
    admin.apply(&config_map(&namespace, "second", "x")).await?;
    eventually("two events are held back", BOUND, async || {
        let held = proxy.held("configmaps");
        Ok(if held >= 2 { Ok(()) } else { Err(format!("{held} held")) })
    })
    .await?;
    let early = tokio::time::timeout(Duration::from_millis(200), next(&mut events)).await;
    assert!(early.is_err(), "came through: {early:?}");
    // What is no watch passes, so that a cache can be shown to be stale.
    assert!(through.get(Kind::CONFIG_MAP, &namespace, "second").await?.is_some());

    proxy.release("configmaps");
    assert_eq!(next(&mut events).await?, "first");
    assert_eq!(next(&mut events).await?, "second");
    Ok(())
}

#[tokio::test]
async fn a_stalled_watch_is_silent_and_a_cut_one_ends() -> Result<()> {
    let plane = shared()?;
    let admin = Admin::of(plane).await?;
    let namespace = admin.namespace("harness").await?;
    let proxy = Proxy::start(plane.kubeconfig()).await?;
    let through = Admin::connect(&proxy.kubeconfig()).await?;
    let api = config_maps(&through, &namespace);
    let fields = WatchParams::default().fields("metadata.name!=kube-root-ca.crt");
    let mut events = Box::pin(api.watch(&fields, "0").await?);
    admin.apply(&config_map(&namespace, "before", "x")).await?;
    assert_eq!(next(&mut events).await?, "before");

    assert_eq!(proxy.stall_watches("configmaps"), 1);
    admin.apply(&config_map(&namespace, "unseen", "x")).await?;
    let mut other = Box::pin(api.watch(&fields, "0").await?);
    let mut seen = [next(&mut other).await?, next(&mut other).await?];
    seen.sort();
    assert_eq!(seen, ["before", "unseen"]);
    let early = tokio::time::timeout(Duration::from_millis(200), next(&mut events)).await;
    assert!(early.is_err(), "came through: {early:?}");

    assert_eq!(proxy.cut_watches("configmaps"), 2);
    assert!(next(&mut other).await.is_err());
    eventually("no watch is open", BOUND, async || {
        let open = proxy.watches("configmaps");
        Ok(if open == 0 { Ok(()) } else { Err(format!("{open} open")) })
    })
    .await
}

#[tokio::test]
async fn faults_happen_as_often_as_asked_and_lost_answers_are_carried_out() -> Result<()> {
    let plane = shared()?;
    let admin = Admin::of(plane).await?;
    let namespace = admin.namespace("harness").await?;
    let proxy = Proxy::start(plane.kubeconfig()).await?;
    let through = Admin::connect(&proxy.kubeconfig()).await?;
    let patches = || Matching::writes().resource("configmaps");

    let busy = Fault::Answer { code: 429, retry_after_s: Some(1) };
    proxy.fail(patches(), busy, 2);
    for _ in 0..2 {
        let error = through.apply(&config_map(&namespace, "a", "x")).await.unwrap_err();
        assert!(format!("{error:#}").contains("refused by the test's proxy"), "{error:#}");
    }
    through.apply(&config_map(&namespace, "a", "x")).await?;

    proxy.fail(patches(), Fault::LoseResponse, 1);
    assert!(through.apply(&config_map(&namespace, "lost-answer", "x")).await.is_err());
    assert!(admin.get(Kind::CONFIG_MAP, &namespace, "lost-answer").await?.is_some());

    proxy.fail(patches(), Fault::LoseRequest, 1);
    assert!(through.apply(&config_map(&namespace, "lost-request", "x")).await.is_err());
    assert!(admin.get(Kind::CONFIG_MAP, &namespace, "lost-request").await?.is_none());

    proxy.fail(patches(), Fault::Delay, 1);
    let yaml = config_map(&namespace, "late", "x");
    let (applied, waited) = tokio::join!(
        through.apply(&yaml),
        eventually("one request waits", BOUND, async || {
            if proxy.delayed() == 0 {
                return Ok(Err("none".to_owned()));
            }
            let there = admin.get(Kind::CONFIG_MAP, &namespace, "late").await?.is_some();
            proxy.let_go();
            Ok(Ok(there))
        })
    );
    applied?;
    assert!(!waited?, "it was forwarded before it was let go");

    let codes: Vec<u16> = proxy.requests(&patches()).iter().map(|request| request.code).collect();
    assert_eq!(codes, [429, 429, 201, 0, 0, 201]);
    Ok(())
}

#[tokio::test]
async fn something_is_called_at_the_nth_write_before_or_after_it_happens() -> Result<()> {
    let plane = shared()?;
    let admin = Admin::of(plane).await?;
    let namespace = admin.namespace("harness").await?;
    let proxy = Proxy::start(plane.kubeconfig()).await?;
    let through = Admin::connect(&proxy.kubeconfig()).await?;
    let (sender, mut called) = tokio::sync::mpsc::unbounded_channel();
    let other = sender.clone();
    proxy.at_write(2, When::Before, move || sender.send(2).unwrap());
    proxy.at_write(3, When::After, move || other.send(3).unwrap());

    through.apply(&config_map(&namespace, "one", "x")).await?;
    assert!(called.try_recv().is_err());
    assert!(through.apply(&config_map(&namespace, "two", "x")).await.is_err());
    assert_eq!(called.try_recv(), Ok(2));
    assert!(through.apply(&config_map(&namespace, "three", "x")).await.is_err());
    assert_eq!(called.try_recv(), Ok(3));

    assert!(admin.get(Kind::CONFIG_MAP, &namespace, "two").await?.is_none());
    assert!(admin.get(Kind::CONFIG_MAP, &namespace, "three").await?.is_some());
    assert_eq!(proxy.writes(), 3);
    Ok(())
}

#[tokio::test]
async fn the_proxy_passes_impersonation_on_and_can_refuse_connections() -> Result<()> {
    let plane = shared()?;
    let mut proxy = Proxy::start(plane.kubeconfig()).await?;
    let through = Admin::connect(&proxy.kubeconfig()).await?;
    let request = || {
        http::Request::get("/api/v1/namespaces/default/configmaps")
            .header("Impersonate-User", "nobody-special")
            .body(Vec::new())
    };
    let error = through.client().request_text(request()?).await.unwrap_err().to_string();
    assert!(error.contains("nobody-special"), "{error}");
    let seen = proxy.requests(&Matching::any().resource("configmaps"));
    assert_eq!(seen[0].impersonated.as_deref(), Some("nobody-special"));
    assert_eq!(seen[0].code, 403);

    proxy.refuse().await;
    assert!(through.get(Kind::NAMESPACE, "", "default").await.is_err());
    proxy.accept().await?;
    assert!(through.get(Kind::NAMESPACE, "", "default").await?.is_some());
    Ok(())
}
