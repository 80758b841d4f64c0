//! The leader of policies: webhook configurations in the cluster.

use innkeeper_operator::policies::{PolicyState, ReplicaName, ReplicaReport};
use serde_json::{Value, json};

use crate::support::policy_cluster::{HOST, lease_path};
use crate::support::policy_leading::{Leader, Reports, WEBHOOKS, idle, reviewing, stage, webhooks};
use crate::support::{Reply, Sent, Stage, block_on, refusal};

const RECORD: &str = "/api/v1/namespaces/innkeeper-system/configmaps/innkeeper-policy-scripts";

async fn failure_policy(stage: &Stage) -> Value {
    webhooks(stage).await["webhooks"][0]["failurePolicy"].clone()
}

/// The requests of the host for webhook configurations that change something, since the last call.
fn writes(stage: &Stage) -> Vec<String> {
    let is_one = |sent: &Sent| sent.is_write() && sent.path.contains("webhookconfigurations");
    stage.proxy().take().into_iter().filter(is_one).map(|sent| sent.method).collect()
}

#[test]
fn configuration_is_owned_by_its_module_and_goes_with_it() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        let configuration = webhooks(&stage).await;
        let module = stage.module().await;
        let owners = configuration["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!(owners.len(), 1);
        assert_eq!(owners[0]["uid"], module["metadata"]["uid"]);
        stage.proxy().take();
        stage.pass(60).await;
        assert!(writes(&stage).is_empty(), "nothing is written that is there");
        stage.delete_module().await;
        stage.until_gone(WEBHOOKS).await;
        stage.until_gone(RECORD).await;
        stage.pass(60).await;
        assert!(stage.get(WEBHOOKS).await.is_none());
        assert!(leader.states.lock().unwrap().is_empty());
        leader.end().await;
    });
}

#[test]
fn configuration_goes_with_its_module_while_no_host_runs() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        assert!(stage.get(WEBHOOKS).await.is_some());
        leader.end().await;
        let stopped = stage.stop().await;
        let module = "/apis/innkeeper.dev/v1alpha1/modules/scripts";
        stopped.merge_at(module, &json!({"metadata": {"finalizers": null}})).await;
        stopped.delete_module().await;
        stopped.pass(60);
        assert!(stopped.api().get(WEBHOOKS).await.unwrap().is_none());
    });
}

#[test]
fn break_glass_deletes_the_configuration_and_comes_back() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        let annotated = |reason: Value| json!({"metadata": {"annotations": {"innkeeper.dev/break-glass": reason}}});
        stage.merge_module(&annotated(json!("outage 7"))).await;
        stage.until_gone(WEBHOOKS).await;
        stage.pass(30).await;
        assert!(stage.get(WEBHOOKS).await.is_none());
        let problem = leader.state().problem.unwrap();
        assert_eq!(problem.reason, "BreakGlass");
        assert!(problem.message.contains("outage 7"), "{}", problem.message);
        stage.merge_module(&annotated(Value::Null)).await;
        stage.pass(30).await;
        assert!(stage.get(WEBHOOKS).await.is_some());
        assert_eq!(leader.state().problem, None);
        leader.end().await;
    });
}

#[test]
fn foreign_edit_is_reverted_once() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(30).await;
        let before = webhooks(&stage).await;
        stage.proxy().take();
        // Somebody who changes it all the time.
        for _ in 0..10 {
            stage.merge_at(WEBHOOKS, &json!({"webhooks": []})).await;
            stage.pass(3).await;
        }
        let reverts = writes(&stage).len();
        assert!((1..=4).contains(&reverts), "{reverts}");
        stage.pass(25).await;
        assert_eq!(webhooks(&stage).await["webhooks"], before["webhooks"]);
        leader.end().await;
    });
}

#[test]
fn fail_only_when_all_replicas_answer() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [idle("a")]);
        stage.pass(15).await;
        assert!(stage.get(WEBHOOKS).await.is_none(), "nobody would answer");
        let id = leader.state().record;
        for (replicas, expected, reviews) in [
            (vec![reviewing("a", &id), idle("b")], "Ignore", 1),
            (vec![reviewing("a", &id), reviewing("b", &id)], "Fail", 2),
            (vec![reviewing("a", &id), idle("b")], "Ignore", 1),
            // An earlier record answers as well.
            (vec![reviewing("a", &id), reviewing("b", "earlier")], "Fail", 1),
            (Vec::new(), "Ignore", 0),
        ] {
            leader.set_replicas(replicas.into_iter().collect::<Reports>());
            stage.pass(5).await;
            assert_eq!(failure_policy(&stage).await, expected);
            assert_eq!(leader.state().reviewing, reviews);
        }
        // A Module that asks for it keeps it.
        stage.merge_module(&json!({"spec": {"policy": {"failurePolicy": "Fail"}}})).await;
        stage.pass(15).await;
        assert_eq!(failure_policy(&stage).await, "Ignore", "not everywhere yet");
        leader.set_replicas([reviewing("a", "x"), reviewing("b", "x")]);
        stage.pass(5).await;
        assert_eq!(failure_policy(&stage).await, "Fail");
        leader.set_replicas([reviewing("a", "x"), idle("b")]);
        stage.pass(30).await;
        assert_eq!(failure_policy(&stage).await, "Fail");
        leader.end().await;
    });
}

#[test]
fn configuration_without_a_record_is_deleted_also_after_a_restart() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        leader.end().await;
        // The record goes while nobody leads.
        let stopped = stage.stop().await;
        stopped.api().delete(RECORD).await.unwrap();
        assert!(stopped.api().get(WEBHOOKS).await.unwrap().is_some());
        let module = "/apis/innkeeper.dev/v1alpha1/modules/scripts";
        stopped.merge_at(module, &json!({"spec": {"policy": null}})).await;
        let stage = stopped.start().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(10).await;
        assert!(stage.get(WEBHOOKS).await.is_none());
        leader.end().await;
    });
}

#[test]
fn record_that_cannot_be_read_leaves_its_configuration() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        let configuration = webhooks(&stage).await;
        stage.merge_at(RECORD, &json!({"data": {"record": r#"{"format": 2}"#}})).await;
        stage.pass(30).await;
        assert_eq!(webhooks(&stage).await, configuration);
        leader.end().await;
    });
}

#[test]
fn nothing_is_deleted_while_records_cannot_be_read() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(15).await;
        leader.end().await;
        stage.proxy().intercept(|sent| {
            let records = "/api/v1/namespaces/innkeeper-system/configmaps";
            if sent.path == records { refusal(403, "Forbidden", "no") } else { Reply::Forward }
        });
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        stage.pass(60).await;
        assert!(stage.get(WEBHOOKS).await.is_some());
        leader.end().await;
    });
}

#[test]
fn policy_without_admission_port_says_so() {
    block_on(async {
        // Given a host without a leader of policies, then the Module says that nothing is reviewed.
        let stage = stage().await;
        let message = stage.until_module("Serving", "False", "PolicyNotActive").await;
        assert!(message.contains("the host has no admission port"), "{message}");
        // Given a replica that shows no certificate, then no request is sent to it.
        let (name, mut report) = reviewing("a", "x");
        report.certificate = None;
        let leader = Leader::of_stage(&stage, [(name, report)]);
        stage.pass(30).await;
        assert!(stage.get(WEBHOOKS).await.is_none());
        let PolicyState { reviewing, not_reviewing, .. } = leader.state();
        assert_eq!(reviewing, 0);
        assert!(not_reviewing.unwrap().starts_with("replica a: it has no certificate"));
        leader.end().await;
    });
}

#[test]
fn report_of_a_replica_that_is_gone_expires_and_is_deleted() {
    block_on(async {
        let stage = stage().await;
        let leader = Leader::of_stage(&stage, [reviewing("a", "x")]);
        // Given a report that nobody renews, of a clock that is far ahead.
        let now = stage.simulator().now() + jiff::SignedDuration::from_hours(1);
        let gone = lease_path("gone");
        let report = ReplicaReport::default().lease(HOST, &ReplicaName::of("gone"), now);
        stage.api().apply(&report, HOST).await.unwrap();
        stage.pass(60).await;
        assert_eq!(leader.state().replicas, 1);
        assert!(stage.get(&gone).await.is_some(), "it may be renewed yet");
        stage.pass(300).await;
        assert!(stage.get(&gone).await.is_none());
        assert!(stage.get(&lease_path("a")).await.is_some());
        leader.end().await;
    });
}
