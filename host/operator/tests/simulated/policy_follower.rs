//! Replicas follow the policy records: when a policy becomes active, and with what.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_cluster::KindState;
use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;
use innkeeper_operator::policies::Entry;
use innkeeper_operator::policies::active_policies::REMOVED_TIME;
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

use crate::support::policy_cluster::{
    HOST, PolicyCluster, Replica, lease_path, record, record_path, snapshot_path,
};
use crate::support::{Proxy, Reply, Sent, Setup, block_on, refusal};

const DENIED: &str = r#"{"allowed":false}"#;
const ACCOUNT: &str = "/api/v1/namespaces/innkeeper-modules/serviceaccounts/labels";

fn verdict(number: usize) -> String {
    format!(r#"{{"allowed":false,"message":"{number}"}}"#)
}

/// Lets these modules act as the account of `labels`; null for none.
async fn allow(cluster: &PolicyCluster, modules: Value) {
    let annotations = json!({"innkeeper.dev/allowed-modules": modules});
    cluster.merge(ACCOUNT, &json!({"metadata": {"annotations": annotations}})).await;
}

#[test]
fn record_becomes_active_without_a_leader() {
    block_on(async {
        // Given a replica in a cluster without records.
        let cluster = PolicyCluster::new().await;
        let replica = Replica::start(&cluster.simulator, "one");
        replica.until("complete", || replica.policies.active().is_complete()).await;

        // When a record is there.
        let decided = cluster.decide("labels", ALLOWED, &json!({"policy": {"mode": "Warn"}})).await;

        // Then the policy of the record is active, and can read as its account.
        let took = replica.until_active(&decided).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
        let policy = replica.policy("labels").unwrap();
        assert_eq!((policy.digest, &policy.settings), (decided.digest, &decided.settings));
        let view = policy.view.as_ref().unwrap();
        assert_eq!(view.identity().to_string(), "ServiceAccount innkeeper-modules/labels");
        assert!(view.states().values().all(|state| *state == KindState::Synced));
        assert_eq!(replica.problem("labels"), None);
        replica.end().await;
    });
}

#[test]
fn restart_loads_before_it_is_ready() {
    block_on(async {
        // Given records of two modules, of which one has no snapshot, and an API server that takes
        // three seconds to give the other snapshot.
        let cluster = PolicyCluster::new().await;
        let decided = cluster.decide("labels", ALLOWED, &json!({})).await;
        let component = Tiny::policy(DENIED).component();
        cluster.put_record(&record("lost", &component, &json!({}))).await;
        let proxy = Proxy::new(cluster.simulator.clone());
        let snapshot = snapshot_path("labels", &Tiny::policy(ALLOWED).component());
        proxy.intercept(move |sent| {
            if sent.path == snapshot {
                Reply::Delay(Duration::from_secs(3))
            } else {
                Reply::Forward
            }
        });

        // When a replica starts.
        let replica = Replica::over(proxy, &cluster.simulator, "one");
        replica.pass(Duration::from_millis(2_900)).await;
        assert!(!replica.policies.active().is_complete());
        assert!(cluster.api.get(&lease_path("one")).await.unwrap().is_none());
        assert_eq!(replica.policies.reported_since(), None);

        // Then it reports once the one is active and the other has failed twice.
        replica.until("complete", || replica.policies.active().is_complete()).await;
        assert!(replica.reviews_with(&decided));
        assert!(replica.problem("lost").unwrap().contains("lost-copy-"), "it failed");
        replica.until("reported", || replica.policies.reported_since().is_some()).await;
        let lease = cluster.api.get(&lease_path("one")).await.unwrap().unwrap();
        let report = lease["metadata"]["annotations"]["innkeeper.dev/replica"].as_str().unwrap();
        assert!(report.contains(&decided.id()), "{report}");
        replica.end().await;
    });
}

#[test]
fn settings_change_compiles_nothing() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let first = cluster.decide("labels", ALLOWED, &json!({})).await;
        let replica = Replica::start(&cluster.simulator, "one");
        replica.until_active(&first).await;
        let before = replica.engine.cache().unwrap().figures();
        assert_eq!(before.misses, 1, "the first load compiles");
        replica.proxy.take();

        let spec = json!({"parameters": {"a": 1}, "limits": {"timeout": "3s"}, "policy": {"mode": "Audit"}});
        let second = record("labels", &Tiny::policy(ALLOWED).component(), &spec);
        cluster.put_record(&second).await;
        replica.until_active(&second).await;
        let policy = replica.policy("labels").unwrap();
        assert_eq!(policy.guest.limits().time, Duration::from_secs(3));
        assert_eq!(&*policy.parameters, r#"{"a":1}"#);
        assert_eq!(replica.engine.cache().unwrap().figures(), before);
        let sent = replica.proxy.take();
        assert!(sent.iter().all(|one| !one.path.contains("-copy-")), "nothing is fetched");
        replica.end().await;
    });
}

#[test]
fn withdrawn_account_forbids_reads_and_keeps_the_policy() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let decided = cluster.decide("labels", ALLOWED, &json!({})).await;
        let replica = Replica::start(&cluster.simulator, "one");
        replica.until_active(&decided).await;
        let open = replica.policy("labels").unwrap();
        open.counts.count();
        let maps = Kind::namespaced("v1", "ConfigMap", "configmaps");
        let key = ObjectKey::new(HOST, "innkeeper-policy-labels");
        assert!(open.client.get(&maps, &key).await.is_ok());

        // When the account does not let the module act as it any more.
        allow(&cluster, json!("other")).await;
        let is_closed = || replica.policy("labels").unwrap().view.is_none();
        replica.until("closed", is_closed).await;

        // Then the policy still reviews, and neither it nor the one before sends anything.
        let closed = replica.policy("labels").unwrap();
        assert!(replica.reviews_with(&decided));
        replica.proxy.take();
        for policy in [&open, &closed] {
            policy.client.get(&maps, &key).await.unwrap_err();
        }
        // A change of the settings does not open it either.
        let next =
            record("labels", &Tiny::policy(ALLOWED).component(), &json!({"parameters": {"a": 1}}));
        cluster.put_record(&next).await;
        replica.until_active(&next).await;
        assert!(is_closed());
        cluster.put_record(&decided).await;
        replica.until_active(&decided).await;
        let as_account = |sent: &Sent| !sent.user.is_empty();
        assert!(!replica.proxy.take().iter().any(as_account));

        // When the permission is back.
        allow(&cluster, json!("labels")).await;
        replica.until("open", || !is_closed()).await;
        let again = replica.policy("labels").unwrap();
        assert!(again.client.get(&maps, &key).await.is_ok());
        assert!(open.client.get(&maps, &key).await.is_err(), "a revocation is for good");
        assert_eq!(replica.engine.cache().unwrap().figures().misses, 1);

        // When the account is deleted, the same happens again, with the counts of the record.
        again.counts.count_failure("it trapped");
        cluster.api.delete(ACCOUNT).await.unwrap();
        replica.until("closed", is_closed).await;
        let closed = replica.policy("labels").unwrap();
        assert!(Arc::ptr_eq(&closed.counts, &again.counts), "it is the same record");
        replica.end().await;
    });
}

#[test]
fn two_replicas_swap_within_a_second() {
    block_on(async {
        // Given a leader whose module reviews, and two replicas with its policy.
        let setup = Setup::of_component(Tiny::policy(ALLOWED).component());
        // The next revision denies what exists.
        let spec = json!({"policy": {}, "rollout": {"maxNewlyDenied": 1_000}});
        let stage = setup.spec(spec).start().await;
        let [one, two] = ["one", "two"].map(|name| Replica::start(stage.simulator(), name));
        let both = |digest: &str| {
            let has = |replica: &Replica| {
                replica.policy("scripts").is_some_and(|policy| policy.digest.to_string() == digest)
            };
            has(&one) && has(&two)
        };
        let digest = |component: &[u8]| innkeeper_modules::Digest::of(component).to_string();
        one.until("both", || both(&digest(&Tiny::policy(ALLOWED).component()))).await;

        // When its source changes.
        let next = Tiny::policy(DENIED).component();
        stage
            .apply(&json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "scripts", "namespace": "innkeeper-modules"},
                "binaryData": {"guest.wasm": STANDARD.encode(&next)}}))
            .await;

        // Then both review with the next revision within a second of the cluster's time.
        let took = one.until("both", || both(&digest(&next))).await;
        assert!(took < Duration::from_secs(1), "{took:?}");
        one.end().await;
        two.end().await;
    });
}

#[test]
fn newest_of_many_records_wins() {
    block_on(async {
        // Given a replica that is loading the first of many records, whose snapshot is slow.
        let cluster = PolicyCluster::new().await;
        let replica = Replica::start(&cluster.simulator, "one");
        replica.until("complete", || replica.policies.active().is_complete()).await;
        let first = snapshot_path("labels", &Tiny::policy(&verdict(0)).component());
        let slow = first.clone();
        replica.proxy.intercept(move |sent| {
            if sent.path == slow { Reply::Delay(Duration::from_secs(5)) } else { Reply::Forward }
        });
        let swaps = replica.policies.active().changes();
        let before = *swaps.borrow();
        cluster.decide("labels", &verdict(0), &json!({})).await;
        let mut sent: Vec<Sent> = Vec::new();
        let is_loading = || {
            sent.extend(replica.proxy.take());
            sent.iter().any(|one| one.path == first)
        };
        replica.until("the first is loading", is_loading).await;

        // When others follow.
        let mut last = None;
        for number in 1..20 {
            last = Some(cluster.decide("labels", &verdict(number), &json!({})).await);
        }
        replica.until_active(&last.unwrap()).await;

        // Then no other one was ever active, and the late answer changes nothing.
        replica.pass(Duration::from_secs(10)).await;
        assert_eq!(*swaps.borrow(), before + 1);
        replica.end().await;
    });
}

#[test]
fn removed_record_allows_everything_for_a_while_and_then_nothing_answers() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let decided = cluster.decide("labels", ALLOWED, &json!({})).await;
        let replica = Replica::start(&cluster.simulator, "one");
        replica.until_active(&decided).await;
        let policy = replica.policy("labels").unwrap();
        cluster.api.delete(&record_path("labels")).await.unwrap();
        let entry = || replica.policies.active().get("labels", replica.env.instant());
        replica.until("removed", || matches!(entry(), Some(Entry::Removed { .. }))).await;
        let maps = Kind::namespaced("v1", "ConfigMap", "configmaps");
        assert!(policy.client.get(&maps, &ObjectKey::new(HOST, "a")).await.is_err(), "revoked");
        replica.pass(REMOVED_TIME).await;
        assert!(entry().is_none());

        // When the leader decides again.
        cluster.put_record(&decided).await;
        replica.until_active(&decided).await;
        replica.end().await;
    });
}

#[test]
fn kind_that_cannot_be_listed_in_time_delays_the_policy_and_does_not_stop_it() {
    block_on(async {
        // Given an API server that does not list what the policy reads.
        let cluster = PolicyCluster::new().await;
        let proxy = Proxy::new(cluster.simulator.clone());
        let is_list = |sent: &Sent| !sent.user.is_empty() && sent.path == "/api/v1/configmaps";
        proxy.intercept(move |sent| {
            if is_list(sent) { Reply::Delay(Duration::from_hours(1)) } else { Reply::Forward }
        });
        let first = cluster.decide("labels", ALLOWED, &json!({})).await;
        let replica = Replica::over(proxy, &cluster.simulator, "one");
        let took = replica.until_active(&first).await;
        assert!(took > Duration::from_secs(20) && took < Duration::from_secs(31), "{took:?}");
        let view = replica.policy("labels").unwrap().view.clone().unwrap();
        assert!(!view.states().values().any(|state| *state == KindState::Synced));

        // A swap waits less, since a revision answers meanwhile.
        let second = cluster.decide("labels", DENIED, &json!({})).await;
        let took = replica.until_active(&second).await;
        assert!(took < Duration::from_millis(5_100), "{took:?}");

        // When the list works again, the policy that is active can read.
        replica.proxy.forward();
        let view = replica.policy("labels").unwrap().view.clone().unwrap();
        let is_synced = || view.states().values().all(|state| *state == KindState::Synced);
        replica.until("synced", is_synced).await;
        replica.end().await;
    });
}

#[test]
fn records_that_cannot_be_listed_leave_the_replica_incomplete() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let decided = cluster.decide("labels", ALLOWED, &json!({})).await;
        let proxy = Proxy::new(cluster.simulator.clone());
        let records = format!("/api/v1/namespaces/{HOST}/configmaps");
        proxy.intercept(move |sent| {
            if sent.path == records {
                refusal(403, "Forbidden", "no such right")
            } else {
                Reply::Forward
            }
        });
        let replica = Replica::over(proxy, &cluster.simulator, "one");
        replica.pass(Duration::from_mins(5)).await;
        assert!(!replica.policies.active().is_complete());
        assert!(cluster.api.get(&lease_path("one")).await.unwrap().is_none());
        replica.proxy.forward();
        replica.until_active(&decided).await;
        assert!(replica.policies.active().is_complete());
        replica.end().await;
    });
}
