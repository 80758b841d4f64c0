//! Guests that attack the reader of the command's output, or the program that reads it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use innkeeper_tiny_guests::{LOG, SCRATCH, Tiny};
use serde::Deserialize as _;
use serde_json::{Value, json};

use support::{Files, innkeeper, text};

/// Ends a line, rings the bell, moves the cursor, fills the clipboard, makes a link, and reverses
/// text.
const TERMINAL: &str = "x\ninnkeeper: forged\r\u{7}\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{1b}]8;;a\u{1b}\\\u{9b}2J\u{9d}0;t\u{9c}\u{202e}\u{2066}\u{200b}\u{85}\u{2028}\u{feff}\u{e0041}y";

/// The longest evaluation of hostile rules, also in a build without optimization on a busy machine.
const RULES_TIME: std::time::Duration = std::time::Duration::from_mins(1);

const PRIMARY: &str =
    "apiVersion: example.com/v1\nkind: Tiny\nmetadata: {name: first, namespace: web}\n";

fn manifest() -> Value {
    json!({"name": "tiny", "version": "1.0.0",
        "primary": {"apiVersion": "example.com/v1", "kind": "Tiny", "plural": "tinies"},
        "owned": [{"kind": {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}}]})
}

/// The definition of the primary, with this schema.
fn definition(schema: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tinies.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Tiny", "plural": "tinies"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}]}})
}

fn guest(files: &Files, guest: &Tiny) -> String {
    files.write("guest.wasm", guest.component())
}

/// Checks that output has visible characters only, and no line that forges a message.
fn is_harmless(bytes: &[u8]) -> String {
    let text = text(bytes);
    let other = text.chars().find(|c| *c != '\n' && (c.is_control() || !c.is_ascii()));
    assert_eq!(other, None, "{text:?}");
    assert!(!text.lines().skip(1).any(|line| line.starts_with("innkeeper:")), "{text}");
    text
}

fn documents(text: &str) -> Vec<Value> {
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .filter(|value| !value.is_null())
        .collect()
}

#[test]
fn a_guest_whose_name_or_version_is_yaml_gets_no_rights_printed() {
    let attack = "x\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: gotcha}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: x, namespace: innkeeper-modules}]\n#";
    let files = Files::new();
    for (member, value) in [("name", attack), ("version", attack), ("name", TERMINAL)] {
        let mut manifest = manifest();
        manifest[member] = value.into();
        let file = guest(&files, &Tiny::default().manifest(&manifest.to_string()));
        for command in ["rbac", "inspect"] {
            let output = innkeeper(&[command, &file]);
            assert_eq!(output.status.code(), Some(1));
            assert_eq!(text(&output.stdout), "", "{command}");
            let stderr = is_harmless(&output.stderr);
            assert!(stderr.contains(&format!("{member}: ")), "{stderr}");
        }
    }
}

#[test]
fn rbac_refuses_a_kind_that_is_a_wildcard() {
    let files = Files::new();
    for (member, value) in [("apiVersion", "*/v1"), ("plural", "*"), ("kind", "*")] {
        let mut manifest = manifest();
        manifest["owned"][0]["kind"][member] = value.into();
        let file = guest(&files, &Tiny::default().manifest(&manifest.to_string()));
        let output = innkeeper(&["rbac", &file, "--module", "tiny"]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "", "{member}");
        assert!(text(&output.stderr).contains(&format!("owned[0].kind.{member}: \"{value}\"")));
    }
}

#[test]
fn inspect_shows_names_of_parameters_as_visible_text() {
    let files = Files::new();
    let mut manifest = manifest();
    manifest["parametersSchema"] = json!({"type": "object", "properties": {TERMINAL: {}},
        "required": [TERMINAL]});
    let file = guest(&files, &Tiny::default().manifest(&manifest.to_string()));
    let output = innkeeper(&["inspect", &file]);
    assert_eq!(output.status.code(), Some(0));
    let shown = is_harmless(&output.stdout);
    assert!(shown.contains(r"parameters  x\ninnkeeper: forged\r\u{7}\u{1b}[2J"), "{shown}");
    let output = innkeeper(&["inspect", &file, "-o", "json"]);
    let read: Value = serde_json::from_str(&is_harmless(&output.stdout)).unwrap();
    assert_eq!(read["manifest"]["parametersSchema"]["required"][0], TERMINAL);
}

#[test]
fn an_answer_of_any_texts_is_rendered_as_the_objects_of_the_answer_and_no_others() {
    let files = Files::new();
    let primary = files.write("primary.yaml", PRIMARY);
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",
        "namespace": "web", "annotations": {"note": TERMINAL}},
        "data": {"a": TERMINAL, "b": "on", "c": "x\n---\nkind: Secret\n"},
        "<<": {"items": [{"kind": "Secret"}]}});
    let attack = "x\u{2028}---\u{2028}kind: Secret\u{85}---\u{85}kind: Secret";
    let answer = json!({"objects": [{"object": object}], "status": {"text": attack, TERMINAL: 1},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Ok", "message": attack}],
        "events": [{"reason": "Ok", "message": TERMINAL}]});
    let guest_of = Tiny::default()
        .manifest(&manifest().to_string())
        .importing(LOG)
        .data(SCRATCH, TERMINAL)
        .on_reconcile(&format!(
            "(call $log (i32.const 1) (i32.const {SCRATCH}) (i32.const {}))",
            TERMINAL.len()
        ))
        .outcome(0, &answer.to_string());
    let file = guest(&files, &guest_of);
    let output = innkeeper(&["render", &file, "-f", &primary]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let yaml = is_harmless(&output.stdout);
    assert_eq!(documents(&yaml), std::slice::from_ref(&object), "{yaml}");
    assert!(yaml.contains("\"<<\":") && yaml.contains("b: \"on\""), "{yaml}");
    let logged = is_harmless(&output.stderr);
    assert!(logged.starts_with(r"guest: info: x\ninnkeeper: forged\r"), "{logged}");
    let output = innkeeper(&["render", &file, "-f", &primary, "-o", "json"]);
    let read: Value = serde_json::from_str(&is_harmless(&output.stdout)).unwrap();
    assert_eq!(read["objects"][0]["object"], object);
    assert_eq!(read["events"][0]["message"], TERMINAL);
}

#[test]
fn render_refuses_an_object_that_kubectl_would_read_as_a_list() {
    let files = Files::new();
    let primary = files.write("primary.yaml", PRIMARY);
    let answer = json!({"objects": [{"object": {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a"}, "items": [{"apiVersion": "v1", "kind": "Secret"}]}}]});
    let tiny = Tiny::default().manifest(&manifest().to_string()).outcome(0, &answer.to_string());
    let output = innkeeper(&["render", &guest(&files, &tiny), "-f", &primary]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("items is a member of lists, not of objects"));
}

#[test]
fn render_shows_failures_and_names_as_visible_text() {
    let files = Files::new();
    let primary = files.write("primary.yaml", PRIMARY);
    let failure = json!({"reason": "Broken", "message": TERMINAL});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": TERMINAL}});
    for (case, answer) in [(2, failure), (0, json!({"objects": [{"object": object}]}))] {
        let tiny =
            Tiny::default().manifest(&manifest().to_string()).outcome(case, &answer.to_string());
        let output = innkeeper(&["render", &guest(&files, &tiny), "-f", &primary]);
        assert_eq!(output.status.code(), Some(1));
        is_harmless(&output.stdout);
        is_harmless(&output.stderr);
    }
}

#[test]
fn warning_of_describe_is_one_harmless_line() {
    let files = Files::new();
    let guest_of = Tiny::default()
        .manifest(&manifest().to_string())
        .importing(LOG)
        .data(SCRATCH, TERMINAL)
        .on_describe(&format!(
            "(call $log (i32.const 2) (i32.const {SCRATCH}) (i32.const {}))",
            TERMINAL.len()
        ));
    let output = innkeeper(&["inspect", &guest(&files, &guest_of)]);
    let logged = is_harmless(&output.stderr);
    assert!(logged.starts_with(r"warning: x\ninnkeeper: forged\r"), "{logged}");
    assert_eq!(logged.lines().count(), 1, "{logged}");
}

/// Runs the command with at most 3 GiB of data, of which the sandbox reserves 1.3 GiB.
fn bounded(arguments: &[&str]) -> std::process::Output {
    let script = "ulimit -S -d 3145728 && exec \"$@\"";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_innkeeper")]).args(arguments);
    shell.env("INNKEEPER_CACHE_DIR", support::CODE_CACHE).output().unwrap()
}

#[test]
fn render_evaluates_hostile_rules_in_bounded_time_and_memory() {
    let ranges = |depth: usize, last: &str| {
        format!("{}{last}{}", "lists.range(1000).all(x, ".repeat(depth), ")".repeat(depth))
    };
    let doubled = (0..15).fold("'aaaaaaaaaaaaaaaa'".to_owned(), |text, _| {
        format!("[{text}].map(v, v + v + v + v)[0]")
    });
    let rules = [
        "Foo{a: 1}.a == 1".to_owned(),
        ranges(4, "x >= 0"),
        format!("size({doubled}) > 0"),
        format!("1{} > 0", "+1".repeat(8_000)),
        format!("{}1{} > 0", "(".repeat(8_000), ")".repeat(8_000)),
        "'%.100000f'.format([1.0]) == ''".to_owned(),
        "lists.range(9223372036854775807).size() > 0".to_owned(),
        ranges(2, r"!'a'.matches('(\\pL{50}){50}' + string(x))"),
        ranges(2, r"'a'.find('(\\w{2}){2}' + string(x)) == 'b'"),
    ];
    let files = Files::new();
    let primary = files.write("primary.yaml", format!("{PRIMARY}spec: {{text: a}}\n"));
    // Each alone, and the short ones that are read many times.
    let short = rules.iter().skip(1).filter(|rule| rule.len() < 200);
    let many = short.cycle().take(300).cloned().collect::<Vec<_>>();
    for rules in rules.iter().map(|rule| vec![rule.clone()]).chain([many]) {
        let list: Vec<Value> = rules
            .iter()
            .map(|rule| json!({"rule": rule, "messageExpression": rule, "message": "no"}))
            .collect();
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": list}}});
        let mut manifest = manifest();
        manifest["crds"] = json!([definition(&schema)]);
        let tiny = Tiny::default().manifest(&manifest.to_string()).outcome(0, "{\"objects\": []}");
        let component = guest(&files, &tiny);
        let started = std::time::Instant::now();

        let output = bounded(&["render", &component, "-f", &primary]);

        let (took, stderr) = (started.elapsed(), is_harmless(&output.stderr));
        let start = rules[0].chars().take(60).collect::<String>();
        assert_eq!(output.status.code(), Some(1), "{start}: {stderr}");
        assert!(stderr.contains("the API server would refuse t"), "{start}: {stderr}");
        assert!(took < RULES_TIME, "{start}: {took:?}");
    }
}

#[test]
fn render_refuses_a_definition_whose_schema_the_api_server_would_refuse() {
    let files = Files::new();
    let primary = files.write("primary.yaml", PRIMARY);
    let mut manifest = manifest();
    let spec = json!({"properties": {"text": {"type": "text"}}});
    manifest["crds"] =
        json!([definition(&json!({"type": "object", "properties": {"spec": spec}}))]);
    let tiny = Tiny::default().manifest(&manifest.to_string()).outcome(0, "{\"objects\": []}");
    let output = innkeeper(&["render", &guest(&files, &tiny), "-f", &primary]);
    assert_eq!(output.status.code(), Some(1));
    let path = "spec.versions[0].schema.openAPIV3Schema.properties[spec]";
    let expected = format!(
        "innkeeper: the API server would refuse the definition tinies.example.com: {path}.type: Required value: must not be empty for specified object fields; {path}.properties[text].type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"; change the guest's types or its crd.json\n"
    );
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn render_takes_a_definition_of_any_depth_and_with_any_names() {
    let files = Files::new();
    let primary = files.write("primary.yaml", PRIMARY);
    let mut deep = json!({"type": "string"});
    for _ in 0..40 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let render = |schema: Value| {
        let mut manifest = manifest();
        manifest["crds"] = json!([definition(&schema)]);
        let tiny = Tiny::default().manifest(&manifest.to_string()).outcome(0, "{\"objects\": []}");
        let output = innkeeper(&["render", &guest(&files, &tiny), "-f", &primary]);
        (output.status.code(), is_harmless(&output.stderr))
    };
    assert_eq!(render(deep), (Some(0), String::new()));
    let (status, stderr) =
        render(json!({"type": "object", "properties": {TERMINAL: {"type": TERMINAL}}}));
    assert_eq!(status, Some(1));
    assert!(stderr.contains("the API server would refuse the definition tinies.example.com: "));
    let (status, stderr) = render(json!({"type": "object", "required": [TERMINAL]}));
    assert_eq!(status, Some(1));
    assert!(stderr.contains("the API server would refuse this Tiny: "), "{stderr}");
}

#[test]
fn hostile_policy_cannot_write_escapes() {
    let files = Files::new();
    let manifest = json!({"name": "tiny", "policy": {"kind": "Validate", "rules": [
        {"groups": [""], "resources": ["configmaps"], "operations": ["CREATE"]}]}});
    let verdict = |reason: &str| {
        json!({"allowed": false, "reason": reason, "message": format!("{TERMINAL}\n{TERMINAL}"),
        "code": 99_999_999, "warnings": [TERMINAL, "x".repeat(1 << 20)],
        "causes": [{"field": TERMINAL, "message": TERMINAL, "reason": TERMINAL}],
        "auditAnnotations": {TERMINAL: TERMINAL, "key": TERMINAL}})
        .to_string()
    };
    let policies = [
        Tiny::policy(&verdict(TERMINAL)),
        Tiny::policy(&verdict("Invalid")),
        Tiny::policy("{}").decision(1, &format!("{TERMINAL}\n{TERMINAL}")),
    ];
    let objects =
        files.write("objects.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n");
    for policy in policies {
        let policy = guest(&files, &policy.manifest(&manifest.to_string()));
        for format in ["text", "json"] {
            let output = innkeeper(&["review", &policy, "-f", &objects, "-o", format]);
            assert!(matches!(output.status.code(), Some(1 | 3)), "{output:?}");
            let shown = is_harmless(&output.stdout);
            assert!(shown.len() < 64 << 10, "{} bytes", shown.len());
            if format == "text" {
                let forged = |line: &str| !line.starts_with("  ") && !line.starts_with("CREATE ");
                assert!(!shown.lines().any(forged), "{shown}");
            }
            is_harmless(&output.stderr);
        }
    }
}
