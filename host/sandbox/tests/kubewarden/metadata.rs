//! The metadata of policies.

use expect_test::expect;
use innkeeper_contract::Operation;
use innkeeper_sandbox::{Interruption, Limits, LoadError};
use serde_json::{Value, json};

use super::guests::kubewarden::{Kubewarden, METADATA};
use super::{Load, refused};

/// The metadata of the tests with another member.
fn with(member: &str, value: Value) -> Kubewarden {
    let mut metadata: Value = serde_json::from_str(METADATA).unwrap();
    metadata[member] = value;
    Kubewarden::default().metadata(metadata.to_string())
}

#[test]
fn core_module_without_metadata_is_refused_with_the_remedy() {
    refused(
        &Kubewarden::default().sections(&[]),
        "NotAComponent",
        &expect![
            "not a WebAssembly component: this is a core module without the section \
             io.kubewarden.metadata of a Kubewarden policy; make a component of it (`wasm-tools \
             component new`), or add the section (`kwctl annotate`)"
        ],
    );
}

#[test]
fn policies_in_rego_and_programs_of_wasi_are_refused_by_name() {
    refused(
        &with("executionMode", json!("opa")),
        "InvalidMetadata",
        &expect![
            "the Kubewarden policy cannot run: its metadata cannot be used: its executionMode is \
             opa: policies in Rego do not run here; write the policy in another language, or as a \
             ValidatingAdmissionPolicy"
        ],
    );
    for (mode, what) in [
        ("gatekeeper", "gatekeeper: policies in Rego do not run here"),
        ("wasi", "wasi: programs of WASI do not run here"),
        ("other", "\"other\"; only kubewarden-wapc runs here"),
    ] {
        let error = with("executionMode", json!(mode)).load().unwrap_err().to_string();
        assert!(error.contains(&format!("its executionMode is {what}")), "{error}");
    }
}

#[test]
fn metadata_that_the_host_cannot_follow_is_refused() {
    for (member, value, what) in [
        ("policyType", json!("raw"), "its policyType is \"raw\""),
        ("protocolVersion", json!("v2"), "the protocol \"v2\""),
        ("protocolVersion", json!(null), "invalid type: null, expected a string"),
        ("mutating", json!("no"), "(at mutating)"),
        ("rules", json!([{"apiGroups": []}]), "missing field `apiVersions`"),
        ("rules", json!(vec![1; 1_000]), "(at rules[0])"),
        ("annotations", json!({}), "no annotation io.kubewarden.policy.title"),
        ("annotations", json!({"io.kubewarden.policy.title": "**"}), "no letter or digit"),
    ] {
        let error = with(member, value.clone()).load().unwrap_err().to_string();
        assert!(error.contains(what), "{member} {value}: {error}");
    }
    let rule = |operation| {
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
            "operations": [operation]}])
    };
    let error = with("rules", rule("PATCH")).load().unwrap_err().to_string();
    assert!(error.contains("a rule names the operation \"PATCH\""), "{error}");
}

#[test]
fn every_operation_is_every_reviewed_one_with_a_warning() {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
        "operations": ["*"]});
    let guest = with("rules", json!([rule, rule])).load().unwrap();
    let policy = guest.manifest().policy.as_ref().unwrap();
    let operations: Vec<&str> = policy.rules[0].operations.iter().map(|one| one.as_str()).collect();
    assert_eq!(operations, ["CREATE", "UPDATE", "DELETE"]);
    let [warning] = guest.describe_warnings() else { panic!("{:?}", guest.describe_warnings()) };
    assert!(warning.contains("do not review CONNECT"), "{warning}");
}

#[test]
fn rules_leave_out_what_is_never_sent_to_policies_with_a_warning() {
    let rule = |groups: &[&str], operations: &[&str]| {
        json!({"apiGroups": groups, "apiVersions": ["v1"], "resources": ["*"],
            "operations": operations})
    };
    let rules = json!([
        rule(&["", "coordination.k8s.io"], &["CREATE", "CONNECT"]),
        rule(&["admissionregistration.k8s.io"], &["CREATE"]),
        rule(&["apps"], &["CONNECT"]),
    ]);
    let guest = with("rules", rules).load().unwrap();
    let [rule_left] = &*guest.manifest().policy.as_ref().unwrap().rules else { panic!() };
    assert_eq!(rule_left.groups, [""]);
    assert_eq!(rule_left.operations, [Operation::Create]);
    let never =
        |group| format!("requests of {group} are never sent to policies: its rules leave it out");
    let warnings = [
        "policies do not review CONNECT: its rules leave it out".to_owned(),
        never("coordination.k8s.io"),
        never("admissionregistration.k8s.io"),
    ];
    assert_eq!(guest.describe_warnings(), warnings);
    let rules = json!([rule(&["admissionregistration.k8s.io"], &["CREATE"])]);
    let error = with("rules", rules).load().unwrap_err();
    assert_eq!(error.reason(), "InvalidMetadata");
    assert!(error.to_string().contains(&never("admissionregistration.k8s.io")), "{error}");
}

#[test]
fn host_calls_that_are_not_offered_are_warned_of() {
    let offered = ["kubernetes/get_resource", "kubernetes/list_resources_by_namespace"];
    for capabilities in [json!(null), json!([]), json!(offered)] {
        let guest = with("hostCapabilities", capabilities).load().unwrap();
        assert_eq!(guest.describe_warnings(), [""; 0]);
    }
    let capabilities = json!([offered[0], "kubernetes/can_i", "oci/v2/verify"]);
    let guest = with("hostCapabilities", capabilities).load().unwrap();
    let warning =
        "the policy makes host calls that are not offered: kubernetes/can_i, oci/v2/verify";
    assert_eq!(guest.describe_warnings(), [warning]);
    let error = with("hostCapabilities", json!(vec!["a"; 257])).load().unwrap_err().to_string();
    assert!(error.contains("its hostCapabilities are 257, the limit is 256"), "{error}");
}

#[test]
fn metadata_of_any_bytes_is_refused_before_the_module_is_compiled() {
    let large = format!("{}{}", " ".repeat(10 << 20), METADATA);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let annotations: Vec<String> = (0..1_000).map(|index| format!("\"a{index}\":\"\",")).collect();
    let annotations = annotations.concat();
    let many = METADATA.replace("\"annotations\":{", &format!("\"annotations\":{{{annotations}"));
    for (metadata, what) in [
        (large.as_bytes(), "the limit is 262144"),
        (deep.as_bytes(), "invalid type: sequence"),
        (many.as_bytes(), "its annotations are 1002, the limit is 256"),
        (b"".as_slice(), "EOF"),
        (b"\xff\xfe", "expected value"),
        (b"rules: []\nmutating: false\n", "expected value"),
        (b"{} and more", "missing field"),
        (format!("{METADATA} and more").as_bytes(), "trailing characters"),
    ] {
        let error = Kubewarden::default().metadata(metadata).load().unwrap_err();
        assert_eq!(error.reason(), "InvalidMetadata", "{what}");
        let text = error.to_string();
        assert!(text.contains(what) && text.len() < 2_200, "{what}: {text}");
    }
    let twice = [METADATA.as_bytes(), METADATA.as_bytes()];
    let error = Kubewarden::default().sections(&twice).load().unwrap_err();
    assert!(error.to_string().contains("two sections io.kubewarden.metadata"), "{error}");
}

#[test]
fn module_that_is_cut_off_is_refused() {
    let module = Kubewarden::default().module();
    for length in [8, 9, 100, module.len() / 2, module.len() - 1] {
        let engine = super::engine(Interruption::Epoch);
        let error = engine.load(&module[..length], &Limits::default()).unwrap_err();
        assert!(
            matches!(error, LoadError::CompileFailed { .. } | LoadError::NotAComponent { .. }),
            "{length}: {error}"
        );
    }
}
