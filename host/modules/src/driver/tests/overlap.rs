//! Modules that reconcile the same primaries.

use super::*;

fn handle_as(driver: &mut Driver<Fake>, name: &str, input: Input<Fake>) -> Vec<Action<Fake>> {
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
    assert_eq!(
        driver.active_revision("a").unwrap().settings.namespaces,
        ["there".to_owned()].into()
    );
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
