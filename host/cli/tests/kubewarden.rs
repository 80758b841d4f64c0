//! Policies of Kubewarden in the commands. Needs the guests: `cargo xtask guests` builds them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use expect_test::expect;
use innkeeper_core::review_scope::NEVER_REVIEWED_GROUPS;
use innkeeper_tiny_guests::kubewarden::{Kubewarden, METADATA};
use serde_json::{Value, json};

use support::{Files, component, done, failed, innkeeper, text};

const CONFIG_MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: web, labels: {team: a}}\n";

/// Reviews objects with a policy: the exit status and standard output.
fn review(guest: &str, objects: &str, parameters: &str) -> (i32, String) {
    let files = Files::new();
    let objects = files.write("objects.yaml", objects);
    let output =
        innkeeper(&["review", guest, "-f", &objects, "--parameters", parameters, "--user", "ann"]);
    let lines = text(&output.stdout) + &text(&output.stderr);
    (output.status.code().unwrap(), lines)
}

#[test]
fn inspect_of_a_kubewarden_policy_prints_its_metadata() {
    let guest = component("kubewarden-hosts");
    let printed = done(&["inspect", &guest]);
    for line in [
        "kubewarden-hosts 0.1.0",
        "  contract    Kubewarden v1 (waPC)",
        "  title       Kubewarden hosts",
        "  license     Apache-2.0",
        "              v1 Namespace (namespaces, cluster-scoped)",
        "  policy      validates",
        "  rules       CREATE, UPDATE of ingresses in networking.k8s.io (v1)",
    ] {
        assert!(printed.lines().any(|one| one == line), "{line}\n{printed}");
    }
    assert!(printed.contains("networking.k8s.io/v1 Ingress (ingresses"), "{printed}");
    let json: Value = serde_json::from_str(&done(&["inspect", &guest, "-o", "json"])).unwrap();
    assert_eq!(json["kubewarden"]["protocolVersion"], "v1");
    assert_eq!(json["kubewarden"]["contextAwareResources"][1]["kind"], "Namespace");
}

#[test]
fn texts_of_metadata_are_printed_in_one_visible_line() {
    let mut metadata: Value = serde_json::from_str(METADATA).unwrap();
    metadata["annotations"]["io.kubewarden.policy.author"] = json!("a\u{1b}[31m\nb");
    let files = Files::new();
    let policy = Kubewarden::default().metadata(metadata.to_string()).module();
    let printed = done(&["inspect", &files.write("policy.wasm", policy)]);
    let author = printed.lines().find(|line| line.starts_with("  author")).unwrap();
    assert!(author.ends_with('b') && !author.contains('\u{1b}'), "{author:?}");
}

#[test]
fn policy_built_with_the_sdk_allows_denies_and_warns() {
    let guest = component("kubewarden-labels");
    let settings = r#"{"labels":["team"]}"#;
    let (status, printed) = review(&guest, CONFIG_MAP, settings);
    assert_eq!(status, 0, "{printed}");
    let (status, printed) = review(&guest, CONFIG_MAP, r#"{"labels":["team","tier"]}"#);
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains(r#"these labels are missing: ["tier"]"#), "{printed}");
    let files = Files::new();
    let objects = files.write("objects.yaml", CONFIG_MAP);
    let printed = done(&[
        "review",
        &guest,
        "-f",
        &objects,
        "--parameters",
        settings,
        "--operation",
        "DELETE",
    ]);
    assert!(printed.contains("labels are not checked"), "{printed}");
}

#[test]
fn settings_that_the_policy_refuses_end_the_command_with_its_reason() {
    let files = Files::new();
    let objects = files.write("objects.yaml", CONFIG_MAP);
    let guest = component("kubewarden-labels");
    failed(
        &["review", &guest, "-f", &objects],
        2,
        &[],
        &expect![[r#"
            innkeeper: the guest requires parameters: spec.parameters: the policy refuses them: name at least one label in `labels`; --parameters gives them, or spec.parameters of a Module among the objects
        "#]],
    );
    let unknown = ["review", &guest, "-f", &objects, "--parameters", "{oops: 1}"];
    let output = innkeeper(&unknown);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("the policy refuses them: "), "{error}");
    assert!(error.contains("unknown field `oops`") && error.lines().count() == 1, "{error}");
}

#[test]
fn policy_built_with_the_sdk_changes_an_object() {
    let guest = component("kubewarden-defaults");
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: web, labels: {a: b}}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - {name: one, image: 'example.com/one:1'}\n      - {name: two, image: 'example.com/two:1', securityContext: {readOnlyRootFilesystem: false}}\n";
    let files = Files::new();
    let objects = files.write("objects.yaml", deployment);
    let json = done(&["review", &guest, "-f", &objects, "-o", "json"]);
    assert!(json.contains("/spec/template/spec/containers/0/securityContext"), "{json}");
    assert!(!json.contains("containers/1"), "{json}");
    // The changed object needs no more changes.
    let right =
        deployment.replace("one:1'}", "one:1', securityContext: {readOnlyRootFilesystem: true}}");
    let objects = files.write("right.yaml", right);
    let json = done(&["review", &guest, "-f", &objects, "-o", "json"]);
    assert!(!json.contains("securityContext"), "{json}");
}

/// An Ingress with a host.
fn ingress(namespace: &str, name: &str, host: &str) -> String {
    format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}, namespace: {namespace}}}\nspec: {{rules: [{{host: {host}}}]}}\n"
    )
}

#[test]
fn policy_built_with_the_sdk_reads_other_objects() {
    let guest = component("kubewarden-hosts");
    let namespaces = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web, labels: {public: 'yes'}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {public: 'yes'}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: inner}\n";
    let objects = |ingresses: &[String]| format!("{namespaces}{}", ingresses.concat());
    let same = [ingress("web", "one", "a.example"), ingress("shop", "two", "a.example")];
    let (status, printed) = review(&guest, &objects(&same), "{}");
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains("the host a.example belongs to shop/two"), "{printed}");
    assert!(printed.contains("the host a.example belongs to web/one"), "{printed}");
    // The other one is in another namespace.
    let (status, printed) = review(&guest, &objects(&same), "{scope: Namespace}");
    assert_eq!(status, 0, "{printed}");
    let (status, printed) = review(&guest, &objects(&[ingress("inner", "x", "b")]), "{}");
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains("the namespace inner has no label public"), "{printed}");
    // A read that fails is no verdict.
    let (status, printed) = review(&guest, &objects(&[ingress("missing", "x", "b")]), "{}");
    assert_eq!(status, 3, "{printed}");
    let error = "Cannot find v1/Namespace named 'missing' inside of namespace 'None'";
    assert!(printed.contains(error), "{printed}");
}

#[test]
fn policy_that_calls_what_is_not_offered_fails_with_the_name_of_the_call() {
    let guest = component("kubewarden-images");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: web}\nspec:\n  containers: [{name: one, image: 'example.com/one:1'}]\n";
    for (ask, call) in [
        ("Digest", "kubewarden/oci/v1/manifest_digest"),
        ("Address", "kubewarden/net/v1/dns_lookup_host"),
        ("Rights", "kubewarden/kubernetes/can_i"),
    ] {
        let (status, printed) = review(&guest, pod, &format!("{{ask: {ask}}}"));
        assert_eq!(status, 3, "{ask}: {printed}");
        assert!(printed.contains(&format!("host call {call} is not offered")), "{printed}");
    }
}

#[test]
fn rules_leave_out_every_group_that_no_manifest_may_have() {
    let mut metadata: Value = serde_json::from_str(METADATA).unwrap();
    let groups = NEVER_REVIEWED_GROUPS.iter().chain(&["apps"]).collect::<Vec<_>>();
    metadata["rules"][0]["apiGroups"] = json!(groups);
    metadata["rules"][0]["resources"] = json!(["deployments"]);
    let files = Files::new();
    let policy = Kubewarden::default().metadata(metadata.to_string()).module();
    let printed = done(&["inspect", &files.write("policy.wasm", policy)]);
    let rules = "  rules       CREATE, UPDATE of deployments in apps (v1)";
    assert!(printed.lines().any(|line| line == rules), "{printed}");
}

#[test]
fn policy_in_rego_is_refused_by_name() {
    let files = Files::new();
    let metadata = METADATA.replace("{\"protocol", "{\"executionMode\":\"opa\",\"protocol");
    let policy = Kubewarden::default().metadata(metadata).module();
    let output = innkeeper(&["inspect", &files.write("policy.wasm", policy)]);
    let error = text(&output.stderr);
    assert!(error.contains("executionMode is opa: policies in Rego do not run here"), "{error}");
}
