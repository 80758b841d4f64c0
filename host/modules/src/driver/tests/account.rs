//! Modules whose ServiceAccount does not allow them.

use super::*;

/// A Module whose account does not allow it.
fn not_allowed(module: Input<Fake>) -> Input<Fake> {
    let Input::Module(module) = module else { panic!("no Module") };
    let rejection = Rejection::new("AccountNotAllowed", "no", RetryPolicy::Later);
    Input::NotAllowed { module, rejection }
}

#[test]
fn module_that_is_not_allowed_is_not_fetched_and_keeps_what_its_status_knows() {
    let mut driver = driver();
    let digest = component("x").digest.to_string();
    let previous = component("w").digest.to_string();
    let rejected = component("v").digest.to_string();
    let status = json!({"digest": digest, "previous": {"digest": previous, "configMap": "m-copy"},
        "rejected": [{"digest": rejected, "reason": "Rejected", "message": "no"}]});
    let actions = driver.handle("m", not_allowed(named("m", 1, &spec(), &status)));
    let shown: Vec<_> = actions.iter().map(show).collect();
    assert_eq!(shown, ["notify AccountNotAllowed", "report 1 AccountNotAllowed"]);
    let report = driver.report("m").unwrap();
    assert_eq!(
        report.members["digest"],
        json!(digest),
        "a restarted host finds the active revision"
    );
    assert_eq!(report.members["previous"]["digest"], json!(previous));
    assert_eq!(report.members["rejected"][0]["digest"], json!(rejected));
    // Once it is allowed, the last active revision is loaded without a preview.
    let actions = driver.handle("m", named("m", 1, &spec(), &status));
    assert!(actions.iter().any(|action| show(action).starts_with("fetch ")));
    driver.handle("m", source("x"));
    let actions = driver.handle("m", loaded("x", |_| {}));
    assert!(actions.iter().any(|action| show(action).starts_with("activate x")));
    assert_eq!(reason_of(&driver, "m"), "RevisionActive");
}

#[test]
fn module_that_is_allowed_again_has_its_old_spec_back() {
    let mut driver = driver();
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("x"));
    driver.handle("m", loaded("x", |_| {}));
    handle(&mut driver, Event::Committed { digest: component("x").digest, result: Ok(()) });
    assert_eq!(reason_of(&driver, "m"), "RevisionActive");
    driver.handle("m", not_allowed(module(1, &spec())));
    assert_eq!(reason_of(&driver, "m"), "AccountNotAllowed");
    driver.handle("m", module(1, &spec()));
    assert_eq!(reason_of(&driver, "m"), "RevisionActive");
}
