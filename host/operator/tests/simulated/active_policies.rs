//! The policies with which a replica reviews.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_admission::Mode;
use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings};
use innkeeper_contract::PolicyKind;
use innkeeper_lab::{Guests, Lab, Modules, Setup};
use innkeeper_modules::{Digest, Module, SourceKind, ValidatedSpec};
use innkeeper_operator::policies::active_policies::REMOVED_TIME;
use innkeeper_operator::policies::{ActivePolicies, ActivePolicy, Entry, PolicyRecord};
use innkeeper_sandbox::{Compile, Engine, Limits};
use innkeeper_simulator::{Controllers, Simulator};
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::json;
use tokio::time::Instant;

use crate::support::block_on;

/// A policy of the module `m` with this verdict, without caches.
fn policy(verdict: &str) -> Arc<ActivePolicy> {
    let engine = Engine::builder().compile(Compile::InProcess).guests(2).build().unwrap();
    let component = Tiny::policy(verdict).component();
    let guest = engine.load(&component, &Limits::default()).unwrap();
    let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m"}, "spec": {"source": {"configMap": {"name": "m"}},
            "serviceAccountName": "m", "parameters": {"a": 1}, "limits": {"timeout": "3s"},
            "policy": {"mode": "Warn", "overrides": [
                {"namespaces": {"key": "env", "operator": "Exists"}, "mode": "Audit"}]}}});
    let module = Module::from_value(&module).unwrap();
    let settings =
        ValidatedSpec::new(&module, SourceKind::Cluster, Limits::default(), None).unwrap();
    let digest = Digest::of(&component);
    let record = PolicyRecord::new("m", "u", digest, guest.manifest(), &settings).unwrap();
    let simulator = Simulator::with(1, Setup::new(1).start, Controllers::default());
    let env = Env::scripted(1, simulator.now());
    let cluster = Cluster::over(simulator, env, Settings::default(), SecretDigestKey::new(b"k"));
    Arc::new(ActivePolicy::new(&record, &guest, cluster.host(), None).unwrap())
}

fn active(policies: &ActivePolicies, now: Instant) -> Arc<ActivePolicy> {
    match policies.get("m", now) {
        Some(Entry::Active(policy)) => policy,
        Some(Entry::Removed { .. }) => panic!("removed"),
        None => panic!("none"),
    }
}

#[test]
fn swap_is_seen_by_the_next_get_and_not_by_a_held_policy() {
    block_on(async {
        let (first, second) = (policy(ALLOWED), policy(r#"{"allowed":false}"#));
        let (policies, now) = (ActivePolicies::default(), Instant::now());
        let mut changes = policies.changes();
        assert!(policies.get("m", now).is_none());
        policies.swap(&first);
        let held = active(&policies, now);
        policies.swap(&second);
        assert!(Arc::ptr_eq(&held, &first));
        assert!(Arc::ptr_eq(&active(&policies, now), &second));
        assert_eq!(policies.ids()["m"], second.id);
        assert_ne!(first.id, second.id);
        assert!(changes.has_changed().unwrap());
        assert_eq!(*changes.borrow_and_update(), 2);
        assert!(policies.get("other", now).is_none() && !policies.is_complete());
        policies.set_complete();
        assert!(policies.is_complete() && changes.has_changed().unwrap());
    });
}

#[test]
fn removed_policy_allows_until_its_time() {
    block_on(async {
        let (policies, now) = (ActivePolicies::default(), Instant::now());
        policies.swap(&policy(ALLOWED));
        policies.remove("m", now);
        // A second removal does not begin another time.
        policies.remove("m", now + Duration::from_secs(30));
        let last = now + REMOVED_TIME - Duration::from_millis(1);
        assert!(matches!(policies.get("m", last), Some(Entry::Removed { .. })));
        assert!(policies.get("m", now + REMOVED_TIME).is_none());
        assert!(policies.ids().is_empty());
        policies.remove("unknown", now);
        assert!(policies.get("unknown", now).is_none());
        policies.swap(&policy(ALLOWED));
        active(&policies, now + REMOVED_TIME);
    });
}

#[test]
fn active_policy_has_what_its_record_says() {
    block_on(async {
        let policy = policy(ALLOWED);
        assert_eq!(policy.kind, PolicyKind::Validate);
        assert_eq!(&*policy.parameters, r#"{"a":1}"#);
        let modes = [0, 1, 2].map(|webhook| policy.mode(webhook));
        assert_eq!(modes, [Some(Mode::Warn), Some(Mode::Audit), None]);
        assert_eq!(policy.guest.limits().time, Duration::from_secs(3));
        assert!(policy.kind_of("v1", "ConfigMap").is_some());
        assert!(policy.kind_of("v1", "Pod").is_none());
    });
}

#[test]
fn policy_of_a_folder_reviews_in_process_until_its_operator_ends() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("labels.wasm");
        std::fs::write(&file, Tiny::policy(ALLOWED).component()).unwrap();
        let mut setup = Setup::new(5);
        setup.modules = Modules::Given(vec![json!({"apiVersion": "innkeeper.dev/v1alpha1",
            "kind": "Module", "metadata": {"name": "labels"},
            "spec": {"source": {"file": file}, "policy": {}}})]);
        let lab = Lab::start(&Guests::new().unwrap(), setup).await.unwrap();
        lab.serves(Duration::from_mins(1)).await.unwrap();
        let policies = lab.running().policies().clone();
        let ids = policies.active().ids();
        assert_eq!(ids.keys().map(|name| &**name).collect::<Vec<_>>(), ["labels"]);
        assert!(policies.active().is_complete());
        let metrics = lab.running().operator().metrics();
        assert!(metrics.contains("innkeeper_active_policies 1"), "{metrics}");
        assert!(lab.end().await);
        assert!(policies.active().ids().is_empty());
    });
}
