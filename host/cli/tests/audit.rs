//! `innkeeper audit` on files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::process::Output;

use expect_test::{Expect, expect};
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

use support::{Files, failed, innkeeper, text};

const VERDICT: &str = r#"{"allowed":false,"message":"it is bad","reason":"Invalid"}"#;

/// What a call prints on standard output, which ends with this status.
fn printed(arguments: &[&str], status: i32, expected: &Expect) -> Output {
    let output = innkeeper(arguments);
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    expected.assert_eq(&text(&output.stdout));
    output
}

fn config_map(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{key: {value}}}\n---\n"
    )
}

/// A policy that denies what has the text `bad`, under this name.
fn denying(name: &str) -> Vec<u8> {
    let manifest = json!({"name": name, "policy": {"kind": "Validate", "rules": [
        {"groups": [""], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}]}});
    Tiny::deciding("bad", VERDICT).manifest(&manifest.to_string()).component()
}

#[test]
fn audit_of_files_shows_what_policies_would_deny_and_ends_with_one() {
    let files = Files::new();
    let guest = files.write("guest.wasm", denying("tiny"));
    let all = [("web", "one", "good"), ("web", "two", "bad"), ("app", "three", "bad")];
    let all: String = all.iter().map(|(ns, name, value)| config_map(ns, name, value)).collect();
    let objects = files.write("objects.yaml", all + &config_map("kube-system", "x", "bad"));
    let output = printed(
        &["audit", &guest, "-f", &objects],
        1,
        &expect![[r#"
            NAMESPACE  KIND       NAME   POLICY  RESULT  MESSAGE
            app        ConfigMap  three  tiny    denied  it is bad
            web        ConfigMap  two    tiny    denied  it is bad
        "#]],
    );
    assert_eq!(text(&output.stderr), "objects: 1 passed, 2 denied, 0 warned, 0 failed\n");
    let output = innkeeper(&["audit", &guest, "-f", &objects, "-n", "app", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(
        found,
        json!({"notes": [], "summary": {"passed": 0, "denied": 1, "warned": 0, "failed": 0},
            "results": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "app",
                "name": "three", "policy": "tiny", "result": "denied", "reason": "Invalid",
                "message": "it is bad"}]})
    );
}

#[test]
fn audit_of_a_folder_with_several_policies_takes_their_modules() {
    // Given two policies, one of which has a Module that selects a namespace by its label.
    let files = Files::new();
    let (one, two) =
        (files.write("one.wasm", denying("one")), files.write("two.wasm", denying("two")));
    let folder = files.0.path().join("objects");
    std::fs::create_dir(&folder).unwrap();
    let module = "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {name: two}\nspec:\n  source: {}\n  policy:\n    namespaceSelector: {matchLabels: {env: test}}\n---\n";
    let namespaces = "apiVersion: v1\nkind: Namespace\nmetadata: {name: web, labels: {env: test}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n";
    std::fs::write(folder.join("a.yaml"), format!("{module}{namespaces}")).unwrap();
    let objects = config_map("web", "a", "bad") + &config_map("app", "b", "bad");
    std::fs::write(folder.join("b.yml"), objects).unwrap();
    std::fs::write(folder.join("notes.txt"), "bad").unwrap();
    let folder = folder.to_str().unwrap();
    printed(
        &["audit", &one, &two, "-f", folder],
        1,
        &expect![[r#"
            NAMESPACE  KIND       NAME  POLICY  RESULT  MESSAGE
            app        ConfigMap  b     one     denied  it is bad
            web        ConfigMap  a     one     denied  it is bad
            web        ConfigMap  a     two     denied  it is bad
        "#]],
    );
    printed(
        &["audit", &one, &two, "-f", folder, "--module", "two"],
        1,
        &expect![[r#"
            NAMESPACE  KIND       NAME  POLICY  RESULT  MESSAGE
            web        ConfigMap  a     two     denied  it is bad
        "#]],
    );
}

#[test]
fn audit_without_findings_ends_with_zero_and_a_failed_review_with_three() {
    let files = Files::new();
    let objects = files.write("objects.yaml", config_map("web", "one", "good"));
    let guest = files.write("guest.wasm", denying("tiny"));
    let output = printed(&["audit", &guest, "-f", &objects], 0, &expect![""]);
    assert_eq!(text(&output.stderr), "objects: 1 passed, 0 denied, 0 warned, 0 failed\n");
    let trap = Tiny::policy(ALLOWED).review_wat("unreachable").component();
    let trap = files.write("trap.wasm", trap);
    let output = innkeeper(&["audit", &trap, "-f", &objects]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(text(&output.stdout).contains("failed  the guest trapped"), "{output:?}");
}

#[test]
fn messages_of_a_hostile_policy_stay_short_lines() {
    let files = Files::new();
    let objects = files.write("objects.yaml", config_map("web", "one", "good"));
    let message = "\u{1b}[2J\nfake   row\u{202e}".repeat(60_000);
    let verdict = json!({"allowed": false, "message": message}).to_string();
    let guest = files.write("guest.wasm", Tiny::policy(&verdict).component());
    let output = innkeeper(&["audit", &guest, "-f", &objects]);
    assert_eq!(output.status.code(), Some(1), "{:?}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert_eq!(shown.lines().count(), 2);
    assert!(shown.len() < 1_400 && shown.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn files_and_options_that_cannot_be_used_end_with_two() {
    let files = Files::new();
    let folder = files.0.path().to_str().unwrap().to_owned();
    let hidden: &[(&str, &str)] = &[(&folder, "DIR")];
    let guest = files.write("guest.wasm", denying("tiny"));
    let objects = files.write("objects.yaml", config_map("web", "one", "good"));
    let modules = "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {name: x}\nspec: {source: {}, policy: {}}\n";
    let modules = files.write("modules.yaml", modules);
    let other = files.write("other.wasm", denying("other"));
    let reconciler = files.write("reconciler.wasm", Tiny::default().component());
    std::fs::create_dir(files.0.path().join("empty")).unwrap();
    let empty = files.0.path().join("empty").to_str().unwrap().to_owned();
    for (arguments, expected) in [
        (
            vec!["audit", &guest],
            expect![[r#"
                innkeeper: give the objects to review with -f
            "#]],
        ),
        (
            vec!["audit", "-f", &objects],
            expect![[r#"
                innkeeper: give the components of the policies that are to review the files
            "#]],
        ),
        (
            vec!["audit", &guest, "-f", &empty],
            expect![[r#"
                innkeeper: the folder DIR/empty has no file *.yaml, *.yml or *.json
            "#]],
        ),
        (
            vec!["audit", &reconciler, "-f", &objects],
            expect![[r#"
                innkeeper: DIR/reconciler.wasm: the guest tiny has no policy
            "#]],
        ),
        (
            vec!["audit", &guest, &other, "-f", &objects, "-f", &modules],
            expect![[r#"
                innkeeper: DIR/modules.yaml, document 1: the Module x belongs to none of the components; give it the name of a guest, or spec.source.file
            "#]],
        ),
        (
            vec!["audit", &guest, &guest, "-f", &objects],
            expect![[r#"
                innkeeper: two components are of the policy tiny: give one of them
            "#]],
        ),
    ] {
        failed(&arguments, 2, hidden, &expected);
    }
}
