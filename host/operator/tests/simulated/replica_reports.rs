//! What a replica reports, and how long it counts as alive.

use std::time::Duration;

use innkeeper_tiny_guests::{ALLOWED, Tiny};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::support::policy_cluster::{
    PolicyCluster, Replica, lease_path, live, record, record_path,
};
use crate::support::{Proxy, Reply, Sent, block_on, refusal};

const DENIED: &str = r#"{"allowed":false}"#;

/// A replica with one policy that has reported.
async fn reporting(cluster: &PolicyCluster, name: &str) -> Replica {
    let replica = Replica::start(&cluster.simulator, name);
    replica.until("reported", || replica.policies.reported_since().is_some()).await;
    replica
}

/// The writes of the report since the last call.
fn reports(replica: &Replica) -> Vec<Sent> {
    let mut sent = replica.proxy.take();
    sent.retain(|one| one.method == "PATCH" && one.path.contains("/leases/innkeeper-replica-"));
    sent
}

#[test]
fn report_names_the_certificate_and_each_policy() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let labels = cluster.decide("labels", ALLOWED, &json!({})).await;
        let replica = reporting(&cluster, "one").await;
        let policy = replica.policy("labels").unwrap();
        policy.counts.count();
        policy.counts.count_failure("the guest trapped");
        replica.policies.set_certificate("c1");
        replica.pass(Duration::from_secs(2)).await;

        let live = live(&cluster.api, &replica.env).await;
        assert_eq!(live.len(), 1);
        assert!(live[0].reviews_with("labels", &labels.id()));
        let report = live[0].report.as_ref().unwrap();
        assert_eq!(report.certificate.as_deref(), Some("c1"));
        let policy = &report.policies["labels"];
        assert_eq!((policy.reviewed, policy.failed, &*policy.example), (2, 1, "the guest trapped"));
        let lease = cluster.api.get(&lease_path("one")).await.unwrap().unwrap();
        assert_eq!(lease["metadata"]["labels"], json!({"innkeeper.dev/replica": "true"}));
        assert_eq!(lease["spec"]["holderIdentity"], "one");
        assert_eq!(lease["spec"]["leaseDurationSeconds"], 40);
        replica.end().await;
    });
}

#[test]
fn report_is_renewed_every_ten_seconds_and_at_changes_once_a_second() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let replica = reporting(&cluster, "one").await;
        replica.pass(Duration::from_secs(2)).await;
        reports(&replica);
        replica.pass(Duration::from_secs(100)).await;
        assert_eq!(reports(&replica).len(), 10);

        // When many policies change at once, and one fails.
        for number in 0..20 {
            let component = Tiny::policy(ALLOWED).component();
            let name = format!("p{number}");
            cluster.put_snapshot(&name, &component).await;
            cluster.put_record(&record(&name, &component, &json!({}))).await;
        }
        cluster.put_record(&record("lost", &Tiny::policy(DENIED).component(), &json!({}))).await;
        replica.pass(Duration::from_millis(1_500)).await;
        let sent = reports(&replica);
        assert!((1..=2).contains(&sent.len()), "{}", sent.len());
        let live = live(&cluster.api, &replica.env).await;
        let report = live[0].report.as_ref().unwrap();
        assert_eq!(report.policies.values().filter(|one| one.id.is_some()).count(), 20);
        let lost = &report.policies["lost"];
        assert!(lost.id.is_none() && lost.problem.contains("does not exist"), "{lost:?}");
        replica.end().await;
    });
}

#[test]
fn replica_that_is_gone_expires() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let [ended, crashed, stays] = ["ended", "crashed", "stays"];
        let ended = reporting(&cluster, ended).await;
        let crashed = reporting(&cluster, crashed).await;
        let stays = reporting(&cluster, stays).await;
        let names = async || -> Vec<String> {
            live(&cluster.api, &stays.env).await.into_iter().map(|one| one.name).collect()
        };
        assert_eq!(names().await, ["crashed", "ended", "stays"]);

        // A replica that ends takes its report along.
        ended.end().await;
        assert_eq!(names().await, ["crashed", "stays"]);
        assert!(cluster.api.get(&lease_path("ended")).await.unwrap().is_none());

        // One that crashes counts until its report is 40 seconds old.
        crashed.crash();
        stays.pass(Duration::from_secs(29)).await;
        assert_eq!(names().await, ["crashed", "stays"]);
        stays.pass(Duration::from_secs(12)).await;
        assert_eq!(names().await, ["stays"]);

        // It starts again under its name, with the time of the cluster.
        cluster.simulator.advance(SignedDuration::from_secs(41));
        let again = reporting(&cluster, "crashed").await;
        assert_eq!(names().await, ["crashed", "stays"]);
        again.end().await;
        stays.end().await;
    });
}

#[test]
fn report_that_somebody_deletes_or_changes_is_written_again() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let labels = cluster.decide("labels", ALLOWED, &json!({})).await;
        let replica = reporting(&cluster, "one").await;
        let reviews = async || {
            let live = live(&cluster.api, &replica.env).await;
            live.iter().any(|one| one.reviews_with("labels", &labels.id()))
        };
        cluster.api.delete(&lease_path("one")).await.unwrap();
        assert!(!reviews().await);
        replica.pass(Duration::from_secs(15)).await;
        assert!(reviews().await);
        let forged = json!({"metadata": {"annotations": {"innkeeper.dev/replica": "[["}}});
        cluster.merge(&lease_path("one"), &forged).await;
        assert!(!reviews().await);
        replica.pass(Duration::from_secs(12)).await;
        assert!(reviews().await);
        replica.end().await;
    });
}

#[test]
fn report_that_cannot_be_written_is_tried_again_and_the_policies_go_on() {
    block_on(async {
        let cluster = PolicyCluster::new().await;
        let labels = cluster.decide("labels", ALLOWED, &json!({})).await;
        let proxy = Proxy::new(cluster.simulator.clone());
        proxy.intercept(|sent| {
            if sent.path.contains("/leases/") {
                refusal(403, "Forbidden", "no such right")
            } else {
                Reply::Forward
            }
        });
        let replica = Replica::over(proxy, &cluster.simulator, "one");
        replica.until_active(&labels).await;
        replica.pass(Duration::from_mins(2)).await;
        assert_eq!(replica.policies.reported_since(), None, "it is not ready");
        let tries = reports(&replica).len();
        assert!((10..40).contains(&tries), "{tries}");
        let next = cluster.decide("labels", DENIED, &json!({})).await;
        replica.until_active(&next).await;
        replica.proxy.forward();
        replica.until("reported", || replica.policies.reported_since().is_some()).await;
        let live = live(&cluster.api, &replica.env).await;
        assert!(live[0].reviews_with("labels", &next.id()));
        // Without a record nothing is reported of the module.
        cluster.api.delete(&record_path("labels")).await.unwrap();
        replica.pass(Duration::from_secs(3)).await;
        let lease = cluster.api.get(&lease_path("one")).await.unwrap().unwrap();
        let report = lease["metadata"]["annotations"]["innkeeper.dev/replica"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(report).unwrap(), json!({"policies": {}}));
        replica.end().await;
    });
}
