//! `--parameters` for guests whose kinds the parameters name.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use expect_test::expect;
use innkeeper_tiny_guests::Tiny;
use serde_json::json;

use support::{Files, done, failed};

/// A guest that decorates the kind of `target` and reads the kinds of `watch`.
fn guest(files: &Files) -> String {
    let manifest = json!({"name": "tiny", "version": "1.0.0", "decorates": true,
    "primary": {"apiVersion": "apps/v1", "kind": "StatefulSet", "plural": "statefulsets"},
    "parametersSchema": {"properties": {"target": {}, "watch": {}}},
    "kindParameters": [
        {"parameter": "target", "role": "Primary"},
        {"parameter": "watch", "role": "Reads"},
    ]});
    let tiny = Tiny::default().manifest(&manifest.to_string());
    files.write("guest.wasm", tiny.outcome(0, &json!({"objects": []}).to_string()).component())
}

#[test]
fn rbac_prints_the_rights_for_the_kinds_of_the_parameters() {
    let files = Files::new();
    let guest = guest(&files);
    let crd = files.write(
        "crd.yaml",
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "foos.x.dev"}, "spec": {"group": "x.dev", "scope": "Namespaced",
                "names": {"kind": "Foo", "plural": "foos"}}})
        .to_string(),
    );
    let has = |arguments: &[&str], resource: &str| {
        done(arguments).contains(&format!("resources: [\"{resource}\"]"))
    };
    let default = ["rbac", &guest];
    assert!(has(&default, "statefulsets"), "{}", done(&default));
    let parameters = json!({"target": {"apiVersion": "apps/v1", "kind": "Deployment"},
        "watch": [{"apiVersion": "x.dev/v1", "kind": "Foo"}]});
    let parameters = parameters.to_string();
    let given = ["rbac", &guest, "--parameters", &parameters, "--crd", &crd];
    assert!(has(&given, "deployments") && has(&given, "foos"), "{}", done(&given));
    assert!(!has(&given, "statefulsets"));
    failed(
        &["rbac", &guest, "--parameters", &parameters],
        1,
        &[],
        &expect![[r"
            innkeeper: --parameters: cannot use the kinds that they name: spec.parameters.watch[0]: x.dev/v1 Foo is no kind of Kubernetes, and no definition of it is given
        "]],
    );
}

#[test]
fn render_runs_the_guest_for_a_primary_of_the_kind_of_the_parameters() {
    let files = Files::new();
    let guest = guest(&files);
    let primary = files.write(
        "primary.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: first, namespace: web}\n",
    );
    let parameters = "target: {apiVersion: apps/v1, kind: Deployment}";
    done(&["render", &guest, "-f", &primary, "--parameters", parameters]);
    assert!(done(&["inspect", &guest]).contains("kinds from  parameters.target: Primary"));
}
