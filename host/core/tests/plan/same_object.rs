//! Desired objects that are one object, in two versions or two groups of its kind.

use expect_test::expect;
use innkeeper_core::plan::UpdateState;
use serde_json::{Value, json};

use crate::case::{Case, case, deployment, service};

const AUTOSCALER: &str = "HorizontalPodAutoscaler";

fn object(version: &str, kind: &str) -> Value {
    json!({"object": {"apiVersion": version, "kind": kind, "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3}}})
}

/// An autoscaler that is desired in two versions, both optional.
fn versions() -> Value {
    json!([object("autoscaling/v1", AUTOSCALER), object("autoscaling/v2", AUTOSCALER)])
}

/// Shows every desired object of a kind as one object, which was applied as `applied` desires it.
fn show_as_one(case: &mut Case, kind: &str, applied: &Case) {
    let body = applied.desired_state.objects.iter().find(|one| one.object_ref.kind.kind == kind);
    let body = body.unwrap().body.clone();
    for mut shown in case.desired_state.objects.clone() {
        if shown.object_ref.kind.kind == kind {
            shown.body = body.clone();
            case.shown(&shown, "one");
        }
    }
}

#[test]
fn object_that_two_kinds_serve_is_written_once() {
    let ingresses =
        json!([object("networking.k8s.io/v1", "Ingress"), object("extensions/v1beta1", "Ingress")]);
    let mut shown = case(&ingresses);
    // Before it exists, nobody knows that the two are one; the second create finds the name taken.
    shown.check(&expect![[r"
        create Ingress web/a
        create Ingress web/a"]]);
    let changed = json!([object("networking.k8s.io/v1", "Ingress")]);
    show_as_one(&mut shown, "Ingress", &case(&changed));
    let lines: Vec<String> = shown.plan().steps.iter().map(ToString::to_string).collect();
    expect![[r"
        apply Ingress web/a: changed
        skip Ingress web/a: it is the same object as Ingress web/a in extensions/v1beta1; have the guest give one of them"]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn object_in_two_served_versions_is_created_once_and_holds_back_no_other() {
    let mut objects = versions();
    objects.as_array_mut().unwrap().extend([deployment(1), service()]);
    let mut absent = case(&objects);
    absent.check(&expect![[r"
        create Deployment web/a
        create HorizontalPodAutoscaler web/a
        skip HorizontalPodAutoscaler web/a: it is the same object as HorizontalPodAutoscaler web/a in autoscaling/v1; have the guest give one of them
        create Service web/b"]]);
    // It is unknown in one version: the other one must not write it meanwhile.
    absent.unknown = vec![AUTOSCALER];
    absent.check(&expect![[r"
        create Deployment web/a
        skip HorizontalPodAutoscaler web/a: the response to the last write never arrived
        skip HorizontalPodAutoscaler web/a: it is the same object as HorizontalPodAutoscaler web/a in autoscaling/v1; have the guest give one of them
        create Service web/b"]]);
}

#[test]
fn object_in_two_versions_is_written_in_the_one_that_is_served() {
    for (unserved, served) in
        [("autoscaling/v1", "autoscaling/v2"), ("autoscaling/v2", "autoscaling/v1")]
    {
        let mut case = case(&versions());
        case.unserved = vec![unserved];
        let plan = case.plan();
        let created = plan.steps.iter().find(|step| step.to_string().starts_with("create"));
        assert_eq!(created.unwrap().object_ref.kind.api_version, served);
        assert!(!plan.prune_pending);
    }
}

#[test]
fn object_in_two_versions_is_one_member_of_its_group() {
    let group = json!({"name": "all", "method": "RollingRecreate", "maxUnavailable": "50%"});
    let mut grouped = case(&versions()).group(&group);
    // The other version applied it last, so that the first one sees another digest.
    let other = case(&json!([object("autoscaling/v2", AUTOSCALER)]));
    show_as_one(&mut grouped, AUTOSCALER, &other);
    let progress = grouped.plan().updates.remove(0);
    assert_eq!((progress.updated, progress.total), (0, 1));

    // As the first version applies it, nothing is left to do.
    let mut grouped = case(&versions()).group(&group);
    let first = case(&json!([object("autoscaling/v1", AUTOSCALER)]));
    show_as_one(&mut grouped, AUTOSCALER, &first);
    grouped.check(&expect![[r"
        skip HorizontalPodAutoscaler web/a: in sync
        skip HorizontalPodAutoscaler web/a: it is the same object as HorizontalPodAutoscaler web/a in autoscaling/v1; have the guest give one of them"]]);
    let progress = grouped.plan().updates.remove(0);
    assert_eq!((progress.updated, progress.total), (1, 1));
    assert_ne!(progress.state, UpdateState::Updating);
}

#[test]
fn object_in_two_versions_is_not_pruned_when_one_version_is_dropped() {
    for kept in ["autoscaling/v1", "autoscaling/v2"] {
        let both = case(&versions());
        let mut one = case(&json!([object(kept, AUTOSCALER)]));
        let first = case(&json!([object("autoscaling/v1", AUTOSCALER)]));
        // The module watches both versions, and each shows the object.
        for shown in &both.desired_state.objects {
            let mut shown = shown.clone();
            shown.body = first.desired_state.objects[0].body.clone();
            one.shown(&shown, "one");
        }
        let steps = one.plan().steps;
        assert_eq!(steps.len(), 1, "{kept}: {steps:?}");
    }
}

#[test]
fn conflict_about_an_object_in_two_versions_still_holds_back_others() {
    let mut objects = versions();
    objects[0]["policy"] = json!(["independent"]);
    objects.as_array_mut().unwrap().push(service());
    let mut taken = case(&objects);
    for desired in taken.desired_state.objects.clone() {
        if desired.object_ref.kind.kind == AUTOSCALER {
            let live = json!({"metadata": {"name": "a", "namespace": "web", "uid": "theirs",
                "resourceVersion": "3"}});
            taken.put_as(&desired.object_ref.kind, &live);
        }
    }
    let held_back = taken.plan().steps.pop().unwrap().to_string();
    assert_eq!(
        held_back,
        "skip Service web/b: held back, since HorizontalPodAutoscaler web/a is not this primary's"
    );
}
