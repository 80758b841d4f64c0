//! Records and snapshots that no leader writes: they change nothing of what reviews.

use std::time::Duration;

use innkeeper_modules::Digest;
use innkeeper_operator::policies::PolicyRecord;
use innkeeper_operator::policies::record::RECORD_BYTES_MAX;
use innkeeper_tiny_guests::{ALLOWED, POLICY_MANIFEST, Tiny};
use serde_json::{Value, json};

use crate::support::policy_cluster::{
    HOST, PolicyCluster, Replica, record, record_path, snapshot_path,
};
use crate::support::{Sent, block_on};

const DENIED: &str = r#"{"allowed":false}"#;

/// A replica that reviews with the records of two modules.
async fn reviewing() -> (PolicyCluster, Replica, [PolicyRecord; 2]) {
    let cluster = PolicyCluster::new().await;
    cluster.put_account("other", json!("other")).await;
    let records = [
        cluster.decide("labels", ALLOWED, &json!({})).await,
        cluster.decide("other", ALLOWED, &json!({})).await,
    ];
    let replica = Replica::start(&cluster.simulator, "one");
    for record in &records {
        replica.until_active(record).await;
    }
    (cluster, replica, records)
}

/// Sets the text of the record of `labels`.
async fn set_record(cluster: &PolicyCluster, text: &str) {
    cluster.merge(&record_path("labels"), &json!({"data": {"record": text}})).await;
}

#[test]
fn broken_snapshot_keeps_the_previous_revision_and_other_policies() {
    block_on(async {
        let (cluster, replica, [labels, other]) = reviewing().await;
        let other_reads = POLICY_MANIFEST
            .replace(r#""ConfigMap","plural":"configmaps""#, r#""Secret","plural":"secrets""#);
        assert_ne!(other_reads, POLICY_MANIFEST);
        let of_manifest = Tiny::policy(DENIED).manifest(&other_reads).component();
        let reconciler = Tiny::default().component();
        let truncated = Tiny::policy(DENIED).component()[..200].to_vec();
        for (name, digest, bytes, expected) in [
            ("missing", Digest::of(b"missing"), None, "does not exist"),
            (
                "replaced",
                Digest::of(b"replaced"),
                Some(Tiny::policy(DENIED).component()),
                "somebody has replaced it",
            ),
            ("truncated", Digest::of(&truncated), Some(truncated), "cannot be loaded"),
            (
                "no wasm",
                Digest::of(b"<html>"),
                Some(b"<html>".to_vec()),
                "neither WebAssembly nor gzip",
            ),
            (
                "other reads",
                Digest::of(&of_manifest),
                Some(of_manifest),
                "describes itself otherwise",
            ),
            ("no policy", Digest::of(&reconciler), Some(reconciler), "describes itself otherwise"),
        ] {
            // When a record names a component that cannot be loaded.
            if let Some(bytes) = &bytes {
                cluster.put_snapshot_of("labels", digest, bytes).await;
            }
            let mut broken = labels.clone();
            broken.digest = digest;
            cluster.put_record(&broken).await;

            // Then the replica says why, and reviews as before.
            let problem = replica.until_problem("labels").await;
            assert!(problem.contains(expected), "{name}: {problem}");
            assert!(problem.chars().all(|c| !c.is_control()), "{problem:?}");
            replica.pass(Duration::from_secs(10)).await;
            assert!(replica.reviews_with(&labels) && replica.reviews_with(&other), "{name}");
            assert_eq!(replica.problem("other"), None);

            // When the leader returns to the previous revision, nothing is wrong any more.
            cluster.put_record(&labels).await;
            replica.until("no problem", || replica.problem("labels").is_none()).await;
            assert!(replica.reviews_with(&labels));
        }
        replica.end().await;
    });
}

#[test]
fn snapshot_that_is_repaired_is_loaded_without_a_new_record() {
    block_on(async {
        let (cluster, replica, [labels, _]) = reviewing().await;
        let component = Tiny::policy(DENIED).component();
        let next = record("labels", &component, &json!({}));
        cluster.put_record(&next).await;
        replica.until_problem("labels").await;
        assert!(replica.reviews_with(&labels));
        cluster.put_snapshot("labels", &component).await;
        replica.until_active(&next).await;
        assert_eq!(replica.problem("labels"), None);
        replica.end().await;
    });
}

#[test]
fn forged_record_keeps_the_previous_revision_and_other_policies() {
    block_on(async {
        let (cluster, replica, [labels, other]) = reviewing().await;
        let config_map = labels.config_map(HOST).unwrap();
        let good = config_map["data"]["record"].as_str().unwrap();
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut record: Value = serde_json::from_str(good).unwrap();
            change(&mut record);
            record.to_string()
        };
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep_parameters =
            good.replacen("\"settings\":{", &format!("\"settings\":{{\"parameters\":{deep},"), 1);
        for (text, expected) in [
            (String::new(), "EOF"),
            ("null".to_owned(), "invalid type"),
            (" ".repeat(RECORD_BYTES_MAX + 1), "and a host takes"),
            (deep, "invalid type"),
            (deep_parameters, "recursion limit"),
            (changed(&|record| record["format"] = json!(2)), "the same version of the host"),
            (changed(&|record| record["module"] = json!("other")), "it is of the Module other"),
            (changed(&|record| record["digest"] = json!("\u{1b}[2J")), "64 hex digits"),
            (changed(&|record| record["manifest"]["policy"] = Value::Null), "has no policy"),
            (
                changed(&|record| record["settings"]["limits"]["timeMs"] = json!(9_999_999)),
                "timeMs",
            ),
            (changed(&|record| record["settings"]["shell"] = json!("sh")), "unknown field"),
        ] {
            set_record(&cluster, &text).await;
            let cut: String = text.chars().take(80).collect();
            replica
                .until(&cut, || {
                    replica.problem("labels").is_some_and(|problem| problem.contains(expected))
                })
                .await;
            let problem = replica.problem("labels").unwrap();
            assert!(
                problem.len() < 1_500 && problem.chars().all(|c| !c.is_control()),
                "{problem:?}"
            );
            assert!(replica.reviews_with(&labels) && replica.reviews_with(&other), "{problem}");
            assert_eq!(replica.problem("other"), None);
        }
        // The leader writes its record over it.
        set_record(&cluster, good).await;
        replica.until("no problem", || replica.problem("labels").is_none()).await;
        assert!(replica.reviews_with(&labels));
        replica.end().await;
    });
}

#[test]
fn forged_record_at_the_start_is_reported_and_delays_nothing() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let labels = cluster.decide("labels", ALLOWED, &json!({})).await;
        for number in 0..50 {
            let name = format!("innkeeper-policy-forged-{number}");
            let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": HOST}, "data": {"record": "{}"}});
            cluster.apply(&config_map).await;
        }
        // Without the beginning of the name, or in another namespace, it is no record.
        let mut elsewhere = labels.config_map("innkeeper-modules").unwrap();
        elsewhere["metadata"]["name"] = json!("innkeeper-policy-elsewhere");
        cluster.apply(&elsewhere).await;
        let mut renamed = labels.config_map(HOST).unwrap();
        renamed["metadata"]["name"] = json!("policy-labels");
        cluster.apply(&renamed).await;
        let replica = Replica::start(&cluster.simulator, "one");
        let took = replica.until("complete", || replica.policies.active().is_complete()).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
        assert!(replica.reviews_with(&labels));
        assert_eq!(replica.policies.active().ids().len(), 1);
        let problems = replica.policies.problems().borrow().clone();
        assert_eq!(problems.len(), 50);
        assert!(problems["forged-7"].contains("cannot be read"), "{}", problems["forged-7"]);
        replica.end().await;
    });
}

#[test]
fn record_of_an_account_that_allows_another_module_reads_nothing() {
    block_on(async {
        // Given an account that the module `labels` may act as.
        let cluster = PolicyCluster::new().await;
        // When a record of another module names it, and one names an account that does not exist.
        let stranger =
            cluster.decide("stranger", ALLOWED, &json!({"serviceAccountName": "labels"})).await;
        let lost = cluster.decide("lost", ALLOWED, &json!({"serviceAccountName": "nobody"})).await;
        let replica = Replica::start(&cluster.simulator, "one");
        for record in [&stranger, &lost] {
            replica.until_active(record).await;
            // Then it reviews and reads nothing.
            let policy = replica.policy(&record.module).unwrap();
            assert!(policy.view.is_none());
            assert!(policy.kind_of("v1", "ConfigMap").is_some(), "it would read");
        }
        replica.pass(Duration::from_mins(1)).await;
        let as_account = |sent: &Sent| !sent.user.is_empty();
        assert!(!replica.proxy.take().iter().any(as_account));
        replica.end().await;
    });
}

#[test]
fn record_without_an_account_never_acts_as_the_host() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let component = Tiny::policy(ALLOWED).component();
        cluster.put_snapshot("labels", &component).await;
        let mut record = record("labels", &component, &json!({}));
        record.settings.service_account = None;
        cluster.put_record(&record).await;
        let replica = Replica::start(&cluster.simulator, "one");
        replica.until_active(&record).await;
        let policy = replica.policy("labels").unwrap();
        assert!(policy.view.is_none());
        replica.proxy.take();
        let maps = innkeeper_contract::Kind::namespaced("v1", "ConfigMap", "configmaps");
        let key = innkeeper_core::ObjectKey::new(HOST, "innkeeper-policy-labels");
        policy.client.get(&maps, &key).await.unwrap_err();
        let sent = replica.proxy.take();
        assert!(!sent.iter().any(|one| one.path == record_path("labels")), "nothing is sent");
        assert!(!sent.iter().any(|one| one.path == snapshot_path("labels", &component)));
        replica.end().await;
    });
}
