//! The audit with hostile policies and many objects.

use std::time::Duration;

use innkeeper_core::audit::{FINDINGS_MAX, PARTS_MAX, REPORT_BYTES_MAX};
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

use super::bench::{Bench, config_map, definitions};
use crate::support::block_on;

#[test]
fn message_of_a_mebibyte_with_terminal_escapes_becomes_a_short_visible_line() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        let cause = json!({"field": "\u{1b}]0;x\u{7}".repeat(1_000), "message": "\u{202e}m"});
        let message = "\u{1b}[2J\n\u{202e}".repeat(100_000);
        let verdict = json!({"allowed": false, "message": message, "reason": "\u{1b}[31m",
            "causes": vec![cause; 100]});
        let policy = Tiny::policy(&verdict.to_string());
        bench.decide("labels", &policy, &json!({})).await;
        let report = bench.until_report("ns", |report| report["summary"]["fail"] == 1).await;
        let text = report["results"][0]["message"].as_str().unwrap();
        assert!(text.len() < 1_100 && text.starts_with(r"\u{1b}[2J\n"), "{}: {text}", text.len());
        assert!(text.chars().all(|c| c.is_ascii_graphic() || c == ' '), "{text}");
        assert_eq!(report["results"][0]["properties"]["reason"], "Forbidden");
        bench.end().await;
    });
}

#[test]
fn policy_that_hangs_on_each_object_is_asked_a_few_times_and_delays_no_other_policy() {
    block_on(async {
        let bench = Bench::new().await;
        bench.cluster.put_account("other", json!("other")).await;
        let many: Vec<Value> =
            (0..200).map(|number| config_map("web", &format!("o{number}"), "x")).collect();
        bench.apply(&many).await;
        let hanging = Tiny::policy(ALLOWED).review_wat("(loop $l (br $l))");
        bench.decide("labels", &hanging, &json!({"limits": {"timeout": "50ms"}})).await;
        bench.decide("other", &Tiny::policy(ALLOWED), &json!({})).await;
        bench.until_state("other", |state| state.counts.pass == 201).await;
        bench
            .until_state("labels", |state| state.completed.is_some() && state.counts.error == 201)
            .await;
        assert_eq!(bench.reviews("labels"), 5);
        let problem = bench.state("labels").unwrap().problem.unwrap();
        assert!(problem.contains("the last 5 reviews took all of their time"), "{problem}");
        // Also an object that appears later takes no time.
        bench.apply(&[config_map("web", "later", "x")]).await;
        bench.until_state("labels", |state| state.counts.error == 202).await;
        assert_eq!(bench.reviews("labels"), 5);
        // Another revision is asked again.
        bench.decide("labels", &Tiny::policy(ALLOWED), &json!({})).await;
        bench.until_state("labels", |state| state.counts.pass == 202).await;
        bench.end().await;
    });
}

#[test]
fn ten_thousand_denied_objects_give_few_reports_of_a_bounded_size() {
    block_on(async {
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        let many: Vec<Value> =
            (0..10_000).map(|number| config_map("web", &format!("o{number:05}"), "x")).collect();
        bench.apply(&many).await;
        let verdict = json!({"allowed": false, "message": "m".repeat(4_000)});
        bench.decide("labels", &Tiny::policy(&verdict.to_string()), &json!({})).await;
        let begun = bench.replica.env.instant();
        bench.until_state("labels", |state| state.counts.fail == 10_001).await;
        let took = bench.replica.env.instant().duration_since(begun);
        assert!(took >= Duration::from_secs(100), "at most 100 reviews in a second: {took:?}");
        bench.pass(Duration::from_mins(2)).await;
        let reports = bench.reports().await;
        assert!(reports.len() <= PARTS_MAX + 1, "{}", reports.len());
        let sizes = reports.iter().map(|report| report.to_string().len());
        assert!(sizes.clone().max().unwrap() <= REPORT_BYTES_MAX + 4_096);
        let failing: u64 =
            reports.iter().map(|report| report["summary"]["fail"].as_u64().unwrap()).sum();
        assert_eq!(failing, 10_001);
        let listed: usize =
            reports.iter().map(|report| report["results"].as_array().unwrap().len()).sum();
        assert!((FINDINGS_MAX * 9 / 10..=FINDINGS_MAX).contains(&listed), "{listed}");
        // When one object changes, one report is written, and perhaps that with the counts.
        bench.writes();
        bench.delete("/api/v1/namespaces/web/configmaps/o00007").await;
        bench.pass(Duration::from_mins(3)).await;
        let writes = bench.writes();
        assert!((1..=2).contains(&writes.len()), "{writes:?}");
        bench.end().await;
    });
}

#[test]
fn report_that_one_namespace_refuses_keeps_those_of_no_other_one_back() {
    block_on(async {
        // Given a tenant who has an object of the name of a report in the first namespace.
        let bench = Bench::new().await;
        bench.apply(&definitions()).await;
        let foreign = json!({"apiVersion": "openreports.io/v1alpha1", "kind": "Report",
            "metadata": {"name": "innkeeper-policy-labels", "namespace": "ns"}, "source": "other"});
        bench.apply(&[foreign, config_map("web", "one", "x")]).await;

        // When a policy denies objects in both namespaces.
        let verdict = json!({"allowed": false, "message": "no"});
        bench.decide("labels", &Tiny::policy(&verdict.to_string()), &json!({})).await;

        // Then the other namespace has its report, and the state says what is wrong.
        bench.until_report("web", |report| report["summary"]["fail"] == 1).await;
        bench.until_state("labels", |state| state.problem.is_some()).await;
        let problem = bench.state("labels").unwrap().problem.unwrap();
        assert!(problem.contains("somebody else has made it"), "{problem}");
        assert_eq!(bench.report("ns").await.unwrap()["source"], "other");
        bench.end().await;
    });
}
