//! `innkeeper render` with a Module among the files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use expect_test::{Expect, expect};
use innkeeper_tiny_guests::{ALLOWED, ECHO, Tiny};
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

/// Renders an example of Metacontroller with a primary that its definition refuses: the error.
fn refusal_of(example: &str, (api_version, kind): (&str, &str), spec: &Value) -> String {
    let files = Files::new();
    let primary = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": "one", "namespace": "web"}, "spec": spec});
    let primary = files.write("primary.yaml", primary.to_string());
    let output = innkeeper(&["render", &component(example), "-f", &primary]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    text(&output.stderr)
}

#[test]
fn definitions_of_the_examples_refuse_what_their_readme_says() {
    let template = json!({"spec": {"containers": [{"name": "main", "image": "busybox"}]}});
    let completions = json!({"completions": "three", "template": template});
    let completions = refusal_of("indexed-job", ("ctl.enisoc.com/v1", "IndexedJob"), &completions);
    assert!(
        completions.contains("the API server would refuse")
            && completions.contains("spec.completions"),
        "{completions}"
    );

    let template = refusal_of("daemon-job", ("ctl.example.com/v1", "DaemonJob"), &json!({}));
    assert!(
        template.contains("the API server would refuse") && template.contains("spec.template"),
        "{template}"
    );

    let selector = json!({"matchExpressions": [{"key": "team", "operator": "Some"}]});
    let spec = json!({"labelSelector": selector});
    let list = ("examples.metacontroller.io/v1alpha1", "NamespaceList");
    let selector = refusal_of("namespace-list", list, &spec);
    assert!(
        selector.contains("the API server would refuse") && selector.contains("operator"),
        "{selector}"
    );
}

#[test]
fn guest_with_structs_of_k8s_openapi_runs_as_a_component() {
    let files = Files::new();
    let primary = files.write(
        "primary.yaml",
        "\
apiVersion: example.com/v1
kind: Web
metadata: {name: shop, namespace: web}
spec: {image: nginx:1, replicas: 2}
",
    );
    let rendered = done(&["render", &component("typed"), "-f", &primary]);
    for line in ["kind: Deployment\n", "kind: Service\n", "  replicas: 2\n", "image: nginx:1\n"] {
        assert!(rendered.contains(line), "no {line:?} in:\n{rendered}");
    }
}

/// A guest with a definition that writes the first three letters of `spec.echo` to a ConfigMap;
/// `@@@` stays there if it sees no such member.
fn guest_with_definition(files: &Files, echo: &Value) -> String {
    let kind = json!({"apiVersion": "example.com/v1", "kind": "Site", "plural": "sites"});
    let spec = json!({"type": "object", "properties": {"echo": echo, "size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size != 13",
            "message": "13 is no size"}]});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "sites.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Site", "plural": "sites", "singular": "site", "listKind": "SiteList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}});
    let manifest = json!({"name": "tiny", "version": "1.0.0", "primary": kind, "crds": [definition],
        "owned": [{"kind": {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}}]});
    let desired = json!({"objects": [{"object": {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "copy"}, "data": {"echo": ECHO}}}]});
    let tiny = Tiny::default().manifest(&manifest.to_string()).outcome(0, &desired.to_string());
    files.write("guest.wasm", tiny.echoing().component())
}

/// What the guest saw of `spec.echo`, and the errors.
fn echoed(files: &Files, guest: &str, spec: &str) -> (String, String) {
    let primary = files.write("site.yaml", format!("{PRIMARY}spec: {spec}\n"));
    let output = innkeeper(&["render", guest, "-f", &primary, "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let echo = answer["objects"][0]["object"]["data"]["echo"].as_str().unwrap();
    (echo.to_owned(), text(&output.stderr))
}

#[test]
fn guest_of_render_sees_the_defaults_of_its_definition() {
    let files = Files::new();
    let guest = guest_with_definition(&files, &json!({"type": "string", "default": "set"}));
    assert_eq!(echoed(&files, &guest, "{}"), ("set".to_owned(), String::new()));
    assert_eq!(echoed(&files, &guest, "{echo: own}"), ("own".to_owned(), String::new()));
    // null is no value of a text, so the server sets the default there too.
    assert_eq!(echoed(&files, &guest, "{echo: null}"), ("set".to_owned(), String::new()));
}

#[test]
fn guest_of_render_sees_no_field_that_its_definition_lacks() {
    let files = Files::new();
    let guest = guest_with_definition(&files, &json!({"type": "string"}));
    let (seen, error) = echoed(&files, &guest, "{colour: {echo: red}}");
    assert_eq!(seen, ECHO);
    let dropped = "document 1: unknown field \"spec.colour\", which the API server would drop\n";
    assert!(error.starts_with("warning: ") && error.ends_with(dropped), "{error}");
}

#[test]
fn render_fails_when_a_rule_of_the_definition_refuses_the_primary() {
    let files = Files::new();
    let guest = guest_with_definition(&files, &json!({"type": "string", "enum": ["own", "set"]}));
    let folder = files.0.path().to_str().unwrap().to_owned();
    let refused = |spec: &str, expected: &Expect| {
        let primary = files.write("site.yaml", format!("{PRIMARY}spec: {spec}\n"));
        failed(&["render", &guest, "-f", &primary], 1, &[(&folder, "DIR")], expected);
    };
    refused(
        "{size: 13}",
        &expect![[r#"
        innkeeper: DIR/site.yaml, document 1: the API server would refuse this Site: Site.example.com "one" is invalid: spec: Invalid value: 13 is no size
    "#]],
    );
    refused(
        "{echo: other}",
        &expect![[r#"
        innkeeper: DIR/site.yaml, document 1: the API server would refuse this Site: Site.example.com "one" is invalid: [spec.echo: Unsupported value: "other": supported values: "own", "set", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]
    "#]],
    );
    assert_eq!(echoed(&files, &guest, "{size: 12, echo: own}").0, "own");
}

#[test]
fn render_of_a_policy_says_that_it_has_no_primary() {
    let files = Files::new();
    let guest = files.write("policy.wasm", Tiny::policy(ALLOWED).component());
    let primary = files.write("primary.yaml", PRIMARY);
    failed(
        &["render", &guest, "-f", &primary],
        1,
        &[],
        &expect![[r#"
            innkeeper: the guest tiny has no primary: it is a policy; run `innkeeper review` with it
        "#]],
    );
}
