//! The audit: the leader reviews existing objects, and reports the results.

mod bench;
mod hostile;

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_core::audit::AuditCounts;
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

use self::bench::{Bench, REPORT, config_map, counts, definitions};
use crate::support::policy_cluster::{HOST, record, record_path};
use crate::support::{Reply, block_on};

const VERDICT: &str = r#"{"allowed":false,"message":"it is bad","reason":"Invalid"}"#;

/// Denies what has the text `bad`, and everything while `ns/cm` has the text `closed`.
fn denying() -> Tiny {
    Tiny::deciding_with_read("bad", VERDICT, "closed")
}

#[test]
fn existing_objects_are_reviewed_once_and_reported() {
    block_on(async {
        // Given two objects, and the definitions of reports.
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        bench.apply(&[config_map("web", "one", "good"), config_map("web", "two", "bad")]).await;

        // When a policy becomes active on the leader.
        bench.decide("labels", &denying(), &json!({})).await;
        bench.until("labels", counts(2, 1)).await;

        // Then the report names the one that would be denied, and counts the other.
        let report = bench.until_report("web", |report| report["summary"]["fail"] == 1).await;
        assert_eq!(
            report["summary"],
            json!({"pass": 1, "fail": 1, "warn": 0, "error": 0, "skip": 0})
        );
        assert_eq!(report["source"], "innkeeper");
        let results = report["results"].as_array().unwrap();
        assert_eq!(results.len(), 1);
        let result = &results[0];
        assert_eq!(
            (&result["policy"], &result["result"], &result["message"]),
            (&json!("labels"), &json!("fail"), &json!("it is bad"))
        );
        assert_eq!(result["resources"][0]["name"], "two");
        assert_eq!(report["metadata"]["ownerReferences"][0]["uid"], "uid-1");
        assert!(bench.state("labels").unwrap().completed.is_some());

        // Then nothing is reviewed and written any more.
        let reviews = bench.reviews("labels");
        assert_eq!(reviews, 3, "the ConfigMap ns/cm is one too");
        bench.writes();
        bench.pass(Duration::from_mins(30)).await;
        assert_eq!(bench.reviews("labels"), reviews);
        assert_eq!(bench.writes(), Vec::<String>::new());
        bench.end().await;
    });
}

#[test]
fn object_that_changes_is_reviewed_again_and_one_that_goes_is_forgotten() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        bench.apply(&[config_map("web", "one", "good"), config_map("web", "two", "bad")]).await;
        bench.decide("labels", &denying(), &json!({})).await;
        bench.until("labels", counts(2, 1)).await;
        let reviews = bench.reviews("labels");

        bench.apply(&[config_map("web", "two", "fixed")]).await;
        bench.until("labels", counts(3, 0)).await;
        assert_eq!(bench.reviews("labels"), reviews + 1, "the others are not reviewed again");
        bench.until_report("web", |report| report["results"] == json!([])).await;

        bench.apply(&[config_map("web", "three", "bad")]).await;
        bench.until("labels", counts(3, 1)).await;
        bench.delete("/api/v1/namespaces/web/configmaps/three").await;
        bench.delete("/api/v1/namespaces/web/configmaps/one").await;
        bench.until("labels", counts(2, 0)).await;
        bench.end().await;
    });
}

#[test]
fn objects_are_reviewed_again_when_something_changes_that_their_review_read() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&[config_map("web", "one", "good"), config_map("web", "two", "good")]).await;
        bench.decide("labels", &denying(), &json!({})).await;
        bench.until("labels", counts(3, 0)).await;
        // When the ConfigMap changes that all reviews have read.
        bench.apply(&[config_map("ns", "cm", "closed")]).await;
        bench.until("labels", counts(0, 3)).await;
        bench.apply(&[config_map("ns", "cm", "open")]).await;
        bench.until("labels", counts(3, 0)).await;
        // When another one changes.
        let reviews = bench.reviews("labels");
        bench.apply(&[config_map("ns", "other", "closed")]).await;
        bench.until("labels", counts(4, 0)).await;
        assert_eq!(bench.reviews("labels"), reviews + 1);
        bench.end().await;
    });
}

#[test]
fn new_revision_reviews_all_objects_again_and_settings_too() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        bench.apply(&[config_map("web", "one", "good"), config_map("web", "two", "bad")]).await;
        bench.decide("labels", &denying(), &json!({})).await;
        bench.until("labels", counts(2, 1)).await;
        bench.until_report("web", |report| report["summary"]["fail"] == 1).await;

        bench.decide("labels", &Tiny::deciding("good", VERDICT), &json!({})).await;
        bench.until("labels", counts(2, 1)).await;
        let report = bench
            .until_report("web", |report| report["results"][0]["resources"][0]["name"] == "one")
            .await;
        assert_eq!(report["results"].as_array().unwrap().len(), 1);

        // Settings that leave the namespace out.
        let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": "ns"}});
        let spec = json!({"policy": {"namespaceSelector": selector}});
        bench.decide("labels", &Tiny::deciding("good", VERDICT), &spec).await;
        bench.until("labels", counts(1, 0)).await;
        bench.until_gone("web").await;
        bench.end().await;
    });
}

#[test]
fn reports_go_with_the_policy_and_when_the_module_wants_no_audit() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        bench.apply(&[config_map("web", "two", "bad")]).await;
        let spec = json!({});
        bench.decide("labels", &denying(), &spec).await;
        bench.until_report("web", |report| report["summary"]["fail"] == 1).await;

        let off = json!({"policy": {"background": false}});
        bench.decide("labels", &denying(), &off).await;
        bench.until_gone("web").await;
        assert_eq!(bench.state("labels"), None);
        assert!(!bench.metrics().contains("innkeeper_policy_audit_objects{"), "no gauge stays");

        bench.decide("labels", &denying(), &spec).await;
        bench.until_report("web", |report| report["summary"]["fail"] == 1).await;
        bench.delete(&record_path("labels")).await;
        bench.until_gone("web").await;
        bench.end().await;
    });
}

#[test]
fn kind_that_the_account_may_not_list_is_named_and_the_others_are_reviewed() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&[config_map("web", "two", "bad")]).await;
        let rules = json!([{"groups": ["", "apps"], "resources": ["configmaps", "deployments"],
            "operations": ["CREATE"]}]);
        bench.decide("labels", &denying(), &json!({"policy": {"rules": rules}})).await;
        bench.until("labels", counts(1, 1)).await;
        let problem = bench.state("labels").unwrap().problem.unwrap();
        assert!(problem.contains("deployments.apps: ServiceAccount"), "{problem}");
        assert!(problem.contains("may not list deployments.apps"), "{problem}");
        bench.end().await;
    });
}

#[test]
fn reports_are_written_as_soon_as_their_kinds_are_served() {
    block_on(async {
        // Given an API server without reports.
        let bench = Bench::new().await;
        bench.apply(&[config_map("web", "two", "bad")]).await;
        bench.decide("labels", &denying(), &json!({})).await;
        // Then status and metrics have the results, and nothing is written.
        bench.until("labels", counts(1, 1)).await;
        let series = r#"innkeeper_policy_audit_objects{module="labels",result="denied"} 1"#;
        assert!(bench.metrics().contains(series), "{}", bench.metrics());
        bench.pass(Duration::from_mins(5)).await;
        assert_eq!(bench.writes(), Vec::<String>::new());
        let reviews = bench.reviews("labels");
        // When a user installs the definitions.
        bench.apply(&definitions()).await;
        bench.until_report("web", |report| report["summary"]["fail"] == 1).await;
        assert_eq!(bench.reviews("labels"), reviews, "nothing is reviewed for it");
        // When somebody deletes a report, it is written again.
        bench.delete(&format!("{REPORT}/namespaces/web/reports/innkeeper-policy-labels")).await;
        bench.until_report("web", |report| report["summary"]["fail"] == 1).await;
        bench.end().await;
    });
}

#[test]
fn next_leader_writes_nothing_when_nothing_has_changed() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        bench.apply(&[config_map("web", "one", "bad"), config_map("web", "two", "bad")]).await;
        bench.decide("labels", &denying(), &json!({})).await;
        let before = bench.until_report("web", |report| report["summary"]["fail"] == 2).await;
        let bench = bench.next_leader().await;
        bench.writes();
        bench.until("labels", counts(1, 2)).await;
        bench.pass(Duration::from_mins(5)).await;
        assert_eq!(bench.writes(), Vec::<String>::new());
        assert_eq!(bench.report("web").await.unwrap(), before);
        // A new result has its own time, and the others keep theirs.
        bench.apply(&[config_map("web", "three", "bad")]).await;
        let after = bench.until_report("web", |report| report["summary"]["fail"] == 3).await;
        let time = |report: &Value, name: &str| {
            let results = report["results"].as_array().unwrap().clone();
            let of = |result: &&Value| result["resources"][0]["name"] == name;
            results.iter().find(of).unwrap()["timestamp"]["seconds"].as_i64().unwrap()
        };
        assert_eq!(time(&after, "one"), time(&before, "one"));
        assert!(time(&after, "three") > time(&before, "one"));
        bench.end().await;
    });
}

#[test]
fn live_reviews_come_before_those_of_the_audit() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&[config_map("web", "two", "bad")]).await;
        // Given live reviews that hold all of their permits.
        let permits = bench.replica.policies.permits().clone();
        let held = [permits.acquire("a", "").await, permits.acquire("b", "").await];
        assert_eq!(permits.available(), 0);
        bench.decide("labels", &denying(), &json!({})).await;
        bench.pass(Duration::from_mins(2)).await;
        assert_eq!(bench.reviews("labels"), 0);
        // When one of them ends.
        drop(held);
        bench.until("labels", counts(1, 1)).await;
        assert_eq!(permits.available(), 2, "the audit has none of them");
        bench.end().await;
    });
}

#[test]
fn reviews_of_the_audit_are_bounded_in_time_and_policies_take_turns() {
    block_on(async {
        let bench = Bench::new().await;
        bench.cluster.put_account("other", json!("other")).await;
        let many: Vec<Value> =
            (0..300).map(|number| config_map("web", &format!("o{number}"), "good")).collect();
        bench.apply(&many).await;
        bench.decide("labels", &Tiny::policy(ALLOWED), &json!({})).await;
        bench.decide("other", &Tiny::policy(ALLOWED), &json!({})).await;
        bench.until_reviews("labels", 50).await;
        let (begun, one) = (bench.replica.env.instant(), bench.reviews("labels"));
        bench.pass(Duration::from_secs(1)).await;
        let reviewed = bench.reviews("labels") - one;
        assert!((50..=101).contains(&reviewed), "{reviewed} reviews in {:?}", begun.elapsed());
        let apart = bench.reviews("labels").abs_diff(bench.reviews("other"));
        assert!(apart <= 60, "they take turns: {apart}");
        bench.end().await;
    });
}

#[test]
fn object_of_another_tool_with_the_name_of_a_report_stays_and_the_status_says_so() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        let foreign = json!({"apiVersion": "openreports.io/v1alpha1", "kind": "Report",
            "metadata": {"name": "innkeeper-policy-labels", "namespace": "web"},
            "source": "other", "results": []});
        bench.apply(&[foreign, config_map("web", "two", "bad")]).await;
        bench.decide("labels", &denying(), &json!({})).await;
        bench.until("labels", AuditCounts { pass: 1, fail: 1, ..AuditCounts::default() }).await;
        bench
            .until_state("labels", |state| {
                let problem = state.problem.clone().unwrap_or_default();
                problem.contains("Report web/innkeeper-policy-labels has no label")
            })
            .await;
        assert_eq!(bench.report("web").await.unwrap()["source"], "other");
        // When its owner deletes it.
        bench.delete(&format!("{REPORT}/namespaces/web/reports/innkeeper-policy-labels")).await;
        bench.until_report("web", |report| report["source"] == "innkeeper").await;
        bench.until_state("labels", |state| state.problem.is_none()).await;
        bench.end().await;
    });
}

#[test]
fn kind_whose_definition_is_installed_later_is_reviewed_then() {
    block_on(async {
        let bench = Bench::new().await;
        let rules = json!([{"groups": ["openreports.io"], "resources": ["clusterreports"],
            "operations": ["CREATE"], "scope": "Cluster"}]);
        bench.allow_all("labels").await;
        bench.decide("labels", &denying(), &json!({"policy": {"rules": rules}})).await;
        bench.until_state("labels", |state| state.completed.is_some()).await;
        bench.apply(&definitions()).await;
        let object = json!({"apiVersion": "openreports.io/v1alpha1", "kind": "ClusterReport",
            "metadata": {"name": "bad"}, "source": "other"});
        bench.apply(&[object]).await;
        bench.until_state("labels", |state| state.counts.fail == 1).await;
        bench.end().await;
    });
}

#[test]
fn policy_without_its_account_reviews_nothing_and_says_so() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&[config_map("web", "two", "bad")]).await;
        let spec = json!({"serviceAccountName": "nobody"});
        bench.decide("labels", &denying(), &spec).await;
        bench
            .until_state("labels", |state| {
                state.problem.as_ref().is_some_and(|problem| problem.contains("ServiceAccount"))
            })
            .await;
        assert_eq!(bench.reviews("labels"), 0);
        bench.end().await;
    });
}

#[test]
fn reports_that_cannot_be_written_are_tried_again() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        bench.apply(&[config_map("web", "two", "bad")]).await;
        bench.replica.proxy.intercept(|sent| {
            if sent.path.contains("/reports") && sent.method == "POST" {
                crate::support::refusal(403, "Forbidden", "no right")
            } else {
                Reply::Forward
            }
        });
        bench.decide("labels", &denying(), &json!({})).await;
        let says = |text: &'static str| {
            move |state: &innkeeper_operator::policies::AuditState| {
                state.problem.as_ref().is_some_and(|problem| problem.contains(text))
            }
        };
        bench.until_state("labels", says("reports not written")).await;
        bench.writes();
        bench.pass(Duration::from_mins(30)).await;
        let writes = bench.write_paths();
        let namespaces = BTreeSet::from_iter(&writes);
        assert_eq!(namespaces.len(), 2, "{namespaces:?}");
        for namespace in namespaces {
            let tries = writes.iter().filter(|one| *one == namespace).count();
            assert!((3..=12).contains(&tries), "{tries} tries in half an hour: {namespace}");
        }
        bench.replica.proxy.forward();
        bench.until_report("web", |report| report["summary"]["fail"] == 1).await;
        bench.until_state("labels", |state| state.problem.is_none()).await;
        bench.end().await;
    });
}

#[test]
fn reports_that_cannot_be_deleted_are_deleted_later() {
    block_on(async {
        // Given a report, and an API server that refuses to delete reports.
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        bench.apply(&[config_map("web", "two", "bad")]).await;
        bench.decide("labels", &denying(), &json!({})).await;
        bench.until_report("web", |report| report["summary"]["fail"] == 1).await;
        bench.replica.proxy.intercept(|sent| {
            if sent.path.contains("/reports") && sent.method == "DELETE" {
                crate::support::refusal(403, "Forbidden", "no right")
            } else {
                Reply::Forward
            }
        });

        // When the Module wants no audit any more.
        bench.writes();
        let off = json!({"policy": {"background": false}});
        bench.decide("labels", &denying(), &off).await;
        bench.pass(Duration::from_mins(10)).await;
        let tries = bench.write_paths().iter().filter(|path| path.contains("/web/")).count();
        assert!((3..=12).contains(&tries), "{tries} tries in ten minutes");
        assert!(bench.report("web").await.is_some());

        // Then the report goes as soon as the API server accepts that.
        bench.replica.proxy.forward();
        bench.until_gone("web").await;
        bench.end().await;
    });
}

/// The record is that of the tests, and reviews with the manifest of the tests.
#[test]
fn objects_of_the_host_and_of_kubernetes_are_not_reviewed() {
    block_on(async {
        let bench = Bench::new().await;
        let system = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "kube-system"}});
        bench
            .apply(&[system, config_map("kube-system", "a", "bad"), config_map(HOST, "b", "bad")])
            .await;
        bench.decide("labels", &denying(), &json!({})).await;
        bench.until("labels", counts(1, 0)).await;
        assert_eq!(bench.reviews("labels"), 1);
        let component = denying().component();
        assert_eq!(record("labels", &component, &json!({})).module, "labels");
        bench.end().await;
    });
}
