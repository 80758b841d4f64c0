//! Modules that reconcile the same primaries.

use super::random::Dice;
use super::*;

pub(super) fn handle_as(
    driver: &mut Driver<Fake>,
    name: &str,
    input: Input<Fake>,
) -> Vec<Action<Fake>> {
    let mut actions = driver.handle(name, input);
    for action in std::mem::take(&mut actions) {
        if let Action::Commit { digest, .. } = action {
            actions.extend(driver.handle(name, Event::Committed { digest, result: Ok(()) }));
        } else {
            actions.push(action);
        }
    }
    actions
}

#[test]
fn of_two_overlapping_modules_the_active_one_stays_active() {
    let mut driver = driver();
    for name in ["b", "a"] {
        handle_as(&mut driver, name, named(name, 1, &spec(), &json!({})));
        handle_as(&mut driver, name, source("x"));
        handle_as(&mut driver, name, loaded("x", |_| {}));
    }
    assert_eq!(reason_of(&driver, "b"), "RevisionActive");
    assert_eq!(reason_of(&driver, "a"), "PrimaryOverlap");
    // With separate namespaces both are active.
    let here = with(json!({"namespaces": ["here"]}));
    let there = with(json!({"namespaces": ["there"]}));
    handle_as(&mut driver, "b", named("b", 2, &here, &json!({})));
    handle_as(&mut driver, "a", named("a", 2, &there, &json!({})));
    handle_as(&mut driver, "a", loaded("x", |_| {}));
    assert_eq!(
        (reason_of(&driver, "a"), reason_of(&driver, "b")),
        ("RevisionActive".into(), "RevisionActive".into())
    );
    // Neither can be changed to overlap with the other, and both stay active.
    handle_as(&mut driver, "a", named("a", 3, &spec(), &json!({})));
    assert_eq!(
        (reason_of(&driver, "a"), reason_of(&driver, "b")),
        ("PrimaryOverlap".into(), "RevisionActive".into())
    );
    assert_eq!(driver.active_revision("a").unwrap().spec.namespaces, ["there".to_owned()].into());
    // It may when the other is deleted and the Module is listed again.
    handle_as(&mut driver, "b", Input::Gone);
    handle_as(&mut driver, "a", named("a", 3, &spec(), &json!({})));
    assert_eq!(reason_of(&driver, "a"), "RevisionActive");
}

#[test]
fn after_a_restart_the_active_module_wins_an_overlap_in_any_load_order() {
    let mut driver = driver();
    let digest = component("x").digest.to_string();
    let revision = json!({"digest": digest, "primary": {"apiVersion": "quay.io/v1alpha1", "kind": "Podroute"}});
    handle_as(&mut driver, "b", named("b", 1, &spec(), &revision));
    handle_as(&mut driver, "a", named("a", 1, &spec(), &json!({})));
    for name in ["a", "b"] {
        handle_as(&mut driver, name, source("x"));
        handle_as(&mut driver, name, loaded("x", |_| {}));
    }
    assert_eq!(
        (reason_of(&driver, "a"), reason_of(&driver, "b")),
        ("PrimaryOverlap".into(), "RevisionActive".into())
    );
}

/// A revision whose guest selects the primaries with these labels.
fn selecting(name: &str, labels: &Value) -> Input<Fake> {
    loaded(name, |manifest| {
        manifest.selector = Some(serde_json::from_value(json!({"matchLabels": labels})).unwrap());
    })
}

fn previewed(name: &str, deletions: u32) -> Input<Fake> {
    let mut preview = Preview { primaries: 1, previewed: 1, ..Preview::default() };
    for _ in 0..deletions {
        preview.add(PlannedChange::Delete, "ConfigMap web/a".into(), Vec::new());
    }
    Input::Previewed { digest: component(name).digest, result: Ok(preview) }
}

/// Makes a component the active revision of a module.
fn activate(driver: &mut Driver<Fake>, name: &str, revision: &str, labels: &Value) {
    handle_as(driver, name, named(name, 1, &spec(), &json!({})));
    handle_as(driver, name, source(revision));
    handle_as(driver, name, selecting(revision, labels));
    handle_as(driver, name, previewed(revision, 0));
}

fn approve(name: &str, revision: &str) -> Input<Fake> {
    let digest = component(revision).digest.to_string();
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": name, "generation": 1, "annotations": {"innkeeper.dev/approve": digest}},
        "spec": spec(),
    });
    Input::Module(Box::new(Module::from_value(&document).unwrap()))
}

#[test]
fn held_candidate_is_refused_if_another_module_took_its_primaries_before_the_approval() {
    let mut driver = driver();
    activate(&mut driver, "a", "x", &json!({"class": "x"}));
    handle_as(&mut driver, "a", source("all"));
    handle_as(&mut driver, "a", selecting("all", &json!({})));
    handle_as(&mut driver, "a", previewed("all", 1));
    assert_eq!(driver.report("a").unwrap().members["candidate"]["state"], "Held");
    activate(&mut driver, "b", "y", &json!({"class": "y"}));
    assert_eq!(reason_of(&driver, "b"), "RevisionActive");
    handle_as(&mut driver, "a", approve("a", "all"));
    assert_eq!(driver.active_digest("a"), Some(component("x").digest));
    assert_eq!(driver.report("a").unwrap().members["candidate"]["reason"], "PrimaryOverlap");
    // The approval counts once the other module is gone.
    handle_as(&mut driver, "b", Input::Gone);
    handle_as(&mut driver, "a", Event::Retry.into());
    handle_as(&mut driver, "a", selecting("all", &json!({})));
    assert_eq!(driver.active_digest("a"), Some(component("all").digest));
}

#[test]
fn primaries_of_a_rollback_target_are_reserved_until_the_window_is_over() {
    let mut driver = driver();
    activate(&mut driver, "a", "all", &json!({}));
    activate(&mut driver, "a", "x", &json!({"class": "x"}));
    assert_eq!(driver.active_digest("a"), Some(component("x").digest));
    activate(&mut driver, "b", "y", &json!({"class": "y"}));
    assert_eq!(reason_of(&driver, "b"), "PrimaryOverlap");
    let over = Event::RollbackWindowOver(component("x").digest);
    handle_as(&mut driver, "a", over.into());
    handle_as(&mut driver, "b", Event::Retry.into());
    handle_as(&mut driver, "b", selecting("y", &json!({"class": "y"})));
    assert_eq!(reason_of(&driver, "b"), "RevisionActive");
}

#[test]
fn primaries_of_a_decided_candidate_are_reserved_and_its_spec_cannot_take_those_of_others() {
    let mut driver = driver();
    for (name, namespace) in [("a", "here"), ("b", "here"), ("c", "there")] {
        let spec = with(json!({"namespaces": [namespace]}));
        driver.handle(name, named(name, 1, &spec, &json!({})));
        driver.handle(name, source("x"));
    }
    driver.handle("a", loaded("x", |_| {}));
    handle_as(&mut driver, "b", loaded("x", |_| {}));
    handle_as(&mut driver, "c", loaded("x", |_| {}));
    assert_eq!(reason_of(&driver, "b"), "PrimaryOverlap");
    assert_eq!(reason_of(&driver, "c"), "RevisionActive");
    driver.handle("a", named("a", 2, &spec(), &json!({})));
    driver.handle("a", Event::Committed { digest: component("x").digest, result: Ok(()) });
    let spec = &driver.active_revision("a").unwrap().spec;
    assert_eq!(spec.namespaces, ["here".to_owned()].into());
    assert_eq!(reason_of(&driver, "a"), "PrimaryOverlap");
}

#[test]
fn deletion_counts_although_the_spec_overlaps() {
    let mut driver = driver();
    activate(&mut driver, "a", "x", &json!({"class": "x"}));
    for (name, namespace) in [("b", "here"), ("c", "there")] {
        let spec = with(json!({"namespaces": [namespace]}));
        handle_as(&mut driver, name, named(name, 1, &spec, &json!({})));
        handle_as(&mut driver, name, source("y"));
        handle_as(&mut driver, name, selecting("y", &json!({"class": "y"})));
    }
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "b", "generation": 2, "deletionTimestamp": "2024-01-01T00:00:00Z"},
        "spec": spec(),
    });
    let deleted = Module::from_value(&document).unwrap();
    let actions = handle_as(&mut driver, "b", Input::Module(Box::new(deleted)));
    assert!(actions.iter().any(|action| matches!(action, Action::Teardown(_))));
}

/// Answers that come in any order, approvals, rollbacks and changes of the spec.
#[test]
fn no_two_active_revisions_overlap_in_any_order_of_events() {
    let names = ["a", "b", "c"];
    let classes = [json!({}), json!({"class": "x"}), json!({"class": "y"})];
    let revisions = ["all", "x", "y"];
    let mut activations = 0;
    for seed in 1..=100 {
        let mut dice = Dice(seed);
        let mut roll = |sides: u64| usize::try_from(dice.roll(sides)).unwrap();
        let mut driver = driver();
        for generation in 1..=400 {
            let name = names[roll(3)];
            let any = roll(3);
            let candidate =
                driver.states.get(name).and_then(|one| one.machine.candidate().digest());
            let of_candidate =
                revisions.iter().position(|one| Some(component(one).digest) == candidate);
            let answered = of_candidate.unwrap_or(any);
            let digest = component(revisions[answered]).digest;
            let input = match roll(12) {
                0 => {
                    let namespaces =
                        [json!([]), json!(["here"]), json!(["there"])][roll(3)].clone();
                    let spec = with(json!({"namespaces": namespaces}));
                    named(name, generation, &spec, &json!({}))
                }
                1 | 2 => source(revisions[any]),
                3 | 4 => selecting(revisions[answered], &classes[answered]),
                5 | 6 => previewed(revisions[answered], u32::from(roll(4) == 0)),
                7 | 8 => Event::Committed { digest, result: Ok(()) }.into(),
                9 => Event::Approval { approve: Some(digest), reject: None }.into(),
                10 if roll(2) > 0 => Event::Retry.into(),
                10 => Event::RollbackCommitted { digest, result: Ok(()) }.into(),
                _ if roll(4) > 0 => Event::RollbackWindowOver(digest).into(),
                _ => {
                    let rejection = Rejection::new("Trap", "trapped", RetryPolicy::Later);
                    let digest = driver.active_digest(name).unwrap_or(digest);
                    Event::FailureThresholdExceeded { digest, rejection }.into()
                }
            };
            let actions = driver.handle(name, input);
            activations += actions.iter().filter(|one| matches!(one, Action::Activate(_))).count();
            for (at, one) in names.iter().enumerate() {
                for other in &names[at + 1..] {
                    assert!(!driver.overlap(one, other), "seed {seed}: {one} and {other}");
                }
            }
        }
    }
    assert!(activations > 1000, "{activations} activations");
}

/// The modules that are to be tried again.
fn retried(actions: &[Action<Fake>]) -> Vec<String> {
    let names = actions.iter().filter_map(|action| match action {
        Action::RetryOverlapping(names) => Some(names.clone()),
        _ => None,
    });
    names.flatten().collect()
}

/// Two modules with separate namespaces, of which `b` asks for all namespaces.
fn overlapping_spec() -> Driver<Fake> {
    let mut driver = driver();
    for (name, namespace) in [("a", "here"), ("b", "there")] {
        let spec = with(json!({"namespaces": [namespace]}));
        handle_as(&mut driver, name, named(name, 1, &spec, &json!({})));
        handle_as(&mut driver, name, source("x"));
        handle_as(&mut driver, name, loaded("x", |_| {}));
    }
    handle_as(&mut driver, "b", named("b", 2, &spec(), &json!({})));
    assert_eq!(reason_of(&driver, "b"), "PrimaryOverlap");
    driver
}

#[test]
fn overlapping_spec_is_tried_again_when_the_other_module_changes_or_goes() {
    // Other events of the other module retry nothing.
    let mut driver = overlapping_spec();
    assert!(retried(&handle_as(&mut driver, "a", Event::Health(Ok(None)).into())).is_empty());
    let elsewhere = with(json!({"namespaces": ["elsewhere"]}));
    let actions = handle_as(&mut driver, "a", named("a", 2, &elsewhere, &json!({})));
    assert_eq!(retried(&actions), ["b"]);
    handle_as(&mut driver, "b", Input::RetryOverlapping);
    assert_eq!(reason_of(&driver, "b"), "PrimaryOverlap", "it still overlaps");
    let actions = handle_as(&mut driver, "a", Input::Gone);
    assert_eq!(retried(&actions), ["b"]);
    handle_as(&mut driver, "b", Input::RetryOverlapping);
    assert_eq!(reason_of(&driver, "b"), "RevisionActive");
    assert!(driver.active_revision("b").unwrap().spec.namespaces.is_empty());
}

#[test]
fn overlapping_spec_that_the_account_does_not_allow_any_more_is_not_tried_again() {
    let mut driver = overlapping_spec();
    let Input::Module(module) = named("b", 2, &spec(), &json!({})) else { panic!("a Module") };
    let rejection = Rejection::new("AccountNotAllowed", "no", RetryPolicy::Later);
    handle_as(&mut driver, "b", Input::NotAllowed { module, rejection });
    assert!(retried(&handle_as(&mut driver, "a", Input::Gone)).is_empty());
    handle_as(&mut driver, "b", Input::RetryOverlapping);
    let spec = &driver.active_revision("b").unwrap().spec;
    assert_eq!(spec.namespaces, ["there".to_owned()].into());
}

#[test]
fn overlapping_candidate_is_tried_again_when_the_rollback_window_of_the_other_is_over() {
    let mut driver = driver();
    activate(&mut driver, "a", "all", &json!({}));
    activate(&mut driver, "a", "x", &json!({"class": "x"}));
    activate(&mut driver, "b", "y", &json!({"class": "y"}));
    assert_eq!(reason_of(&driver, "b"), "PrimaryOverlap");
    let over = Event::RollbackWindowOver(component("x").digest);
    assert_eq!(retried(&handle_as(&mut driver, "a", over.into())), ["b"]);
    let actions = handle_as(&mut driver, "b", Input::RetryOverlapping);
    assert!(actions.iter().any(|action| matches!(action, Action::Load(_))));
}
