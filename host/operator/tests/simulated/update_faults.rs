//! Updates of groups with errors at each write, requests that arrive late, a second host, and
//! clocks that differ.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::support::{
    GROUP, Guard, Reply, Script, Setup, Stage, block_on, config_map, definition, refusal,
};
use crate::updates::{VERBS, condition, grouped, widget_group, widget_path, writes};

/// The names of the Widgets, in their order.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The path of the ControllerRevisions of all primaries.
const REVISIONS: &str = "/apis/apps/v1/namespaces/ns/controllerrevisions";

/// A spec whose guest desires the Widgets with this size in a group, and has a history of two
/// earlier states.
pub(crate) fn kept(group: &Value, size: u32) -> Value {
    let widget = |name: &str| {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "metadata": {"name": name}, "spec": {"size": size}})
    };
    let mut spec = grouped(group, &NAMES.map(widget));
    spec["complete"]["revisionHistory"] = json!({"limit": 2});
    spec
}

/// A stage whose module has made the Widgets of size 1, all ready.
pub(crate) async fn stage(group: &Value) -> Stage {
    let kind = |api_version: &str, kind: &str, plural: &str| json!({"kind": {"apiVersion": api_version, "kind": kind, "plural": plural}});
    let script = Script::new().owns(kind(&format!("{GROUP}/v1"), "Widget", "widgets")).owns(kind(
        "apps/v1",
        "ControllerRevision",
        "controllerrevisions",
    ));
    let stage = Setup::new(script)
        .may(&VERBS, GROUP, "widgets")
        .may(&VERBS, "apps", "controllerrevisions")
        .object(definition("Widget", "widgets"))
        .start()
        .await;
    stage.create("one", &kept(group, 1)).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    make_ready(&stage).await;
    stage.settle().await;
    stage.writes();
    stage
}

/// Makes every Widget that exists ready.
pub(crate) async fn make_ready(stage: &Stage) {
    for name in NAMES {
        if stage.get(&widget_path(name)).await.is_some() {
            condition(stage, name, "Ready", "True").await;
        }
    }
}

/// Lets all Widgets become ready until all have this size and the primary is synced.
pub(crate) async fn finish(stage: &Stage, size: i64, what: &str) {
    for _ in 0..100 {
        make_ready(stage).await;
        stage.pass(10).await;
        if sizes(stage).await == [size; 5] {
            break;
        }
    }
    assert_eq!(sizes(stage).await, [size; 5], "{what}: {}", synced(stage).await);
    make_ready(stage).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
}

/// The condition `Synced` of the primary, for a failed test.
async fn synced(stage: &Stage) -> Value {
    let primary = stage.primary("one").await;
    crate::support::condition(&primary, "Synced").cloned().unwrap_or_default()
}

/// The sizes of the Widgets; 0 for one that does not exist.
pub(crate) async fn sizes(stage: &Stage) -> Vec<i64> {
    let mut sizes = Vec::new();
    for name in NAMES {
        let widget = stage.get(&widget_path(name)).await.unwrap_or_default();
        sizes.push(widget["spec"]["size"].as_i64().unwrap_or_default());
    }
    sizes
}

/// The numbers of the stored revisions.
pub(crate) async fn numbers(stage: &Stage) -> Vec<i64> {
    let revisions = stage.api().list(REVISIONS).await.unwrap();
    let mut numbers: Vec<i64> =
        revisions.iter().map(|one| one["revision"].as_i64().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// The errors with which the API server may answer a write.
pub(crate) fn errors() -> [(&'static str, Reply); 8] {
    let late = Duration::from_secs(25);
    [
        ("conflict", refusal(409, "Conflict", "the object has been modified")),
        ("internal", refusal(500, "InternalError", "etcdserver: leader changed")),
        ("throttled", refusal(429, "TooManyRequests", "too many requests")),
        ("away", refusal(503, "ServiceUnavailable", "it is away")),
        ("timeout", refusal(504, "Timeout", "it took too long")),
        ("forbidden", refusal(403, "Forbidden", "it is not allowed")),
        ("lost", Reply::Lose),
        ("late", Reply::Late(late)),
    ]
}

#[test]
fn update_whose_writes_fail_once_each_keeps_its_limit_and_ends() {
    for method in ["RollingRecreate", "RollingInPlace"] {
        for (what, error) in errors() {
            block_on(async {
                // Given a group of five Widgets of which two may be unavailable.
                let mut group = widget_group(method);
                group["maxUnavailable"] = 2.into();
                let stage = stage(&group).await;
                let guard = Guard::new(&stage, 2, NAMES.len());
                guard.watch(&stage);

                // When each write of an update fails once, and each of the next ones with it.
                for (size, fault) in (2..).zip(0..7_usize) {
                    let good = std::iter::repeat_n(Reply::Forward, fault);
                    guard.fail(good.chain([error.clone(), error.clone()]));
                    stage.set_spec("one", &kept(&group, size)).await;
                    stage.pass(5).await;
                    guard.fail([]);

                    // Then the update ends within its limit, and the history is whole.
                    let what = format!("{method} {what} {fault}");
                    finish(&stage, size.into(), &what).await;
                    assert_eq!(guard.violations(), [""; 0], "{what}");
                    assert_eq!(numbers(&stage).await.len(), size.min(3) as usize, "{what}");
                }
                stage.settle().await;
                writes(&stage);
                stage.pass(600).await;
                assert_eq!(writes(&stage), [""; 0], "{method} {what}");
            });
        }
    }
}

#[test]
fn late_apply_of_an_earlier_state_is_repaired() {
    block_on(async {
        // Given an update whose first apply arrives a minute late, and is repeated meanwhile.
        let mut group = widget_group("RollingInPlace");
        group["maxUnavailable"] = 5.into();
        let stage = stage(&group).await;
        let mut left = 1;
        stage.proxy().intercept(move |sent| {
            let is_first = left > 0 && sent.path.ends_with("/widgets/a") && sent.is_write();
            if is_first {
                left -= 1;
                return Reply::Late(Duration::from_mins(1));
            }
            Reply::Forward
        });
        stage.set_spec("one", &kept(&group, 2)).await;
        stage.pass(20).await;
        assert_eq!(sizes(&stage).await, [2; 5]);

        // When the primary changes again before it arrives.
        stage.set_spec("one", &kept(&group, 3)).await;
        stage.pass(20).await;
        assert_eq!(sizes(&stage).await, [3; 5]);
        stage.pass(60).await;

        // Then the host repairs the object.
        finish(&stage, 3, "after the late apply").await;
    });
}

#[test]
fn late_apply_of_a_former_leader_is_repaired_by_its_successor() {
    block_on(async {
        // Given a leader that ends while an apply of it is on its way.
        let mut group = widget_group("RollingInPlace");
        group["maxUnavailable"] = 5.into();
        let stage = stage(&group).await;
        stage.proxy().intercept(|sent| {
            let is_apply = sent.path.contains("/widgets/") && sent.is_write();
            if is_apply { Reply::Late(Duration::from_secs(90)) } else { Reply::Forward }
        });
        stage.set_spec("one", &kept(&group, 2)).await;
        stage.pass(2).await;
        let stopped = stage.stop().await;
        stopped.proxy().forward();
        let stage = stopped.start().await;

        // When its successor has applied another state before the apply arrives.
        stage.set_spec("one", &kept(&group, 3)).await;
        stage.pass(30).await;
        assert_eq!(sizes(&stage).await, [3; 5]);
        stage.pass(90).await;

        // Then the successor repairs the objects.
        finish(&stage, 3, "after the late applies").await;
    });
}

#[test]
fn two_hosts_that_follow_one_another_keep_the_limit() {
    for method in ["RollingRecreate", "RollingInPlace"] {
        block_on(async {
            let mut group = widget_group(method);
            group["maxUnavailable"] = 2.into();
            let mut stage = stage(&group).await;
            let guard = Guard::new(&stage, 2, NAMES.len());
            guard.watch(&stage);
            for size in 2..8 {
                // When the leader changes at another moment of each update, with writes on their
                // way, of which some arrive late.
                stage.set_spec("one", &kept(&group, size)).await;
                let on_its_way = std::iter::repeat_n(Reply::Forward, size as usize);
                guard.fail(on_its_way.chain([Reply::Late(Duration::from_secs(7)), Reply::Lose]));
                stage.pass(1).await;
                stage = stage.stop().await.start().await;
                guard.fail([]);
                condition(&stage, "c", "Ready", "False").await;
                stage.pass(3).await;
                stage = stage.stop().await.start().await;

                // Then the update ends within its limit.
                finish(&stage, size.into(), method).await;
                assert_eq!(guard.violations(), [""; 0], "{method} {size}");
            }
        });
    }
}

#[test]
fn two_hosts_at_the_same_time_keep_the_limit_and_settle() {
    for method in ["RollingRecreate", "RollingInPlace"] {
        block_on(async {
            let mut group = widget_group(method);
            group["maxUnavailable"] = 2.into();
            let stage = stage(&group).await;
            let other = stage.second().await;
            let guard = Guard::new(&stage, 2, NAMES.len());
            guard.watch(&stage);
            guard.watch(&other);
            for size in 2..6 {
                stage.set_spec("one", &kept(&group, size)).await;
                stage.pass(3).await;
                finish(&stage, size.into(), method).await;
            }
            assert_eq!(guard.violations(), [""; 0], "{method}");
            stage.settle().await;
            writes(&stage);
            writes(&other);
            stage.pass(600).await;
            assert_eq!([writes(&stage), writes(&other)].concat(), [""; 0], "{method}");
        });
    }
}

#[test]
fn host_whose_clock_goes_back_waits_and_one_whose_clock_is_ahead_keeps_the_limit() {
    block_on(async {
        for hours in [-1, 1, -24 * 365 * 60] {
            // Given an update that waits until its first objects are ready for a minute.
            let mut group = widget_group("RollingInPlace");
            let limits =
                json!({"maxUnavailable": 2, "minReadySeconds": 60, "progressDeadlineSeconds": 600});
            group.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
            let stage = stage(&group).await;
            stage.pass(120).await;
            let guard = Guard::new(&stage, 2, NAMES.len());
            guard.watch(&stage);
            stage.set_spec("one", &kept(&group, 2)).await;
            stage.pass(5).await;

            // When another host continues it, whose clock differs.
            let stage =
                stage.stop().await.start_with_clock(SignedDuration::from_hours(hours)).await;
            stage.pass(30).await;
            assert_eq!(sizes(&stage).await, [2, 2, 1, 1, 1], "{hours}");

            // Then no more objects are unavailable than the group allows, whatever it waits for.
            for _ in 0..100 {
                for name in NAMES {
                    let widget = stage.get(&widget_path(name)).await.unwrap();
                    let observed = &widget["status"]["conditions"][0]["observedGeneration"];
                    if *observed != widget["metadata"]["generation"] {
                        condition(&stage, name, "Ready", "True").await;
                    }
                }
                stage.pass(60).await;
            }
            assert_eq!(guard.violations(), [""; 0], "{hours}");
            let runs = stage.runs();
            stage.pass(3_600).await;
            assert!(stage.runs() - runs < 20, "{hours}: {} runs", stage.runs() - runs);
        }
    });
}

#[test]
fn host_that_may_no_longer_read_revisions_updates_within_the_limit_and_restores_the_history() {
    block_on(async {
        // Given an update that waits, and an account that loses its rights to ControllerRevisions.
        let group = widget_group("RollingRecreate");
        let stage = stage(&group).await;
        let guard = Guard::new(&stage, 1, NAMES.len());
        guard.watch(&stage);
        stage.set_spec("one", &kept(&group, 2)).await;
        stage.pass(5).await;
        assert_eq!(numbers(&stage).await, [1, 2]);
        for verb in ["get", "list", "watch"] {
            stage.revoke(verb, "controllerrevisions").await;
        }
        stage.pass(180).await;

        // When the update fails and an object is evicted.
        condition(&stage, "a", "Stalled", "True").await;
        stage.pass(10).await;
        stage.api().delete(&widget_path("d")).await.unwrap();
        stage.pass(60).await;
        let message = synced(&stage).await;
        assert_eq!(message["status"], "False", "{message}");
        assert!(message["message"].as_str().unwrap().contains("ontrollerrevision"), "{message}");

        // When the state changes twice meanwhile, and the rights return.
        for size in [3, 4] {
            stage.set_spec("one", &kept(&group, size)).await;
            stage.pass(30).await;
        }
        stage.grant(&["get", "list", "watch"], "apps", "controllerrevisions").await;
        stage.pass(180).await;

        // Then the history continues, and the update ends within its limit.
        finish(&stage, 4, "with the rights").await;
        assert_eq!(guard.violations(), [""; 0]);
        assert_eq!(numbers(&stage).await, [1, 2, 3]);
    });
}

#[test]
fn object_that_a_tenant_changes_while_the_host_asks_about_it_is_not_deleted_by_the_old_plan() {
    block_on(async {
        // Given a tenant that changes an object in the moment of the dry run, and takes it over.
        let group = widget_group("RollingRecreate");
        let stage = stage(&group).await;
        stage.apply(&config_map("owner", "1")).await;
        let owner = stage.config_map("owner").await.unwrap()["metadata"]["uid"].clone();
        let simulator = stage.simulator().clone();
        let mut left = 1;
        stage.proxy().intercept(move |sent| {
            if left > 0 && sent.query.contains("dryRun") {
                left -= 1;
                let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
                    "uid": owner, "controller": true}]);
                let body = json!({"metadata": {"ownerReferences": owners}}).to_string();
                let request = http::Request::patch(sent.path.clone())
                    .header("content-type", "application/merge-patch+json")
                    .body(bytes::Bytes::from(body))
                    .unwrap();
                simulator.request(request);
            }
            Reply::Forward
        });
        let uid = stage.get(&widget_path("a")).await.unwrap()["metadata"]["uid"].clone();
        stage.set_spec("one", &kept(&group, 2)).await;
        stage.pass(30).await;
        let after = stage.get(&widget_path("a")).await.unwrap();
        assert_eq!(after["metadata"]["uid"], uid);
        assert_eq!(after["spec"]["size"], 1);
    });
}
