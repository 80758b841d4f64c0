//! `innkeeper review`. Needs the guests: `cargo xtask guests` builds them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::process::Output;

use expect_test::{Expect, expect};
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

use support::{Files, component, done, failed, innkeeper, text};

const MODULE: &str = "\
apiVersion: innkeeper.dev/v1alpha1
kind: Module
metadata: {name: labelled}
spec:
  source: {}
  policy: {}
  parameters:
    labels: [{name: team}, {name: tier, values: [back, front]}]
";

/// A Deployment with these labels.
fn deployment(name: &str, labels: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: web, labels: {labels}}}\n"
    )
}

const CONFIG_MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {a: b}}\ndata: {key: value}\n";

/// What a call prints on standard output, which ends with this status.
fn printed(arguments: &[&str], status: i32, expected: &Expect) -> Output {
    let output = innkeeper(arguments);
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    expected.assert_eq(&text(&output.stdout));
    output
}

/// A policy that changes ConfigMaps, with this verdict.
fn mutating(verdict: &Value) -> Vec<u8> {
    let manifest = json!({"name": "tiny", "policy": {"kind": "Mutate", "rules": [
        {"groups": [""], "resources": ["configmaps", "secrets"], "operations": ["CREATE"]}]}});
    Tiny::policy(&verdict.to_string()).manifest(&manifest.to_string()).component()
}

#[test]
fn review_prints_what_kubectl_shows() {
    let files = Files::new();
    let guest = component("required-labels");
    let objects = [
        deployment("right", "{team: shop, tier: front}"),
        deployment("wrong", "{tier: middle}"),
        deployment("none", "{}"),
    ];
    let objects = files.write("all.yaml", format!("{MODULE}---\n{}", objects.join("---\n")));
    let output = printed(
        &["review", &guest, "-f", &objects],
        1,
        &expect![[r#"
            CREATE Deployment web/right: allowed
            CREATE Deployment web/wrong: denied
              The request is invalid:
              * metadata.labels[team]: the label team is missing; add it
              * metadata.labels[tier]: the label tier is "middle"; set it with one of the values "back", "front"
            CREATE Deployment web/none: denied
              The request is invalid:
              * metadata.labels[team]: the label team is missing; add it
              * metadata.labels[tier]: the label tier is missing; add it with one of the values "back", "front"
        "#]],
    );
    assert_eq!(text(&output.stderr), "");
    printed(
        &["review", &guest, "-f", &objects, "--object", "web/right"],
        0,
        &expect![[r#"
            CREATE Deployment web/right: allowed
        "#]],
    );
}

#[test]
fn review_of_an_update_takes_the_stored_object_from_old() {
    let files = Files::new();
    let guest = component("required-labels");
    let new = files.write("new.yaml", format!("{MODULE}---\n{}", deployment("one", "{team: a}")));
    let old = files.write("old.yaml", deployment("one", "{team: b}"));
    printed(
        &["review", &guest, "-f", &new, "--old", &old],
        0,
        &expect![[r#"
            UPDATE Deployment web/one: allowed
              Warning: the label tier is missing; add it with one of the values "back", "front"
        "#]],
    );
    let folder = files.0.path().to_str().unwrap().to_owned();
    let other = files.write("other.yaml", deployment("two", "{}"));
    failed(
        &["review", &guest, "-f", &new, "--old", &other],
        2,
        &[(&folder, "DIR")],
        &expect![[r#"
            innkeeper: DIR/new.yaml, document 2: UPDATE needs the stored Deployment web/one: give it with --old
        "#]],
    );
}

#[test]
fn review_shows_the_changes_and_the_patch_of_a_mutating_policy() {
    let files = Files::new();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "value", "more": "x"},
        "metadata": {"name": "one", "namespace": "default", "labels": {"a": "c"}}});
    let guest = files.write(
        "guest.wasm",
        mutating(&json!({"allowed": true, "object": object,
        "auditAnnotations": {"changed": "twice"}})),
    );
    let objects = files.write("objects.yaml", CONFIG_MAP);
    printed(
        &["review", &guest, "-f", &objects],
        0,
        &expect![[r#"
            CREATE ConfigMap default/one: allowed, with changes
              changes .data.more
              changes .metadata.labels.a
              patch [{"op":"add","path":"/data/more","value":"x"},{"op":"replace","path":"/metadata/labels/a","value":"c"}]
              audit annotation changed: twice
        "#]],
    );
    let answer = done(&["review", &guest, "-f", &objects, "-o", "json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer[0]["result"], "allowed, with changes");
    assert_eq!(answer[0]["patch"][0]["path"], "/data/more");
}

#[test]
fn review_without_a_verdict_that_counts_fails_with_its_own_status() {
    let files = Files::new();
    let objects = files.write("objects.yaml", CONFIG_MAP);
    let renamed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}});
    let renamed = json!({"allowed": true, "object": renamed});
    let guests = [
        ("renames.wasm", mutating(&renamed)),
        ("fails.wasm", Tiny::policy(ALLOWED).decision(1, "no quota is known").component()),
        ("traps.wasm", Tiny::policy(ALLOWED).review_wat("unreachable").component()),
        ("empty.wasm", Tiny::policy("{}").component()),
    ];
    for ((name, guest), why) in guests.into_iter().zip([
        "the verdict changes metadata.",
        "no quota is known",
        "the guest trapped",
        "missing field `allowed`",
    ]) {
        let guest = files.write(name, guest);
        let output = innkeeper(&["review", &guest, "-f", &objects]);
        assert_eq!(output.status.code(), Some(3), "{name}: {output:?}");
        let shown = text(&output.stdout);
        assert!(shown.starts_with("CREATE ConfigMap default/one: failed\n  "), "{shown}");
        assert!(shown.contains(why), "{shown}");
    }
}

#[test]
fn golden_review_is_written_compared_and_differs_when_a_verdict_changes() {
    let files = Files::new();
    let guest = component("required-labels");
    let right = deployment("one", "{team: a, tier: back}");
    let objects = files.write("objects.yaml", format!("{MODULE}---\n{right}"));
    let golden = files.0.path().join("golden.txt");
    let golden = golden.to_str().unwrap();
    let given = ["review", &guest, "-f", &objects, "--golden", golden];
    let created = done(&[&given[..], &["--update"]].concat());
    assert!(created.ends_with("golden.txt created\n"), "{created}");
    assert_eq!(done(&given), "");
    let wrong = deployment("one", "{team: a}");
    files.write("objects.yaml", format!("{MODULE}---\n{wrong}"));
    let output = innkeeper(&given);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("-CREATE Deployment web/one: allowed\n"), "{output:?}");
    assert!(text(&output.stderr).contains("the review differs from "), "{output:?}");
    // A golden file may expect a denial.
    done(&[&given[..], &["--update"]].concat());
    assert_eq!(done(&given), "");
}

#[test]
fn review_refuses_what_it_cannot_use() {
    let files = Files::new();
    let policy = component("required-labels");
    let objects = files.write("objects.yaml", format!("{MODULE}---\n{CONFIG_MAP}"));
    failed(
        &["review", &policy, "-f", &objects],
        2,
        &[],
        &expect![[r#"
            innkeeper: no object in the files matches a rule of the policy, which reviews CREATE of namespaces, services, daemonsets, deployments, statefulsets, cronjobs, jobs
        "#]],
    );
    failed(
        &["review", &component("labels"), "-f", &objects],
        2,
        &[],
        &expect![[r#"
            innkeeper: the guest labels has no policy: run `innkeeper render` with it
        "#]],
    );
    let site = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: one}\n";
    let site = files.write("site.yaml", site);
    failed(
        &["review", &policy, "-f", &site, "--parameters", "{labels: [{name: a}]}"],
        2,
        &[],
        &expect![[r#"
            innkeeper: no object in the files matches a rule of the policy, which reviews CREATE of namespaces, services, daemonsets, deployments, statefulsets, cronjobs, jobs; the resource of example.com/v1 Site is not known: give it with --resource, or its CustomResourceDefinition with -f
        "#]],
    );
}

#[test]
fn rules_and_mode_of_the_module_count() {
    let files = Files::new();
    let policy = component("required-labels");
    let module = MODULE.replace(
        "policy: {}",
        "policy: {mode: Warn, rules: [{groups: [''], resources: [configmaps], operations: [CREATE]}]}\n  namespaces: [shop]",
    );
    let elsewhere = CONFIG_MAP.replace("name: one", "name: two, namespace: shop");
    let objects = files.write("all.yaml", format!("{module}---\n{CONFIG_MAP}---\n{elsewhere}"));
    let output = printed(
        &["review", &policy, "-f", &objects],
        1,
        &expect![[r#"
            CREATE ConfigMap default/one: not reviewed
              spec.namespaces of the Module leaves it out
            CREATE ConfigMap shop/two: denied
              The request is invalid:
              * metadata.labels[team]: the label team is missing; add it
              * metadata.labels[tier]: the label tier is missing; add it with one of the values "back", "front"
        "#]],
    );
    expect![[r#"
        innkeeper: note: spec.policy.mode of the Module labelled is Warn; this command shows each verdict as Enforce applies it
    "#]]
    .assert_eq(&text(&output.stderr));
}

#[test]
fn component_with_both_exports_is_reviewed_and_reads_other_objects() {
    let files = Files::new();
    let guest = component("reconciles-and-reviews");
    let site = "apiVersion: example.com/v1\nkind: Site\nmetadata: {name: one, namespace: web}\n";
    let objects = files.write("site.yaml", site);
    printed(
        &["review", &guest, "-f", &objects],
        1,
        &expect![[r#"
            CREATE Site web/one: denied
              Error from server (Forbidden): admission webhook "reconciles-and-reviews.policy.innkeeper.dev" denied the request: no Site one is allowed in web; add its name to the ConfigMap allowed
        "#]],
    );
    let allowed = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: allowed, namespace: web}\ndata: {one: ''}\n";
    let allowed = files.write("allowed.yaml", allowed);
    printed(
        &["review", &guest, "-f", &objects, "-f", &allowed],
        0,
        &expect![[r#"
            CREATE Site web/one: allowed
        "#]],
    );
    let rendered = done(&["render", &guest, "-f", &objects]);
    assert!(rendered.contains("  site: one\n"), "{rendered}");
}

#[test]
fn policy_that_echoes_its_request_sees_the_user_and_no_value_of_a_secret() {
    let files = Files::new();
    // Answers with the request itself as the reason of a failure.
    let echo = "(i32.store8 (i32.const 1100) (i32.const 1)) \
        (i32.store (i32.const 1104) (local.get $request)) \
        (i32.store (i32.const 1108) (local.get $length)) (return (i32.const 1100))";
    let manifest = json!({"name": "tiny", "policy": {"kind": "Validate", "rules": [
        {"groups": [""], "resources": ["secrets"], "operations": ["CREATE", "DELETE"]}]}});
    let guest = Tiny::policy(ALLOWED).manifest(&manifest.to_string()).review_wat(echo);
    let guest = files.write("echo.wasm", guest.component());
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: one}\nstringData: {password: hunter2}\ndata: {other: aHVudGVyMg==}\n";
    let secret = files.write("secret.yaml", secret);
    let seen = |more: &[&str]| -> Value {
        let given = ["review", &guest, "-f", &secret, "-o", "json"];
        let output = innkeeper(&[&given[..], more].concat());
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        for value in ["hunter2", "aHVudGVyMg"] {
            assert!(!text(&output.stdout).contains(value), "{output:?}");
        }
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        serde_json::from_str(answer[0]["message"].as_str().unwrap()).unwrap()
    };
    let request = seen(&["--user", "ann", "--group", "ops", "--dry-run"]);
    let user = json!({"username": "ann", "uid": "", "groups": ["ops", "system:authenticated"], "extra": {}});
    assert_eq!(request["user"], user);
    assert_eq!(request["options"]["dryRun"], json!(["All"]));
    assert_eq!(request["object"]["data"].as_object().unwrap().len(), 2);
    let request = seen(&["--operation", "delete"]);
    assert_eq!(
        (&request["object"], &request["oldObject"]["kind"]),
        (&Value::Null, &json!("Secret"))
    );
    let request = seen(&["--background"]);
    assert_eq!((&request["background"], &request["user"]["groups"]), (&json!(true), &json!([])));
}
