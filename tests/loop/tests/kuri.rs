//! Periodic Kuris: the real operator with the real guest kuri on the simulated API server, in
//! virtual time.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod running;

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_lab::{Api, ApiFailure, Content, Guests, Lab, Modules, Setup};
use innkeeper_simulator::{PodRule, PodScript, Simulator};
use jiff::{SignedDuration, Timestamp};
use running::{block_on, component};
use serde_json::{Value, json};

const KURIS: &str = "/apis/kuri.example.com/v1alpha1/namespaces/default/kuris";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// The rights of the module, as `innkeeper rbac` prints them.
fn rights() -> Vec<Value> {
    let may = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let rules = json!([
        may(&["kuri.example.com"], &["kuris"], &["get", "list", "watch", "patch"]),
        may(&["kuri.example.com"], &["kuris/status"], &["get", "patch"]),
        may(&["kuri.example.com"], &["kuris/finalizers"], &["update"]),
        may(&["batch"], &["jobs"], &["get", "list", "watch", "create", "patch", "delete"]),
        may(&[""], &["pods"], &["get", "list", "watch"]),
        may(&["", "events.k8s.io"], &["events"], &["create", "patch"]),
        may(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &["get", "create", "patch"]),
    ]);
    let rbac = "rbac.authorization.k8s.io/v1";
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "kuri", "namespace": "innkeeper-modules",
                "annotations": {"innkeeper.dev/allowed-modules": "kuri"}}}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "kuri"}, "rules": rules}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "kuri"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kuri"},
            "subjects": [{"kind": "ServiceAccount", "name": "kuri", "namespace": "innkeeper-modules"}]}),
    ]
}

fn setup(parameters: &Value) -> Setup {
    let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": "kuri"},
        "spec": {"source": {"file": component("kuri")}, "serviceAccountName": "kuri",
            "allowedCRDGroups": ["kuri.example.com"], "parameters": parameters}});
    let mut setup = Setup::new(11);
    setup.modules = Modules::Given(vec![module]);
    setup.objects = rights();
    setup.keep_log = true;
    setup
}

/// A cluster with the module kuri and these parameters.
async fn lab(parameters: &Value) -> Lab {
    let lab = Lab::start(&Guests::new().unwrap(), setup(parameters)).await.unwrap();
    lab.serves(Duration::from_mins(1)).await.unwrap();
    lab
}

/// Ends the operator; the cluster goes on without it for this time, until another one starts.
async fn restart_after(lab: Lab, seconds: u64) -> Lab {
    let simulator = lab.simulator().clone();
    assert!(lab.end().await, "the operator ends on request");
    for _ in 0..seconds {
        simulator.advance(SignedDuration::from_secs(1));
    }
    let mut setup = setup(&json!({}));
    setup.keep_log = false;
    Lab::on(simulator, &Guests::new().unwrap(), setup).await.unwrap()
}

async fn pass(lab: &Lab, seconds: u64) {
    lab.pass(Duration::from_secs(seconds)).await;
}

async fn create(api: &Api, name: &str, spec: &Value) -> Result<(), ApiFailure> {
    let kuri = json!({"apiVersion": "kuri.example.com/v1alpha1", "kind": "Kuri",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec});
    api.send("POST", KURIS, Content::Json, &kuri).await.map(drop)
}

async fn kuri(lab: &Lab, name: &str) -> Value {
    lab.api().get(&format!("{KURIS}/{name}")).await.unwrap().unwrap()
}

fn condition<'a>(object: &'a Value, type_: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.clone().find(|one| one["type"] == type_).unwrap_or(&Value::Null)
}

/// The times at which the Jobs of a Kuri were created, from the events of the API server. Checks
/// that none was created while a Job or a Pod of it existed.
fn starts(simulator: &Simulator, name: &str) -> Vec<Timestamp> {
    let (mut starts, mut left, mut pods) = (Vec::new(), BTreeSet::new(), 0);
    for line in simulator.log() {
        let words: Vec<&str> = line.splitn(5, ' ').collect();
        let [_, change, kind @ ("batch/jobs" | "/pods"), key, text] = words[..] else { continue };
        let is_its = key == format!("default/{name}")
            || (kind == "/pods" && key.starts_with(&format!("default/{name}-")));
        match change {
            "Added" if is_its => {
                if kind == "/pods" {
                    pods += 1;
                } else {
                    assert!(left.is_empty(), "a Job is created while {left:?} exist");
                    let job: Value = serde_json::from_str(text).unwrap();
                    let created = &job["metadata"]["creationTimestamp"];
                    starts.push(created.as_str().unwrap().parse().unwrap());
                }
                left.insert(format!("{kind} {key}"));
            }
            "Deleted" => {
                left.remove(&format!("{kind} {key}"));
            }
            _ => {}
        }
    }
    assert!(pods + 1 >= starts.len(), "{pods} Pods of {} Jobs", starts.len());
    starts
}

/// The seconds between the starts of two runs.
fn gaps(starts: &[Timestamp]) -> Vec<i64> {
    starts.windows(2).map(|two| two[1].as_second() - two[0].as_second()).collect()
}

/// The statuses of the condition `Ready` of a Kuri, one for each change.
fn ready_history(simulator: &Simulator, name: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let part = format!(" kuri.example.com/kuris default/{name} ");
    for line in simulator.log() {
        let Some((_, text)) = line.split_once(&part) else { continue };
        let object: Value = serde_json::from_str(text).unwrap();
        let Some(status) = condition(&object, "Ready")["status"].as_str() else { continue };
        if all.last().is_none_or(|last| last != status) {
            all.push(status.to_owned());
        }
    }
    all
}

#[test]
fn periodic_kuri_runs_once_each_period_over_restarts_and_outages_and_never_twice_at_a_time() {
    block_on(async {
        let mut lab = lab(&json!({})).await;
        let simulator = lab.simulator().clone();
        create(lab.api(), "chestnut", &json!({"period": "60s"})).await.unwrap();
        pass(&lab, 5 * 60).await;
        let before = starts(&simulator, "chestnut");
        assert_eq!(before.len(), 5, "{before:?}");
        assert!(gaps(&before).iter().all(|gap| (60..65).contains(gap)), "{before:?}");

        // A restart, also of one that falls between two runs, changes nothing.
        for _ in 0..4 {
            lab = restart_after(lab, 3).await;
            pass(&lab, 72).await;
        }
        let restarted = starts(&simulator, "chestnut");
        assert_eq!(restarted.len(), 10, "{restarted:?}");
        assert!(gaps(&restarted).iter().all(|gap| (60..70).contains(gap)), "{restarted:?}");

        // Missed periods are not caught up: one run at once, and the next one a period later.
        lab = restart_after(lab, 10 * 60).await;
        let back = simulator.now().as_second();
        pass(&lab, 100).await;
        let late = starts(&simulator, "chestnut");
        let [first, second] = late[restarted.len()..] else { panic!("{late:?}") };
        assert!((back..back + 10).contains(&first.as_second()), "{back}: {late:?}");
        assert!((60..65).contains(&(second.as_second() - first.as_second())), "{late:?}");

        let status = kuri(&lab, "chestnut").await["status"].clone();
        assert_eq!(status["runs"], late.len(), "{status:#}");
        let shown = status["history"].as_array().unwrap();
        let shown: Vec<&str> = shown.iter().map(|run| run["start"].as_str().unwrap()).collect();
        let last: Vec<String> = late.iter().rev().take(5).map(ToString::to_string).collect();
        assert_eq!(shown, last);
        let next = second.checked_add(SignedDuration::from_secs(60)).unwrap();
        assert_eq!(status["nextRun"], next.to_string());
        assert_eq!(ready_history(&simulator, "chestnut"), ["False", "True"]);

        lab.api().delete(&format!("{KURIS}/chestnut")).await.unwrap();
        pass(&lab, 70).await;
        assert_eq!(starts(&simulator, "chestnut").len(), late.len());
        assert!(lab.api().list(JOBS).await.unwrap().is_empty());
        assert!(lab.api().list(PODS).await.unwrap().is_empty());
        assert!(lab.end().await, "the operator ends on request");
    });
}

#[test]
fn run_longer_than_its_period_is_not_overlapped_and_ends_at_its_deadline() {
    block_on(async {
        let lab = lab(&json!({})).await;
        let simulator = lab.simulator().clone();
        let endless = PodRule { ends_after: None, ..PodRule::new("endless") };
        simulator.script_pods(PodScript { rules: vec![endless], ..PodScript::default() });
        create(lab.api(), "long", &json!({"image": "endless", "period": "20s"})).await.unwrap();
        pass(&lab, 120).await;
        assert_eq!(starts(&simulator, "long").len(), 1);
        let shown = kuri(&lab, "long").await;
        let periodic = condition(&shown, "Periodic");
        assert_eq!(
            (&periodic["status"], &periodic["reason"]),
            (&json!("False"), &json!("RunExceedsPeriod"))
        );
        assert_eq!(shown["status"]["nextRun"], Value::Null);

        // The deadline applies to the run that is there, and the failed run to the history.
        let change = json!({"spec": {"deadlineSeconds": 30}});
        let path = format!("{KURIS}/long");
        lab.api().send("PATCH", &path, Content::MergePatch, &change).await.unwrap();
        pass(&lab, 50).await;
        let shown = kuri(&lab, "long").await;
        assert_eq!(
            shown["status"]["history"].as_array().unwrap().last().unwrap()["result"],
            "Failed"
        );
        let ready = condition(&shown, "Ready");
        assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("Failed")));
        assert!(ready["message"].as_str().unwrap().contains("deadline"), "{ready}");
        assert!(starts(&simulator, "long").len() >= 2, "it runs again after a failed run");
        assert!(lab.end().await, "the operator ends on request");
    });
}

#[test]
fn nonsense_periods_create_no_job_and_leave_other_kuris_alone() {
    block_on(async {
        let lab = lab(&json!({})).await;
        let simulator = lab.simulator().clone();
        create(lab.api(), "good", &json!({"period": "30s"})).await.unwrap();
        let overflow = "9".repeat(31) + "h";
        let long = "9".repeat(100_000) + "h";
        for (name, period) in [
            ("negative", json!("-30s")),
            ("unit", json!("30")),
            ("empty", json!("")),
            ("snowman", json!("☃")),
            ("wide", json!("３０s")),
            ("number", json!(30)),
            ("list", json!(["30s"])),
            ("long", json!(long)),
        ] {
            let refused = create(lab.api(), name, &json!({"period": period})).await;
            assert!(matches!(refused, Err(ApiFailure::Refused { code: 422, .. })), "{name}");
        }
        let accepted =
            [("zero", "0s"), ("short", "9s"), ("year", "8761h"), ("overflow", &*overflow)];
        for (name, period) in accepted {
            create(lab.api(), name, &json!({"period": period})).await.unwrap();
        }
        pass(&lab, 70).await;
        for (name, _) in accepted {
            let shown = kuri(&lab, name).await;
            for type_ in ["Ready", "Periodic"] {
                let found = condition(&shown, type_);
                assert_eq!(
                    (&found["status"], &found["reason"]),
                    (&json!("False"), &json!("InvalidPeriod"))
                );
            }
            assert_eq!(starts(&simulator, name), []);
            lab.api().delete(&format!("{KURIS}/{name}")).await.unwrap();
        }
        pass(&lab, 5).await;
        assert_eq!(lab.api().list(KURIS).await.unwrap().len(), 1, "each of them can be deleted");
        assert_eq!(starts(&simulator, "good").len(), 3);
        assert!(lab.end().await, "the operator ends on request");
    });
}

#[test]
fn nonsense_in_the_status_of_a_periodic_kuri_does_not_change_when_it_runs() {
    block_on(async {
        let lab = lab(&json!({"period": "30s"})).await;
        let simulator = lab.simulator().clone();
        create(lab.api(), "chestnut", &json!({})).await.unwrap();
        let future = json!({"start": "9999-12-31T23:59:59Z", "end": "9999-12-31T23:59:59Z", "result": "Failed"});
        for _ in 0..150 {
            let status = json!({"runs": i64::MAX, "history": [future, future],
                "nextRun": "9999-12-31T23:59:59Z"});
            let path = format!("{KURIS}/chestnut/status");
            let change = json!({"status": status});
            lab.api().send("PATCH", &path, Content::MergePatch, &change).await.unwrap();
            pass(&lab, 1).await;
        }
        let starts = starts(&simulator, "chestnut");
        assert!(gaps(&starts).iter().all(|gap| (30..36).contains(gap)), "{starts:?}");
        assert!((4..=5).contains(&starts.len()), "{starts:?}");
        assert!(lab.end().await, "the operator ends on request");
    });
}

/// An Ansible operator writes owner references that name no controller.
#[test]
fn deleted_kuri_goes_when_its_job_is_one_of_the_original_operator() {
    block_on(async {
        let lab = lab(&json!({})).await;
        let paused = json!({"apiVersion": "kuri.example.com/v1alpha1", "kind": "Kuri",
            "metadata": {"name": "chestnut", "namespace": "default",
                "annotations": {"innkeeper.dev/paused": "true"}}});
        let kuri = lab.api().send("POST", KURIS, Content::Json, &paused).await.unwrap();
        let owner = json!({"apiVersion": kuri["apiVersion"], "kind": kuri["kind"],
            "name": "chestnut", "uid": kuri["metadata"]["uid"]});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "chestnut", "namespace": "default", "ownerReferences": [owner]},
            "spec": {"template": {"spec": {"restartPolicy": "Never",
                "containers": [{"name": "kuri", "image": "busybox", "command": ["date"]}]}}}});
        lab.api().send("POST", JOBS, Content::Json, &job).await.unwrap();
        let path = format!("{KURIS}/chestnut");
        let resumed = json!({"metadata": {"annotations": {"innkeeper.dev/paused": null}}});
        lab.api().send("PATCH", &path, Content::MergePatch, &resumed).await.unwrap();
        pass(&lab, 10).await;
        let synced = condition(&self::kuri(&lab, "chestnut").await, "Synced").clone();
        assert_eq!(synced["reason"], "Conflict", "{synced}");

        lab.api().delete(&path).await.unwrap();
        pass(&lab, 10).await;
        assert!(lab.api().get(&path).await.unwrap().is_none(), "the Kuri is removed");
        assert!(lab.api().list(JOBS).await.unwrap().is_empty());
        assert!(lab.api().list(PODS).await.unwrap().is_empty());
        assert!(lab.end().await, "the operator ends on request");
    });
}
