//! `innkeeper render` with a Module among the files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use expect_test::expect;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use support::{Files, component, done, failed, innkeeper, text};

const MODULE: &str = "\
apiVersion: innkeeper.dev/v1alpha1
kind: Module
metadata: {name: copies}
spec:
  source: {}
  allowCrossNamespace: true
  valueSources:
    - {kind: Secret, namespace: central, name: pull, toNamespaces: ['*']}
";

const PRIMARY: &str = "\
apiVersion: example.com/v1
kind: Site
metadata: {name: one, namespace: web}
";

/// A Secret whose values must appear nowhere.
const SOURCE: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: pull, namespace: central}
type: example.com/pull
data: {user: aHVudGVyMi11c2Vy}
stringData: {password: hunter2-password}
";

/// A guest that copies a Secret into its primary's namespace.
fn guest(files: &Files) -> String {
    let manifest = json!({"name": "tiny", "version": "1.0.0",
        "primary": {"apiVersion": "example.com/v1", "kind": "Site", "plural": "sites"},
        "owned": [{"kind": {"apiVersion": "v1", "kind": "Secret", "plural": "secrets"}}],
        "parametersSchema": {"properties": {"size": {"type": "integer"}}}});
    let desired = json!({"objects": [{
        "object": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy"}},
        "valuesFrom": [{"kind": "Secret", "namespace": "central", "name": "pull"}],
    }]});
    let tiny = Tiny::default().manifest(&manifest.to_string()).outcome(0, &desired.to_string());
    files.write("guest.wasm", tiny.component())
}

#[test]
fn render_with_a_module_copies_granted_values_as_digests() {
    let files = Files::new();
    let guest = guest(&files);
    let all = files.write("all.yaml", format!("{MODULE}---\n{PRIMARY}---\n{SOURCE}"));
    let output = innkeeper(&["render", &guest, "-f", &all]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stderr), "");
    expect![[r##"
        # outcome: complete
        ---
        apiVersion: v1
        data:
          password: d6d8903f44c075aa
          user: 517485be6866fb2c
        kind: Secret
        metadata:
          annotations:
            innkeeper.dev/copied-keys: '["password","user"]'
          name: copy
          namespace: web
        type: example.com/pull
    "##]]
    .assert_eq(&text(&output.stdout));
    for value in ["hunter2", "aHVudGVyMi"] {
        assert!(!text(&output.stdout).contains(value), "{output:?}");
    }
}

#[test]
fn render_without_a_module_says_how_to_give_one() {
    let files = Files::new();
    let guest = guest(&files);
    let objects = files.write("objects.yaml", format!("{PRIMARY}---\n{SOURCE}"));
    failed(
        &["render", &guest, "-f", &objects],
        1,
        &[],
        &expect![[r#"
            innkeeper: the operator would refuse the desired state: the guest gave Secret web/copy with values from Secret central/pull: the Module does not grant this source; add it to spec.valueSources of the Module; give the Module with -f to render with what it grants
        "#]],
    );
    let module = files.write("module.yaml", MODULE.replace("pull", "push"));
    failed(
        &["render", &guest, "-f", &objects, "-f", &module],
        1,
        &[],
        &expect![[r#"
            innkeeper: the operator would refuse the desired state: the guest gave Secret web/copy with values from Secret central/pull: the Module does not grant this source; add it to spec.valueSources of the Module
        "#]],
    );
}

#[test]
fn render_lists_the_objects_whose_values_are_missing() {
    let files = Files::new();
    let guest = guest(&files);
    let objects = files.write("objects.yaml", format!("{MODULE}---\n{PRIMARY}"));
    let answer = done(&["render", &guest, "-f", &objects, "-o", "json"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    expect![[r#"
        [
          {
            "message": "its value source Secret central/pull does not exist; create it",
            "object": "Secret web/copy",
            "reason": "ValueSourceMissing"
          }
        ]"#]]
    .assert_eq(&format!("{:#}", answer["missingValues"]));
}

#[test]
fn render_refuses_a_module_that_cannot_be_used() {
    let files = Files::new();
    let guest = guest(&files);
    let folder = files.0.path().to_str().unwrap().to_owned();
    let hidden = [(folder.as_str(), "DIR")];
    let objects = files.write("objects.yaml", PRIMARY);
    let two = MODULE.replace("name: copies", "name: others");
    let two = files.write("two.yaml", format!("{MODULE}---\n{two}"));
    failed(
        &["render", &guest, "-f", &objects, "-f", &two],
        1,
        &hidden,
        &expect![[r#"
            innkeeper: the files have several Modules (copies, others): give one of them
        "#]],
    );
    let reserved = files.write("module.yaml", MODULE.replace("central", "innkeeper-modules"));
    failed(
        &["render", &guest, "-f", &objects, "-f", &reserved],
        1,
        &hidden,
        &expect![[r#"
            innkeeper: DIR/module.yaml, document 1: Module copies: spec.valueSources[0].namespace: innkeeper-modules belongs to Innkeeper itself: the host copies nothing from it; name another namespace
        "#]],
    );
}

#[test]
fn render_takes_the_parameters_of_the_module() {
    let files = Files::new();
    let guest = guest(&files);
    let folder = files.0.path().to_str().unwrap().to_owned();
    let hidden = [(folder.as_str(), "DIR")];
    let objects = files.write("objects.yaml", format!("{PRIMARY}---\n{SOURCE}"));
    let module = |size: &str| {
        files.write("module.yaml", format!("{MODULE}  parameters: {{size: {size}}}\n"))
    };
    let module_3 = module("3");
    let given = ["render", &guest, "-f", &objects, "-f", &module_3];
    done(&given);
    let twice = [&given[..], &["--parameters", "{size: 4}"]].concat();
    failed(
        &twice,
        1,
        &hidden,
        &expect![[r#"
        innkeeper: DIR/module.yaml, document 1: Module copies has spec.parameters: give these or --parameters, not both
    "#]],
    );
    module("many");
    failed(
        &given,
        1,
        &hidden,
        &expect![[r#"
        innkeeper: DIR/module.yaml, document 1: Module copies: spec.parameters.size: want integer, but got string
    "#]],
    );
}

#[test]
fn render_warns_when_the_module_does_not_select_the_primary() {
    let files = Files::new();
    let guest = guest(&files);
    let objects = files.write("objects.yaml", format!("{PRIMARY}---\n{SOURCE}"));
    let warning = |more: &str| {
        let module = files.write("module.yaml", format!("{MODULE}{more}"));
        let output = innkeeper(&["render", &guest, "-f", &objects, "-f", &module]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        text(&output.stderr)
    };
    expect![[r#"
        innkeeper: warning: spec.namespaces of the Module copies does not select web/one, so the operator would not reconcile it
    "#]].assert_eq(&warning("  namespaces: [central, shop]\n"));
    expect![[r#"
        innkeeper: warning: spec.selector of the Module copies does not select web/one, so the operator would not reconcile it
    "#]].assert_eq(&warning("  selector: {matchLabels: {tier: front}}\n"));
    assert_eq!(warning("  namespaces: [central, web]\n"), "");
}

#[test]
fn guest_of_render_sees_no_value_of_a_granted_secret() {
    let files = Files::new();
    let objects = files.write(
        "objects.yaml",
        format!(
            "apiVersion: example.innkeeper.dev/v1
kind: Reader
metadata: {{name: one, namespace: web}}
spec: {{reads: [{{secret: true, namespace: central, name: pull}}]}}
---
{SOURCE}"
        ),
    );
    let module = files.write("module.yaml", MODULE);
    let seen = |more: &[&str]| -> Value {
        let guest = component("reader");
        let arguments = [&["render", &guest, "-f", &objects, "-o", "json"], more].concat();
        let answer: Value = serde_json::from_str(&done(&arguments)).unwrap();
        let secret = answer["status"]["seen"][0].as_str().unwrap();
        serde_json::from_str::<Value>(secret).unwrap()["data"].clone()
    };
    let value_source = json!({"password": "value source", "user": "value source"});
    assert_eq!(seen(&["-f", &module]), value_source);
    assert_eq!(seen(&[])["user"].as_str().unwrap().len(), 16);
}
