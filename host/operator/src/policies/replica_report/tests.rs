use super::*;

const NOW: &str = "2026-01-01T00:01:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn report(policies: &[(&str, &str)]) -> ReplicaReport {
    let policy = |id: &str| PolicyReport { id: Some(id.to_owned()), ..PolicyReport::default() };
    let policies = policies.iter().map(|(module, id)| ((*module).to_owned(), policy(id)));
    ReplicaReport { certificate: Some("c1".to_owned()), policies: policies.collect() }
}

/// A Lease as the API server gives it, after a change.
fn lease(name: &str, change: impl FnOnce(&mut Value)) -> Object {
    let mut lease = report(&[("labels", "a")]).lease("hosts", &ReplicaName::of(name), now());
    lease["metadata"]["uid"] = json!(format!("uid-{name}"));
    lease["metadata"]["resourceVersion"] = json!("7");
    change(&mut lease);
    Object::decode(&LEASE, &lease.to_string(), None).unwrap()
}

fn with_report(name: &str, text: &str) -> Object {
    lease(name, |lease| lease["metadata"]["annotations"][REPORT_ANNOTATION] = text.into())
}

fn renewed(name: &str, time: &str) -> Object {
    lease(name, |lease| lease["spec"]["renewTime"] = time.into())
}

fn names(leases: &[Object]) -> Vec<String> {
    live_replicas(leases, now()).into_iter().map(|replica| replica.name).collect()
}

#[test]
fn report_survives_a_round_trip_through_a_lease() {
    let mut sent = report(&[("defaults", "b"), ("labels", "a")]);
    let policy = sent.policies.get_mut("labels").unwrap();
    (policy.reviewed, policy.failed) = (1_000, 2);
    policy.example = "the guest trapped".to_owned();
    policy.problem = "the snapshot is missing".to_owned();
    let found = with_report("one", &sent.text());
    let live = live_replicas([&found], now());
    assert_eq!(live[0].report.as_ref().unwrap(), &sent);
    assert_eq!(live[0].name, "one");
    let reviews = |module, id| live[0].reviews_with(module, id);
    assert!(reviews("labels", "a") && reviews("defaults", "b"));
    assert!(!reviews("labels", "b") && !reviews("other", "a"));
}

#[test]
fn replica_that_is_gone_expires() {
    let leases = [
        renewed("a", "2026-01-01T00:00:20.000001Z"),
        renewed("b", "2026-01-01T00:00:20.000000Z"),
        renewed("c", "2025-01-01T00:00:00Z"),
        // Clocks differ, and a wrong one keeps no replica alive.
        renewed("d", "2026-01-01T00:01:30Z"),
        renewed("e", "2026-01-01T00:01:40Z"),
        renewed("f", "9999-12-31T00:00:00Z"),
    ];
    assert_eq!(names(&leases), ["a", "d"]);
}

#[test]
fn lease_without_a_time_of_renewal_is_no_replica() {
    for spec in [json!({}), json!({"renewTime": null}), json!({"renewTime": "soon"}), json!(null)] {
        assert_eq!(names(&[lease("a", |lease| lease["spec"] = spec)]), [""; 0]);
    }
}

#[test]
fn other_leases_are_no_replicas() {
    let leases = [
        lease("a", |lease| lease["metadata"]["name"] = "innkeeper".into()),
        lease("b", |lease| lease["metadata"]["labels"] = json!({})),
        lease("c", |lease| lease["metadata"]["labels"] = json!({REPLICA_LABEL: "false"})),
        lease("d", |lease| lease["metadata"]["name"] = LEASE_PREFIX.into()),
        lease("z", |_| {}),
        lease("e", |_| {}),
    ];
    assert_eq!(names(&leases), ["e", "z"], "in order");
}

#[test]
fn forged_report_is_the_problem_of_its_replica_only() {
    let deep = "[".repeat(100_000);
    let large = format!("{{{}}}", " ".repeat(REPORT_BYTES_MAX));
    let leases = [
        with_report("a", ""),
        with_report("b", "[7]"),
        with_report("c", &deep),
        with_report("d", &large),
        with_report("e", r#"{"policies":{"labels":{"id":7}}}"#),
        with_report("f", r#"{"policies":{"labels":{"failed":-1}}}"#),
        lease("g", |lease| lease["metadata"]["annotations"] = json!({})),
        with_report("z", &report(&[("labels", "a")]).text()),
    ];
    let live = live_replicas(&leases, now());
    assert_eq!(live.len(), leases.len(), "a replica is alive whatever it reports");
    let (last, forged) = live.split_last().unwrap();
    assert!(last.reviews_with("labels", "a"));
    for replica in forged {
        let error = replica.report.as_ref().unwrap_err().to_string();
        assert!(!replica.reviews_with("labels", "a"), "{}", replica.name);
        assert!(error.len() < 700 && error.chars().all(|c| !c.is_control()), "{error:?}");
    }
    let error = |at: usize| forged[at].report.clone().unwrap_err();
    assert_eq!(error(3), ReportError::TooLarge { bytes: REPORT_BYTES_MAX + 2 });
    assert_eq!(error(6), ReportError::Missing);
}

#[test]
fn report_of_a_newer_version_is_read_with_what_is_known_of_it() {
    let text = r#"{"certificate":"c","zone":{"a":[1]},
        "policies":{"labels":{"id":"a","reviewed":3,"latency":0.1}}}"#;
    let report = ReplicaReport::read(text).unwrap();
    assert_eq!(report.certificate.as_deref(), Some("c"));
    assert_eq!(report.policies["labels"].reviewed, 3);
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(60_000), "]".repeat(60_000));
    assert_eq!(ReplicaReport::read(&deep).unwrap(), ReplicaReport::default());
    assert_eq!(ReplicaReport::read("{}").unwrap(), ReplicaReport::default());
}

#[test]
fn texts_and_names_of_a_report_are_visible_and_short() {
    let long = "x".repeat(5_000);
    let text = json!({"policies": {
        "labels": {"problem": format!("\u{1b}[2J{long}"), "example": "a\nb"},
        "no\nname": {"id": "a"}, "": {"id": "a"}, "Upper": {"id": "a"},
    }});
    let report = ReplicaReport::read(&text.to_string()).unwrap();
    assert_eq!(report.policies.keys().collect::<Vec<_>>(), ["labels"]);
    let policy = &report.policies["labels"];
    assert!(policy.problem.starts_with(r"\u{1b}[2Jxxx") && policy.problem.len() < 520);
    assert_eq!(policy.example, r"a\nb");
}

#[test]
fn report_that_is_too_large_loses_texts_first_and_active_policies_last() {
    let mut sent = report(&[]);
    for number in 0..300 {
        let policy = PolicyReport {
            id: (number % 2 == 0).then(|| format!("{number:016x}")),
            problem: "p".repeat(TEXT_BYTES_MAX),
            ..PolicyReport::default()
        };
        sent.policies.insert(format!("module-{number:04}"), policy);
    }
    let text = sent.text();
    let read = ReplicaReport::read(&text).unwrap();
    assert_eq!(read.policies.len(), 150, "the active ones");
    assert!(read.policies.values().all(|policy| policy.problem.is_empty()));
    assert_eq!(read.certificate, sent.certificate);

    for number in 0..10_000 {
        let policy = PolicyReport { id: Some("a".repeat(16)), ..PolicyReport::default() };
        sent.policies.insert(format!("active-{number:05}"), policy);
    }
    let text = sent.text();
    let read = ReplicaReport::read(&text).unwrap();
    assert!(read.policies.len() > 1_000, "{}", read.policies.len());
    assert!(text.len() > REPORT_BYTES_MAX - 200, "{}", text.len());
    let first: Vec<&String> = sent.policies.keys().take(read.policies.len()).collect();
    assert_eq!(read.policies.keys().collect::<Vec<_>>(), first);
}
