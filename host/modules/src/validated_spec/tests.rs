use expect_test::{Expect, expect};
use serde_json::json;

use super::duration::parse_duration;
use super::*;
use crate::module::Quantity;
use crate::rollout::Strategy;

fn settings(name: &str, spec: &Value, place: SourceKind) -> Result<ValidatedSpec, String> {
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": name}, "spec": spec,
    });
    let module = Module::from_value(&document).map_err(|error| error.to_string())?;
    ValidatedSpec::new(&module, place, Limits::default(), Some("operators"))
        .map_err(|errors| errors.to_string().replace("; spec", "\nspec"))
}

fn refused(spec: &Value, place: SourceKind, expected: &Expect) {
    expected.assert_eq(&settings("m", spec, place).unwrap_err());
}

#[test]
fn spec_with_every_field_is_read() {
    let settings = settings("podroute", &json!({
        "source": {"configMap": {"name": "podroute-1", "key": "x.wasm"}},
        "serviceAccountName": "podroute",
        "allowedCRDGroups": ["quay.io"],
        "crds": "Adopt",
        "parameters": {"size": 3},
        "resyncPeriod": "1h30m",
        "manageStatus": false,
        "runResult": "EachPeriod",
        "limits": {"memory": "16Mi", "timeout": "500ms", "compileTimeout": "2m", "outputBytes": 65536, "logBytes": "4k", "maxObjects": 5, "maxReads": 7, "tableElements": 9, "recordedReads": "2Mi", "writesPerSecond": 50},
        "selector": {
            "matchLabels": {"app": "a", "example.com/tier": ""},
            "matchExpressions": [
                {"key": "env", "operator": "In", "values": ["dev", "test"]},
                {"key": "env", "operator": "NotIn", "values": ["prod"]},
                {"key": "x", "operator": "Exists"},
                {"key": "y", "operator": "DoesNotExist"},
            ],
        },
        "namespaces": ["b", "a"],
        "paused": true,
    }), SourceKind::Cluster).unwrap();
    assert_eq!(
        settings,
        ValidatedSpec {
            adopts_crds: true,
            source: SourceRef::ConfigMap { name: "podroute-1".into(), key: Some("x.wasm".into()) },
            service_account: Some("podroute".into()),
            allowed_crd_groups: ["quay.io".to_owned()].into(),
            parameters: json!({"size": 3}),
            resync: Some(Duration::from_mins(90)),
            manage_status: false,
            run_result: Some(RunResultRenewal::EachPeriod),
            limits: Limits {
                memory_bytes: 16 << 20,
                time: Duration::from_millis(500),
                compile_time: Duration::from_mins(2),
                output_bytes: 65536,
                log_bytes: 4000,
                objects: 5,
                reads: 7,
                table_elements: 9,
                ..Limits::default()
            },
            writes_per_second: 50.try_into().unwrap(),
            recorded_read_bytes: 2 << 20,
            selector: PrimarySelector {
                labels: "app=a,example.com/tier=,env in (dev,test),env notin (prod),x,!y"
                    .parse()
                    .unwrap(),
                ..PrimarySelector::default()
            },
            namespaces: ["a".to_owned(), "b".to_owned()].into(),
            allow_cross_namespace: false,
            allow_finalizers: false,
            secret_names: BTreeSet::new(),
            value_sources: Vec::new(),
            paused: true,
            policy: None,
            rollout: Rollout::default(),
        }
    );
}

#[test]
fn field_that_a_spec_leaves_out_has_its_default() {
    let settings =
        settings("m", &json!({"source": {"file": "g.wasm"}}), SourceKind::Directory).unwrap();
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.parameters, Value::Null);
    assert_eq!((settings.manage_status, settings.paused, settings.resync), (true, false, None));
    assert_eq!(settings.selector, PrimarySelector::default());
}

#[test]
fn all_bad_values_are_named_at_once() {
    refused(
        &json!({
            "source": {"configMap": {"name": "Not A Name"}},
            "allowedCRDGroups": ["apps.k8s.io", "innkeeper.dev", "UPPER"],
            "resyncPeriod": "10ms",
            "limits": {"memory": "64Q", "timeout": "1 day", "compileTimeout": "1h", "outputBytes": "1Ti", "maxObjects": 0},
            "selector": {"matchLabels": {"a b": "c d"}, "matchExpressions": [{"key": "x", "operator": "In"}, {"key": "x", "operator": "Exists", "values": ["y"]}]},
            "namespaces": ["a.b"],
        }),
        SourceKind::Cluster,
        &expect![[r#"
            spec.source.configMap.name: "Not A Name" is not a name: lower case letters, digits, '-' and '.', each part beginning and ending with a letter or a digit, at most 253 characters
            spec.serviceAccountName: is missing: name the ServiceAccount (in the namespace innkeeper-modules) that this module acts as; `innkeeper rbac` prints the rights that it needs
            spec.allowedCRDGroups[0]: apps.k8s.io belongs to Kubernetes or to Innkeeper; a module may install definitions of its own groups only
            spec.allowedCRDGroups[1]: innkeeper.dev belongs to Kubernetes or to Innkeeper; a module may install definitions of its own groups only
            spec.allowedCRDGroups[2]: "UPPER" is not a name: lower case letters, digits, '-' and '.', each part beginning and ending with a letter or a digit, at most 253 characters
            spec.namespaces[0]: "a.b" is not a name: lower case letters, digits and '-', beginning and ending with a letter or a digit
            spec.resyncPeriod: 10ms is too short: at least 1s, or 0s for never
            spec.limits.memory: "64Q" is not a number of bytes: a whole number, or one with k, M, G, Ki, Mi or Gi, as in 64Mi
            spec.limits.outputBytes: "1Ti" is not a number of bytes: a whole number, or one with k, M, G, Ki, Mi or Gi, as in 64Mi
            spec.limits.timeout: "1 day" is not a duration: numbers with h, m, s or ms, largest first, as in 30s or 1h30m
            spec.limits.compileTimeout: 1h is out of bounds: more than 0s, at most 900s
            spec.limits.maxObjects: 0 is out of bounds: from 1 to 100000
            spec.selector.matchLabels["a b"]: "a b" is not a label: letters, digits, '-', '_' and '.', at most 63 characters, perhaps after a DNS name and '/'
            spec.selector.matchLabels["a b"]: "c d" is not a label's value: letters, digits, '-', '_' and '.', at most 63 characters
            spec.selector.matchExpressions[0].values: is empty: In and NotIn need at least one value
            spec.selector.matchExpressions[1].values: must be left out with Exists and DoesNotExist"#]],
    );
}

#[test]
fn a_namespace_of_innkeeper_itself_is_refused() {
    refused(
        &json!({
            "source": {"configMap": {"name": "m"}}, "serviceAccountName": "m",
            "namespaces": ["web", "innkeeper-modules", "innkeeper-system", "operators"],
        }),
        SourceKind::Cluster,
        &expect![[r#"
            spec.namespaces[1]: innkeeper-modules belongs to Innkeeper itself: no module reconciles it; name another namespace
            spec.namespaces[2]: innkeeper-system belongs to Innkeeper itself: no module reconciles it; name another namespace
            spec.namespaces[3]: operators belongs to Innkeeper itself: no module reconciles it; name another namespace"#]],
    );
}

#[test]
fn source_that_the_place_of_the_module_does_not_allow_is_refused() {
    for (spec, place) in [
        (json!({"source": {}}), SourceKind::Directory),
        (json!({"source": {"file": ""}}), SourceKind::Directory),
        (json!({"source": {"configMap": {"name": "m"}}}), SourceKind::Directory),
        (json!({"source": {}, "serviceAccountName": "m"}), SourceKind::Cluster),
        (json!({"source": {"file": "g.wasm"}, "serviceAccountName": "m"}), SourceKind::Cluster),
        (
            json!({"source": {"file": "g.wasm", "configMap": {"name": "m"}}, "serviceAccountName": "m"}),
            SourceKind::Cluster,
        ),
    ] {
        let error = settings("m", &spec, place).unwrap_err();
        assert!(error.starts_with("spec.source"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn module_whose_name_is_no_label_is_refused() {
    for name in ["", "UPPER", "a.b", "-a", "a-", &"a".repeat(64)] {
        let error =
            settings(name, &json!({"source": {"file": "g"}}), SourceKind::Directory).unwrap_err();
        assert!(error.starts_with("metadata.name: "), "{error}");
    }
    assert!(
        settings(&"a".repeat(63), &json!({"source": {"file": "g"}}), SourceKind::Directory).is_ok()
    );
}

#[test]
fn unknown_field_and_wrong_type_are_refused_with_the_path_of_the_field() {
    refused(
        &json!({"source": {"configMap": {"nam": "m"}}}),
        SourceKind::Cluster,
        &expect!["spec.source.configMap.nam: unknown field `nam`, expected `name` or `key`"],
    );
    refused(
        &json!({"source": {"file": "g"}, "limits": {"maxObjects": "x"}}),
        SourceKind::Directory,
        &expect![[r#"spec.limits.maxObjects: invalid type: string "x", expected u32"#]],
    );
    refused(
        &json!({"source": {"file": "g"}, "rollOut": {"strategy": "Manual"}}),
        SourceKind::Directory,
        &expect![
            "spec.rollOut: unknown field `rollOut`, expected one of `source`, `serviceAccountName`, `allowedCRDGroups`, `crds`, `parameters`, `resyncPeriod`, `manageStatus`, `runResult`, `limits`, `selector`, `namespaces`, `allowCrossNamespace`, `allowFinalizers`, `secretNames`, `valueSources`, `paused`, `policy`, `rollout`"
        ],
    );
    refused(&json!({}), SourceKind::Directory, &expect!["spec: missing field `source`"]);
    let other = json!({"apiVersion": "v1", "kind": "Pod"});
    expect![
        "expected apiVersion: innkeeper.dev/v1alpha1, kind: Module, found apiVersion: v1, kind: Pod"
    ]
    .assert_eq(&Module::from_value(&other).unwrap_err().to_string());
}

#[test]
fn duration_and_quantity_are_read_or_refused() {
    let duration = |text| parse_duration(text).map(|duration| duration.as_millis());
    assert_eq!(duration("30s"), Some(30_000));
    assert_eq!(duration("1h30m"), Some(5_400_000));
    assert_eq!(duration("250ms"), Some(250));
    assert_eq!(duration("0s"), Some(0));
    assert_eq!(duration("0"), Some(0));
    for bad in
        ["", "s", "30", "-30s", "1.5h", "30 s", "30sec", "1d", "30s1h", "99999999999999999999s"]
    {
        assert_eq!(duration(bad), None, "{bad}");
    }
    let bytes = |text: &str| Quantity::Text(text.into()).bytes();
    assert_eq!(bytes("64Mi"), Some(64 << 20));
    assert_eq!(bytes("1k"), Some(1000));
    assert_eq!(bytes("12"), Some(12));
    for bad in ["", "Mi", "1.5Mi", "-1", "1Ti", "99999999999999999999", "99999999999999999Gi"] {
        assert_eq!(bytes(bad), None, "{bad}");
    }
}

#[test]
fn a_rollout_is_read_within_bounds() {
    let of = |rollout: Value| {
        let spec = json!({"source": {"configMap": {"name": "m"}}, "serviceAccountName": "m",
            "rollout": rollout});
        settings("m", &spec, SourceKind::Cluster).map(|settings| settings.rollout)
    };
    let manual = json!({"strategy": "Manual", "maxDeletions": 2, "maxChangedPercent": 50,
        "maxFailures": 3, "maxNewlyDenied": 4, "rollbackWindow": "90s"});
    assert_eq!(
        of(manual).unwrap(),
        Rollout {
            strategy: Strategy::Manual,
            deletions_max: 2,
            changed_percent_max: 50,
            failures_max: 3,
            newly_denied_max: 4,
            rollback_window: Duration::from_secs(90),
        }
    );
    assert_eq!(of(json!({"strategy": "Immediate"})).unwrap().strategy, Strategy::Immediate);
    let error = of(json!({"maxChangedPercent": 101, "rollbackWindow": "25h"})).unwrap_err();
    assert_eq!(
        error,
        "spec.rollout.rollbackWindow: 25h is too long: at most 24h\nspec.rollout.maxChangedPercent: 101 is out of bounds: from 0 to 100"
    );
}
