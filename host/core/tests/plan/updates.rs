//! Update groups: which objects of a group the host updates in a round.

use expect_test::expect;
use innkeeper_contract::Policy;
use innkeeper_core::plan::{Action, SkipReason, UpdateProgress, UpdateState};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::case::{Case, NOW, case, desired_object};

/// When the host applied the objects, long before the present.
pub(crate) const APPLIED: i64 = NOW - 3_600;

pub(crate) fn pod(name: &str, image: &str) -> Value {
    desired_object("Pod", name, &json!({ "image": image }))
}

fn pods(names: &[&str], image: &str) -> Value {
    names.iter().map(|name| pod(name, image)).collect()
}

pub(crate) fn time(seconds: i64) -> Value {
    Timestamp::from_second(seconds).unwrap().to_string().into()
}

/// A status with the phase Running and the condition Ready since a time.
pub(crate) fn running(ready: bool, since: i64) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"phase": "Running", "conditions": [
        {"type": "Ready", "status": status, "reason": "Because", "lastTransitionTime": time(since)}]})
}

pub(crate) fn ready() -> Value {
    running(true, APPLIED)
}

/// A group of the Pods `a` to `d` that desires the image `new`, with the live Pods of the names
/// and images.
pub(crate) fn group_of(group: &Value, live: &[(&str, &str, Value)]) -> Case {
    let mut case = case(&pods(&["a", "b", "c", "d"], "new")).group(group);
    for (name, image, status) in live {
        put(&mut case, name, image, status, APPLIED);
    }
    case
}

/// Adds a live Pod that the host applied at a time.
pub(crate) fn put(case: &mut Case, name: &str, image: &str, status: &Value, applied: i64) {
    case.applied(&json!([pod(name, image)]), |live| {
        live["status"] = status.clone();
        live["metadata"]["managedFields"][0]["time"] = time(applied);
    });
}

pub(crate) fn rolling(method: &str) -> Value {
    json!({"name": "pods", "method": method})
}

pub(crate) fn all(image: &'static str) -> [(&'static str, &'static str, Value); 4] {
    ["a", "b", "c", "d"].map(|name| (name, image, ready()))
}

pub(crate) fn progress(case: &Case) -> UpdateProgress {
    case.plan().updates.remove(0)
}

#[test]
fn rolling_method_updates_one_object_after_the_other_by_default() {
    group_of(&rolling("RollingInPlace"), &all("old")).check(&expect![[r"
        apply Pod web/a: changed
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
    let case = group_of(&rolling("RollingRecreate"), &all("old"));
    case.check(&expect![[r"
        recreate Pod web/a
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
    let plan = case.plan();
    assert!(matches!(plan.steps[0].action, Action::Recreate { dry_run_first: true, .. }));
    assert_eq!(plan.steps[1].action, Action::Skip(SkipReason::UpdatePending { recreates: true }));
    assert_eq!(plan.updates[0].state, UpdateState::Updating);
    assert_eq!((plan.updates[0].updated, plan.updates[0].total), (0, 4));
}

#[test]
fn max_unavailable_is_a_number_or_a_rounded_down_percentage_of_at_least_one() {
    for (max, expected) in [
        (json!(1), 1),
        (json!(3), 3),
        (json!(9), 4),
        (json!("1%"), 1),
        (json!("74%"), 2),
        (json!("75%"), 3),
        (json!("100%"), 4),
    ] {
        let mut group = rolling("RollingInPlace");
        group["maxUnavailable"] = max.clone();
        let plan = group_of(&group, &all("old")).plan();
        let writes = plan.steps.iter().filter(|step| matches!(step.action, Action::Apply { .. }));
        assert_eq!(writes.count(), expected, "{max}");
    }
}

#[test]
fn objects_are_updated_in_the_order_of_the_document() {
    let mut case = case(&pods(&["c", "a", "b"], "new")).group(&rolling("RollingInPlace"));
    for name in ["a", "b", "c"] {
        put(&mut case, name, "old", &ready(), APPLIED);
    }
    case.check(&expect![[r"
        skip Pod web/a: outdated, updated in its turn
        skip Pod web/b: outdated, updated in its turn
        apply Pod web/c: changed"]]);
}

#[test]
fn update_waits_for_an_updated_object_that_is_not_ready() {
    let mut live = all("old");
    live[0] = ("a", "new", running(false, APPLIED));
    let case = group_of(&rolling("RollingInPlace"), &live);
    case.check(&expect![[r"
        skip Pod web/a: in sync
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
    let progress = progress(&case);
    let waits_for = case.desired_state.objects[0].object_ref.clone();
    let state = UpdateState::Waiting(waits_for, "it runs but is not ready".to_owned());
    assert_eq!(progress.state, state);
    assert_eq!((progress.updated, progress.available, progress.look_again), (1, 0, None));
}

#[test]
fn missing_or_terminating_object_uses_up_the_limit_and_is_created() {
    let live = &all("old")[1..];
    group_of(&rolling("RollingRecreate"), live).check(&expect![[r"
        create Pod web/a
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
    let mut case = group_of(&rolling("RollingRecreate"), live);
    case.applied(&json!([pod("a", "old")]), |live| {
        live["metadata"]["deletionTimestamp"] = time(NOW);
    });
    case.check(&expect![[r"
        skip Pod web/a: being deleted
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
    assert!(matches!(progress(&case).state, UpdateState::Waiting(_, _)));
}

#[test]
fn outdated_object_that_does_not_serve_is_updated_first_and_costs_no_budget() {
    let mut live = all("old");
    live[2].2 = running(false, APPLIED);
    group_of(&rolling("RollingRecreate"), &live).check(&expect![[r"
        skip Pod web/a: outdated, updated in its turn
        skip Pod web/b: outdated, updated in its turn
        recreate Pod web/c
        skip Pod web/d: outdated, updated in its turn"]]);
    // Nothing serves: the fix of a bad change gets through all the same.
    let broken = all("old").map(|(name, image, _)| (name, image, running(false, APPLIED)));
    group_of(&rolling("RollingInPlace"), &broken).check(&expect![[r"
        apply Pod web/a: changed
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
}

#[test]
fn failed_updated_object_stops_the_update() {
    let crashing = json!({"phase": "Running", "containerStatuses": [
        {"name": "app", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
    for (status, problem) in [
        (crashing, "containers crash again and again: app"),
        (json!({"phase": "Failed"}), "its phase is Failed"),
    ] {
        let mut live = all("old");
        live[1] = ("b", "new", status);
        let mut group = rolling("RollingInPlace");
        group["maxUnavailable"] = "100%".into();
        let case = group_of(&group, &live);
        case.check(&expect![[r"
            skip Pod web/a: outdated, updated in its turn
            skip Pod web/b: in sync
            skip Pod web/c: outdated, updated in its turn
            skip Pod web/d: outdated, updated in its turn"]]);
        let failed = case.desired_state.objects[1].object_ref.clone();
        assert_eq!(progress(&case).state, UpdateState::Failed(failed, problem.to_owned()));
    }
}

#[test]
fn update_without_outdated_objects_is_done_whether_or_not_they_serve() {
    let mut live = all("new");
    live[1].2 = json!({"phase": "Failed"});
    let case = group_of(&rolling("RollingInPlace"), &live);
    let progress = progress(&case);
    assert_eq!(progress.state, UpdateState::Done);
    assert_eq!((progress.updated, progress.available), (4, 3));
}

#[test]
fn updated_object_counts_as_available_after_min_ready_seconds() {
    let mut group = rolling("RollingInPlace");
    group["minReadySeconds"] = 10.into();
    for (applied, since, left) in [
        (APPLIED, NOW - 10, None),
        (APPLIED, NOW - 9, Some(1)),
        (NOW - 4, APPLIED, Some(6)),
        // A clock of the API server that is ahead.
        (NOW + 5, NOW + 5, Some(15)),
    ] {
        let mut case = group_of(&group, &all("old")[1..]);
        put(&mut case, "a", "new", &running(true, since), applied);
        let progress = progress(&case);
        assert_eq!(progress.look_again.map(|time| time.as_secs()), left, "{applied} {since}");
        assert_eq!(progress.available, usize::from(left.is_none()));
        assert_eq!(progress.state == UpdateState::Updating, left.is_none());
    }
}

#[test]
fn updated_object_has_failed_after_the_progress_deadline() {
    let mut group = rolling("RollingInPlace");
    group["progressDeadlineSeconds"] = 600.into();
    for (applied, left) in [(NOW - 599, Some(1)), (NOW - 600, None)] {
        let mut case = group_of(&group, &all("old")[1..]);
        put(&mut case, "a", "new", &running(false, APPLIED), applied);
        let progress = progress(&case);
        assert_eq!(progress.look_again.map(|time| time.as_secs()), left);
        let failed = matches!(&progress.state, UpdateState::Failed(_, problem)
            if problem == "it is not available after 600 s: it runs but is not ready");
        assert_eq!(failed, left.is_none(), "{:?}", progress.state);
    }
}

#[test]
fn entry_without_a_time_has_no_deadline_and_no_wait() {
    let mut group = rolling("RollingInPlace");
    group["progressDeadlineSeconds"] = 600.into();
    group["minReadySeconds"] = 10.into();
    let state = |status: Value| {
        let mut case = group_of(&group, &all("old")[1..]);
        case.applied(&json!([pod("a", "new")]), |live| live["status"] = status.clone());
        progress(&case).state
    };
    assert!(matches!(state(json!({"phase": "Pending"})), UpdateState::Waiting(..)));
    assert_eq!(state(json!({"phase": "Succeeded"})), UpdateState::Updating);
}

#[test]
fn updated_object_is_available_only_when_its_status_checks_hold() {
    let mut group = rolling("RollingInPlace");
    group["statusChecks"] = json!([{"type": "Warm", "reason": "Serving"}]);
    let warm = |condition: Value| {
        let mut status = ready();
        status["conditions"].as_array_mut().unwrap().push(condition);
        status
    };
    let held =
        json!({"type": "Warm", "status": "True", "reason": "Serving", "observedGeneration": 2});
    for (status, expected) in [
        (ready(), "it has no condition Warm"),
        (
            warm(json!({"type": "Warm", "status": "False", "message": "cold"})),
            "its condition Warm is not True: cold",
        ),
        (
            warm(json!({"type": "Warm", "status": "True", "reason": "Asleep"})),
            "its condition Warm has not the reason Serving: Asleep",
        ),
        (
            warm(
                json!({"type": "Warm", "status": "True", "reason": "Serving", "observedGeneration": 1}),
            ),
            "its condition Warm is not of its present generation",
        ),
        (warm(json!({"type": 3})), "the object cannot be read"),
        (warm(held), ""),
    ] {
        let mut case = group_of(&group, &all("old")[1..]);
        case.applied(&json!([pod("a", "new")]), |live| {
            live["status"] = status.clone();
            live["metadata"]["generation"] = 2.into();
        });
        match progress(&case).state {
            UpdateState::Waiting(_, problem) => {
                assert!(!expected.is_empty() && problem.starts_with(expected), "{problem}");
            }
            state => assert_eq!((state, expected), (UpdateState::Updating, "")),
        }
    }
}

#[test]
fn paused_group_creates_missing_objects_and_updates_none() {
    for method in ["InPlace", "Recreate", "RollingInPlace", "RollingRecreate"] {
        let mut group = rolling(method);
        group["paused"] = true.into();
        let case = group_of(&group, &all("old")[1..]);
        case.check(&expect![[r"
            create Pod web/a
            skip Pod web/b: outdated, updated in its turn
            skip Pod web/c: outdated, updated in its turn
            skip Pod web/d: outdated, updated in its turn"]]);
        assert_eq!(progress(&case).state, UpdateState::Paused);
    }
}

#[test]
fn on_delete_writes_to_no_object_that_exists() {
    let mut case = group_of(&rolling("OnDelete"), &[("a", "old", ready()), ("b", "new", ready())]);
    case.applied(&json!([pod("c", "new")]), |live| {
        let fields = &mut live["metadata"]["managedFields"][0]["fieldsV1"];
        fields.as_object_mut().unwrap().remove("f:spec");
    });
    case.check(&expect![[r"
        skip Pod web/a: outdated, changes when it is deleted
        skip Pod web/b: in sync
        skip Pod web/c: outdated, changes when it is deleted
        create Pod web/d"]]);
    assert_eq!(progress(&case).state, UpdateState::OnDelete(2));
}

#[test]
fn in_place_updates_all_objects_at_once() {
    group_of(&rolling("InPlace"), &all("old")).check(&expect![[r"
        apply Pod web/a: changed
        apply Pod web/b: changed
        apply Pod web/c: changed
        apply Pod web/d: changed"]]);
}

#[test]
fn recreate_takes_one_object_first_and_then_all_others() {
    let group = rolling("Recreate");
    let first = expect![[r"
        recreate Pod web/a
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]];
    group_of(&group, &all("old")).check(&first);
    group_of(&group, &all("old")[1..]).check(&expect![[r"
        create Pod web/a
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
    let mut live = all("old");
    live[0] = ("a", "new", json!({"phase": "Pending"}));
    group_of(&group, &live).check(&expect![[r"
        skip Pod web/a: in sync
        recreate Pod web/b
        recreate Pod web/c
        recreate Pod web/d"]]);
}

#[test]
fn drift_is_repaired_in_place_beyond_the_limit() {
    let mut case = group_of(&rolling("RollingRecreate"), &all("old")[1..]);
    case.applied(&json!([pod("a", "new")]), |live| {
        live["status"] = json!({"phase": "Pending"});
        let fields = &mut live["metadata"]["managedFields"][0]["fieldsV1"];
        fields.as_object_mut().unwrap().remove("f:spec");
    });
    case.check(&expect![[r"
        apply Pod web/a: another manager changed .spec.image
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
}

#[test]
fn rejected_body_stops_the_update_and_is_recreated_where_the_group_recreates() {
    let mut case = group_of(&rolling("RollingInPlace"), &all("old"));
    case.rejected_as_immutable("spec.image: field is immutable");
    case.check(&expect![[r"
        skip Pod web/a: spec.image: field is immutable
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
    assert!(matches!(progress(&case).state, UpdateState::Failed(..)));
    let first = expect![[r"
        recreate Pod web/a
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]];
    let mut by_policy = case;
    by_policy.desired_state.objects[0].policy.insert(Policy::RecreateWhenImmutable);
    by_policy.check(&first);
    assert!(matches!(
        by_policy.plan().steps[0].action,
        Action::Recreate { dry_run_first: false, .. }
    ));
    let mut by_method = group_of(&rolling("RollingRecreate"), &all("old"));
    by_method.rejected_as_immutable("spec.image: field is immutable");
    by_method.check(&first);
    assert!(matches!(
        by_method.plan().steps[0].action,
        Action::Recreate { dry_run_first: true, .. }
    ));
}

#[test]
fn object_of_unknown_state_stops_the_update_for_the_round() {
    let objects = json!([desired_object("ConfigMap", "m", &json!({})), pod("a", "new")]);
    let mut case = case(&objects).group(&rolling("RollingInPlace"));
    put(&mut case, "a", "old", &ready(), APPLIED);
    case.unknown = vec!["ConfigMap"];
    case.check(&expect![[r"
        skip ConfigMap web/m: the response to the last write never arrived
        skip Pod web/a: outdated, updated in its turn"]]);
}

#[test]
fn object_with_data_is_recreated_only_with_the_annotation() {
    let claim = |size: &str, policy: &Value| {
        let mut claim = desired_object("PersistentVolumeClaim", "data", &json!({ "size": size }));
        claim["policy"] = policy.clone();
        json!([claim])
    };
    let mut kept = case(&claim("2Gi", &json!([]))).group(&rolling("RollingRecreate"));
    kept.applied(&claim("1Gi", &json!([])), |_| {});
    kept.check(&expect!["skip PersistentVolumeClaim web/data: outdated, not recreated since its kind holds data; give it the policy deletable, or its update group the method RollingInPlace"]);
    let deletable = json!(["deletable"]);
    let mut case = case(&claim("2Gi", &deletable)).group(&rolling("RollingRecreate"));
    case.applied(&claim("1Gi", &deletable), |_| {});
    case.check(&expect!["recreate PersistentVolumeClaim web/data"]);
}

#[test]
fn object_of_another_controller_is_no_member() {
    let mut case = group_of(&rolling("RollingRecreate"), &all("old")[1..]);
    let owner =
        json!([{"apiVersion": "v1", "kind": "X", "name": "y", "uid": "z", "controller": true}]);
    case.foreign("Pod", "a", &owner);
    let plan = case.plan();
    assert!(matches!(&plan.steps[0].action, Action::Skip(SkipReason::Conflict { .. })));
    assert_eq!(plan.updates[0].total, 3);
    // A conflict holds back a recreate in its namespace, as without a group.
    assert!(matches!(&plan.steps[1].action, Action::Skip(SkipReason::HeldBack(_))));
}

#[test]
fn primary_that_is_being_deleted_has_no_groups() {
    let mut case = group_of(&rolling("RollingRecreate"), &all("old"));
    case.deleting = true;
    case.check(&expect![[r"
        apply Pod web/a: changed
        apply Pod web/b: changed
        apply Pod web/c: changed
        apply Pod web/d: changed"]]);
    assert_eq!(case.plan().updates, []);
}

#[test]
fn prune_goes_on_while_an_update_is_stopped() {
    let mut live = all("old");
    live[0] = ("a", "new", json!({"phase": "Failed"}));
    let mut case = group_of(&rolling("RollingRecreate"), &live);
    put(&mut case, "e", "old", &ready(), APPLIED);
    case.check(&expect![[r"
        skip Pod web/a: in sync
        skip Pod web/b: outdated, updated in its turn
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn
        delete Pod web/e"]]);
}
