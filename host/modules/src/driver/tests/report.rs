//! The status that the driver reports.

use super::*;

#[test]
fn report_has_the_active_revision_and_all_owned_kinds() {
    let mut driver = driver();
    let mut first = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": 7}, "spec": spec(),
        "status": {"ownedKinds": [{"apiVersion": "batch/v1", "kind": "Job"}], "conditions": []},
    });
    let module = Module::from_value(&first).unwrap();
    driver.handle("m", Input::Module(Box::new(module)));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", |_| {}));
    let report = driver.report("m").unwrap();
    assert_eq!(
        Value::Object(report.members),
        json!({
            "digest": component("a").digest.to_string(),
            "guest": {"name": "a", "version": "0.1.0"},
            "primary": {"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "plural": "podroutes"},
            "contract": innkeeper_contract::VERSION,
            "ownedKinds": [
                {"apiVersion": "batch/v1", "kind": "Job"}, {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}
            ],
        })
    );
    // The host can read its own report.
    first["status"] = Value::Object(driver.report("m").unwrap().members);
    assert!(Module::from_value(&first).is_ok());
}

#[test]
fn decision_is_only_in_the_report_that_writes_it() {
    let mut driver = driver();
    let digests = |report: Option<Report>| {
        let members = report.unwrap().members;
        let digest = |value: &Value| value.as_str().map(|text| text[..12].to_owned());
        (digest(&members["digest"]), members.get("previous").and_then(|one| digest(&one["digest"])))
    };
    let short = |name: &str| Some(component(name).digest.short());
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", |_| {}));
    driver.handle("m", source("b"));
    driver.handle("m", loaded("b", |_| {}));
    let digest = component("b").digest;
    driver.handle("m", Input::Previewed { digest, result: Ok(Preview::default()) });
    // Its snapshot is not saved yet: a restarted host is to find the revision before.
    assert_eq!(digests(driver.report("m")), (short("a"), None));
    assert_eq!(
        digests(driver.committed_status("m", component("b").digest)),
        (short("b"), short("a"))
    );
    driver.handle("m", Event::Committed { digest, result: Ok(()) });
    assert_eq!(digests(driver.report("m")), (short("b"), short("a")));
}

#[test]
fn preview_of_the_active_revision_is_reported_also_after_a_restart() {
    let mut host = driver();
    let found = |host: &Driver<Fake>| host.report("m").unwrap().members.get("preview").cloned();
    host.handle("m", module(1, &spec()));
    host.handle("m", source("a"));
    handle(&mut host, loaded("a", |_| {}));
    assert_eq!(found(&host), None, "the first is not previewed");
    let mut swap = |name: &str, change: PlannedChange| {
        host.handle("m", source(name));
        host.handle("m", loaded(name, |_| {}));
        let mut preview = Preview { primaries: 2, previewed: 2, ..Preview::default() };
        preview.add(change, "ConfigMap web/a".to_owned(), vec![".data.x".to_owned()]);
        let digest = component(name).digest;
        host.handle("m", Input::Previewed { digest, result: Ok(preview) });
        host.handle("m", Event::Committed { digest, result: Ok(()) });
        host.report("m").unwrap().members
    };
    let mut members = swap("b", PlannedChange::Change);
    let expected = json!({"digest": component("b").digest.to_string(), "primaries": 2, "previewed": 2,
        "creates": 0, "changes": 1, "deletes": 0, "failures": 0, "examples": [
            {"action": "Change", "object": "ConfigMap web/a", "fields": [".data.x"]}]});
    assert_eq!(members["preview"], expected);
    // A held candidate is reported as such, and the active revision as before.
    let held = swap("c", PlannedChange::Delete);
    assert_eq!(held["candidate"]["deletes"], 1);
    assert_eq!(held["preview"], expected);

    members.insert("conditions".to_owned(), json!([]));
    let again = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": 7}, "spec": spec(), "status": members});
    let mut host = driver();
    host.handle("m", Input::Module(Box::new(Module::from_value(&again).unwrap())));
    assert_eq!(found(&host), Some(expected));
}

#[test]
fn refusal_is_in_the_status_and_never_longer_than_its_schema_allows() {
    let mut driver = driver();
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    let result = Err(Rejection::new("InvalidManifest", "x".repeat(20_000), RetryPolicy::Never));
    driver.handle("m", Input::Loaded { digest: component("a").digest, result });
    let members = driver.report("m").unwrap().members;
    for refusal in [&members["candidate"], &members["rejected"][0]] {
        assert_eq!(refusal["reason"], "InvalidManifest");
        let length = refusal["message"].as_str().unwrap().chars().count();
        assert!((1_000..=4_096).contains(&length), "{length}");
    }
    assert_eq!(members["candidate"]["state"], "Rejected");
}

/// Loads, previews and activates a component.
fn activate(host: &mut Driver<Fake>, name: &str) {
    host.handle("m", source(name));
    host.handle("m", loaded(name, |manifest| manifest.version = format!("1.0.0-{name}")));
    let digest = component(name).digest;
    host.handle("m", Input::Previewed { digest, result: Ok(Preview::default()) });
    host.handle("m", Event::Committed { digest, result: Ok(()) });
}

#[test]
fn old_preview_is_not_reported_when_its_revision_is_active_again_without_one() {
    let mut host = driver();
    host.handle("m", module(1, &spec()));
    for name in ["a", "b", "c"] {
        activate(&mut host, name);
    }
    assert_eq!(host.report("m").unwrap().members["preview"]["digest"], json!(hex("c")));
    let rejection = Rejection::new("GuestTrapped", "it traps", RetryPolicy::Later);
    let digest = component("c").digest;
    host.handle("m", Event::FailureThresholdExceeded { digest, rejection });
    // Every report contains the decision, also one that follows a failed write of the decision.
    let decision = host.rollback_status("m").unwrap();
    assert_eq!(host.report("m").unwrap(), decision);
    let digest = component("b").digest;
    host.handle("m", Event::RollbackCommitted { digest, result: Ok(()) });
    // The decision is the whole new status: no second write follows.
    assert_eq!(host.report("m").unwrap(), decision);
    let members = host.report("m").unwrap().members;
    assert_eq!((&members["digest"], members.get("preview")), (&json!(hex("b")), None));
}

#[test]
fn history_and_versions_are_reported_also_after_a_restart() {
    let mut host = driver();
    host.handle("m", module(1, &spec()));
    for name in ["a", "b", "c"] {
        activate(&mut host, name);
    }
    let earlier = |name: &str| {
        json!({"digest": hex(name), "version": format!("1.0.0-{name}"),
            "configMap": format!("m-copy-{}", component(name).digest.short())})
    };
    let mut members = host.report("m").unwrap().members;
    assert_eq!(members["history"], json!([earlier("b"), earlier("a")]));
    assert_eq!(members["previous"], earlier("b"));
    members.insert(
        "rejected".to_owned(),
        json!([
        {"digest": hex("b"), "reason": "Rejected", "message": "no", "version": "1.0.0-b"}]),
    );
    members.insert("usedApproval".to_owned(), json!(hex("b")));
    members.insert("usedRejection".to_owned(), json!(hex("c")));
    let annotations = json!({"innkeeper.dev/approve": hex("b"), "innkeeper.dev/reject": hex("c")});

    let mut host = driver();
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "spec": spec(), "status": members,
        "metadata": {"name": "m", "generation": 7, "annotations": annotations},
    });
    host.handle("m", Input::Module(Box::new(Module::from_value(&document).unwrap())));
    let again = host.report("m").unwrap().members;
    for member in ["history", "rejected", "usedApproval", "usedRejection"] {
        assert_eq!(again[member], members[member]);
    }
    assert_eq!(again["previous"], earlier("a"), "the last one that is not rejected");
}

fn hex(name: &str) -> String {
    component(name).digest.to_string()
}
