use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn kind() -> Arc<Kind> {
    Arc::new(Kind::namespaced("v1", "ConfigMap", "configmaps"))
}

fn object(name: &str, version: u64, data: &str) -> Object {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": data},
        "metadata": {"name": name, "namespace": "n", "uid": name,
            "resourceVersion": version.to_string()}});
    Object::decode(&kind(), &object.to_string(), None).unwrap()
}

fn outcome(result: AuditResult) -> AuditOutcome {
    let text = if result == AuditResult::Pass { "" } else { "Because" };
    AuditOutcome { result, reason: text.to_owned(), message: text.to_owned() }
}

fn list(results: &mut ObjectResults, objects: &[Object]) -> Vec<AuditedObject> {
    let kind = kind();
    results.take_list(objects.iter().map(|object| (&kind, object)), Vec::new())
}

/// Reviews all that waits, each object with the same result; gives the names.
fn review(results: &mut ObjectResults, objects: &[Object], result: AuditResult) -> Vec<String> {
    let mut reviewed = Vec::new();
    while let Some((id, trigger)) = results.next() {
        let object = objects.iter().find(|object| object.key == id.key).unwrap();
        if !results.keep_result(&id, object, trigger) {
            results.record(&id, object, &outcome(result));
            reviewed.push(id.key.name().to_owned());
        }
    }
    reviewed
}

#[test]
fn objects_are_reviewed_once_and_again_only_when_their_content_changes() {
    let mut results = ObjectResults::new("m".into());
    let mut objects = [object("a", 1, "x"), object("b", 1, "x")];
    list(&mut results, &objects);
    assert_eq!(review(&mut results, &objects, AuditResult::Pass), ["a", "b"]);
    list(&mut results, &objects);
    assert_eq!(results.pending(), 0, "nothing has changed");
    objects[0] = object("a", 2, "x");
    objects[1] = object("b", 3, "y");
    list(&mut results, &objects);
    assert_eq!(results.pending(), 2);
    assert_eq!(review(&mut results, &objects, AuditResult::Pass), ["b"]);
    list(&mut results, &objects);
    assert_eq!(results.pending(), 0, "the new version is known");
}

#[test]
fn object_is_reviewed_again_when_a_read_or_the_policy_has_changed() {
    let mut results = ObjectResults::new("m".into());
    let objects = [object("a", 1, "x"), object("b", 1, "x")];
    list(&mut results, &objects);
    review(&mut results, &objects, AuditResult::Pass);
    let id = results.id(&kind(), &objects[1].key);
    results.wake(&id);
    results.queue(&id.kind, &id.key);
    assert_eq!(review(&mut results, &objects, AuditResult::Fail), ["b"]);
    results.note_complete(Timestamp::UNIX_EPOCH);
    results.restart();
    assert_eq!((results.completed(), results.total().fail), (None, 1), "results stay meanwhile");
    assert_eq!(review(&mut results, &objects, AuditResult::Pass), ["a", "b"]);
    let stranger = results.id(&kind(), &ObjectKey::new("n", "other"));
    results.wake(&stranger);
    assert_eq!(results.pending(), 0);
}

#[test]
fn counts_and_findings_are_those_of_the_last_reviews_whatever_happens() {
    for seed in 0..40 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut results = ObjectResults::new("m".into());
        let mut expected: BTreeMap<String, AuditResult> = BTreeMap::new();
        for _ in 0..300 {
            let name = format!("o{}", rng.u8(..20));
            let one = object(&name, rng.u64(1..4), "x");
            let id = results.id(&kind(), &one.key);
            if rng.u8(..4) == 0 {
                results.remove(&id);
                expected.remove(&name);
            } else {
                let result = AuditResult::ALL[rng.usize(..4)];
                results.record(&id, &one, &outcome(result));
                expected.insert(name, result);
            }
        }
        let count = |result| expected.values().filter(|one| **one == result).count() as u64;
        for result in AuditResult::ALL {
            assert_eq!(results.total().of(result), count(result), "seed {seed}: {result:?}");
        }
        let mut reported = AuditCounts::default();
        let reports = results.reports();
        for report in &reports {
            reported.add(&report.counts);
        }
        assert_eq!(reported, *results.total(), "seed {seed}");
        let listed: usize = reports.iter().map(|report| report.findings.len()).sum();
        let expected = expected.values().filter(|one| one.is_listed()).count();
        assert_eq!(listed, expected, "seed {seed}");
    }
}

#[test]
fn results_count_as_changed_only_when_they_differ() {
    let mut results = ObjectResults::new("m".into());
    let one = [object("a", 1, "x")];
    list(&mut results, &one);
    review(&mut results, &one, AuditResult::Fail);
    assert!(results.take_change());
    results.wake_all();
    review(&mut results, &one, AuditResult::Fail);
    assert!(!results.take_change(), "the same result again");
    results.wake_all();
    review(&mut results, &one, AuditResult::Warn);
    assert!(results.take_change());
    assert_eq!(list(&mut results, &[]).len(), 1);
    assert!(results.take_change(), "the object is gone");
    assert_eq!(results.total().total(), 0);
    assert!(results.reports().is_empty());
}

#[test]
fn completion_is_reported_when_the_last_reviews_change_no_result() {
    let mut results = ObjectResults::new("m".into());
    let objects = [object("a", 1, "x"), object("b", 1, "x")];
    list(&mut results, &objects);
    review(&mut results, &objects, AuditResult::Pass);
    results.note_complete(Timestamp::UNIX_EPOCH);
    results.restart();
    // A report while reviews wait takes the change.
    results.take_change();
    assert!(!results.needs_report(true), "objects wait for their review");
    review(&mut results, &objects, AuditResult::Pass);
    assert!(results.needs_report(true));
    assert!(!results.needs_report(false), "other objects may be unknown");
    results.note_complete(Timestamp::UNIX_EPOCH);
    assert!(results.take_change());
    assert!(!results.needs_report(true));
}

#[test]
fn policy_that_takes_all_of_its_time_again_and_again_is_not_asked_any_more() {
    let mut results = ObjectResults::new("m".into());
    let objects: Vec<_> = (0..8).map(|number| object(&format!("o{number}"), 1, "x")).collect();
    list(&mut results, &objects);
    let hanging = AuditOutcome::failed("GuestTimeout", "it hangs");
    for object in &objects {
        let (id, _) = results.next().unwrap();
        let outcome =
            if results.has_given_up() { ObjectResults::given_up() } else { hanging.clone() };
        results.record(&id, object, &outcome);
    }
    assert!(results.has_given_up());
    assert_eq!(results.total().error, 8);
    let reports = results.reports();
    let reasons: Vec<&str> = reports[0].findings.iter().map(|one| &*one.reason).collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "GuestTimeout").count(), 5);
    assert!(results.problem().unwrap().contains("the last 5 reviews took all of their time"));
    results.restart();
    assert!(!results.has_given_up(), "another revision is asked");
}

#[test]
fn objects_beyond_the_most_are_left_out_and_reported() {
    let mut results = ObjectResults::new("m".into());
    let (kind, one) = (kind(), object("a", 1, "x"));
    let many = (0..OBJECTS_MAX + 7).map(|number| {
        let mut object = one.clone();
        object.key = ObjectKey::new("n", &format!("o{number:06}"));
        object
    });
    let many: Vec<Object> = many.collect();
    results.take_list(many.iter().map(|object| (&kind, object)), Vec::new());
    assert_eq!(results.pending(), OBJECTS_MAX);
    assert!(results.problem().unwrap().starts_with("7 objects beyond 100000"));
    results.queue(&kind, &many[OBJECTS_MAX + 3].key);
    assert_eq!(results.pending(), OBJECTS_MAX);
    results.take_change();
    let fewer = many.iter().skip(7).map(|object| (&kind, object));
    results.take_list(fewer, Vec::new());
    assert!(results.take_change(), "the status does not name them any more");
}

#[test]
fn findings_beyond_the_most_are_counted_without_texts() {
    let mut results = ObjectResults::new("m".into());
    let one = object("a", 1, "x");
    for number in 0..FINDINGS_MAX + 10 {
        let id = results.id(&kind(), &ObjectKey::new("n", &format!("o{number}")));
        results.record(&id, &one, &outcome(AuditResult::Fail));
    }
    assert_eq!(results.total().fail, FINDINGS_MAX as u64 + 10);
    assert_eq!(results.findings.len(), FINDINGS_MAX);
}
