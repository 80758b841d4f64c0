use innkeeper_contract::Kind;
use innkeeper_modules::module::PolicyMode;
use innkeeper_modules::{Module, SourceKind};
use innkeeper_sandbox::Limits;

use super::*;

fn manifest() -> Manifest {
    serde_json::from_value(json!({
        "name": "labels", "version": "1.0.0",
        "reads": [{"apiVersion": "v1", "kind": "Namespace", "plural": "namespaces", "scope": "Cluster"}],
        "parametersSchema": {"type": "object"},
        "policy": {"kind": "Validate", "rules": [
            {"groups": ["apps"], "resources": ["deployments"], "operations": ["CREATE", "UPDATE"]}]},
    }))
    .unwrap()
}

fn settings(spec: &Value) -> ValidatedSpec {
    let mut spec = spec.clone();
    spec["source"] = json!({"configMap": {"name": "labels"}});
    spec["serviceAccountName"] = json!("labels");
    if spec["policy"].is_null() {
        spec["policy"] = json!({});
    }
    let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "labels"}, "spec": spec});
    let module = Module::from_value(&module).unwrap();
    ValidatedSpec::new(&module, SourceKind::Cluster, Limits::default(), None).unwrap()
}

fn whole_spec() -> Value {
    json!({
        "parameters": {"labels": ["team"], "ratio": 0.1},
        "namespaces": ["shop"], "secretNames": ["s"], "allowFinalizers": true,
        "limits": {"timeout": "1500ms", "memory": "16Mi"},
        "policy": {"mode": "Warn", "failurePolicy": "Ignore", "background": false,
            "objectSelector": {"matchLabels": {"tier": "web"}},
            "overrides": [{"namespaces": {"key": "env", "operator": "Exists"}, "mode": "Audit"}]},
    })
}

fn record_with(manifest: &Manifest, spec: &Value, digest: &str) -> PolicyRecord {
    let digest = Digest::of(digest.as_bytes());
    PolicyRecord::new("labels", "uid-1", digest, manifest, &settings(spec)).unwrap()
}

fn record() -> PolicyRecord {
    record_with(&manifest(), &whole_spec(), "a")
}

/// A ConfigMap as the API server gives it.
fn object(config_map: &Value) -> Object {
    let mut config_map = config_map.clone();
    config_map["metadata"]["uid"] = json!("uid-2");
    config_map["metadata"]["resourceVersion"] = json!("7");
    let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
    Object::decode(&kind, &config_map.to_string(), None).unwrap()
}

/// What is wrong with the record after a change of its ConfigMap.
fn refused(change: impl FnOnce(&mut Value)) -> RecordError {
    let mut config_map = record().config_map("innkeeper-system").unwrap();
    change(&mut config_map);
    PolicyRecord::read(&object(&config_map)).unwrap_err()
}

/// The same after a change of the record in it.
fn refused_record(change: impl FnOnce(&mut Value)) -> RecordError {
    refused(|config_map| {
        let text = config_map["data"]["record"].as_str().unwrap();
        let mut record: Value = serde_json::from_str(text).unwrap();
        change(&mut record);
        config_map["data"]["record"] = record.to_string().into();
    })
}

#[test]
fn record_survives_a_round_trip() {
    for spec in [json!({}), whole_spec()] {
        let record = record_with(&manifest(), &spec, "a");
        let config_map = record.config_map("innkeeper-system").unwrap();
        assert_eq!(config_map["metadata"]["name"], "innkeeper-policy-labels");
        let read = PolicyRecord::read(&object(&config_map)).unwrap();
        assert_eq!((&read, read.id()), (&record, record.id()));
        assert_eq!(read.settings.limits.limits(), settings(&spec).limits);
    }
}

#[test]
fn id_changes_with_digest_settings_and_manifest() {
    let mut newer = manifest();
    newer.version = "1.0.1".to_owned();
    let mut spec = whole_spec();
    spec["policy"]["mode"] = json!("Enforce");
    let mut other_uid = record();
    other_uid.module_uid = "uid-2".to_owned();
    let ids = [
        record().id(),
        record_with(&manifest(), &whole_spec(), "b").id(),
        record_with(&manifest(), &spec, "a").id(),
        record_with(&newer, &whole_spec(), "a").id(),
        other_uid.id(),
    ];
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    assert!(ids.iter().all(|id| id.len() == 16), "{ids:?}");
    assert_eq!(record().id(), record().id());
}

#[test]
fn record_is_of_a_policy_that_its_module_allows_only() {
    let mut no_policy = manifest();
    no_policy.policy = None;
    let digest = Digest::of(b"a");
    let allowed = settings(&json!({}));
    assert_eq!(PolicyRecord::new("labels", "u", digest, &no_policy, &allowed), None);
    let not_allowed = ValidatedSpec { policy: None, ..allowed };
    assert_eq!(PolicyRecord::new("labels", "u", digest, &manifest(), &not_allowed), None);
}

#[test]
fn component_of_a_record_describes_itself_so_up_to_the_kinds_of_parameters() {
    let record = record();
    assert!(record.describes(&manifest()));
    let mut other = manifest();
    other.reads.clear();
    assert!(!record.describes(&other), "it would read other kinds");
    other.kind_parameters = serde_json::from_value(json!([
        {"parameter": "kinds", "role": "Reads"}]))
    .unwrap();
    assert!(record.describes(&other), "the parameters name the kinds");
    other.policy = None;
    assert!(!record.describes(&other));
}

#[test]
fn webhooks_have_the_modes_of_the_module_and_of_its_overrides() {
    let settings = record().settings;
    let modes = [0, 1, 2, usize::MAX].map(|webhook| settings.mode(webhook));
    assert_eq!(modes, [Some(PolicyMode::Warn), Some(PolicyMode::Audit), None, None]);
}

#[test]
fn record_of_a_foreign_name_is_refused() {
    let foreign = RecordError::ForeignName { module: "labels".to_owned() };
    assert_eq!(refused(|map| map["metadata"]["name"] = json!("innkeeper-policy-other")), foreign);
    assert_eq!(
        refused(|map| map["metadata"]["labels"] = json!({"innkeeper.dev/policy": "other"})),
        foreign
    );
    assert_eq!(refused(|map| map["metadata"]["labels"] = json!({})), foreign);
    let other = refused_record(|record| record["module"] = json!("other"));
    assert_eq!(other, RecordError::ForeignName { module: "other".to_owned() });
}

#[test]
fn record_with_an_unknown_format_is_refused_with_the_remedy() {
    let error = refused_record(|record| {
        *record = json!({"format": 2, "something": "else"});
    });
    assert_eq!(error, RecordError::Format { format: 2 });
    assert!(error.to_string().contains("the same version of the host"), "{error}");
}

#[test]
fn record_beyond_its_limits_is_neither_written_nor_read() {
    let mut spec = whole_spec();
    spec["parameters"] = json!({"long": "x".repeat(RECORD_BYTES_MAX)});
    let too_large = record_with(&manifest(), &spec, "a").config_map("x").unwrap_err();
    assert!(matches!(too_large, RecordError::TooLarge { .. }), "{too_large}");
    let read = refused(|map| map["data"]["record"] = " ".repeat(RECORD_BYTES_MAX + 1).into());
    assert_eq!(read, RecordError::TooLarge { bytes: RECORD_BYTES_MAX + 1 });
    assert_eq!(refused(|map| map["data"] = json!({"other": "x"})), RecordError::Missing);
}

#[test]
fn record_that_no_leader_writes_is_refused_with_what_is_wrong() {
    type Change = fn(&mut Value);
    let changes: [(Change, &str); 9] = [
        (|record| record["extra"] = json!(1), "unknown field `extra`"),
        (|record| record["digest"] = json!("abc"), "64 hex digits"),
        (|record| record["manifest"]["policy"] = Value::Null, "has no policy"),
        (
            |record| record["manifest"]["policy"]["rules"][0]["operations"] = json!(["CONNECT"]),
            "CONNECT is not reviewed",
        ),
        (|record| record["manifest"]["name"] = json!("\u{1b}[2J"), "name"),
        (|record| record["settings"]["limits"]["timeMs"] = json!(20_001), "timeMs: 20001 is more"),
        (|record| record["settings"]["limits"]["memoryBytes"] = json!(u64::MAX), "memoryBytes"),
        (|record| record["settings"]["policy"]["mode"] = json!("Off"), "unknown variant `Off`"),
        (
            |record| {
                record["settings"]["policy"]["matchConditions"] =
                    json!([{"name": "innkeeper.dev/x", "expression": "true"}]);
            },
            "belongs to the host",
        ),
    ];
    for (change, part) in changes {
        let error = refused_record(change).to_string();
        assert!(error.contains(part) && error.len() < 1_200, "{part}: {error}");
        assert!(error.chars().all(|c| !c.is_control()), "{error:?}");
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(matches!(
        refused(|map| map["data"]["record"] = nested.into()),
        RecordError::Invalid(_)
    ));
}
