//! `innkeeper inspect`. Needs the guests: `cargo xtask guests` builds them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use expect_test::expect;
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

use support::{Files, component, done, failed, innkeeper, text};

#[test]
fn inspect_prints_the_manifest_the_imports_and_the_size() {
    let guest = component("podroute");
    let mut lines: Vec<String> = done(&["inspect", &guest]).lines().map(str::to_owned).collect();
    // Digest and size depend on the compiler.
    assert!(lines[1].starts_with("  digest      sha256:"), "{}", lines[1]);
    assert!(lines[2].starts_with("  size        "), "{}", lines[2]);
    lines.drain(1..3);
    expect![[r#"
        podroute 0.1.0
          ConfigMaps  1
          contract    innkeeper:guest@0.1.0
          imports     innkeeper:guest/log@0.1.0
          primary     quay.io/v1alpha1 Podroute (podroutes.quay.io)
          owns        apps/v1 Deployment (deployments.apps)
                      v1 Service (services)
                      route.openshift.io/v1 Route (routes.route.openshift.io), optional
          CRDs        podroutes.quay.io
          resync      on changes only
          parameters  replicasWhenLeftOut"#]]
    .assert_eq(&lines.join("\n"));
}

#[test]
fn inspect_prints_json_when_asked_to() {
    let guest = component("podroute");
    let json: Value = serde_json::from_str(&done(&["inspect", &guest, "-o", "json"])).unwrap();
    let bytes = std::fs::metadata(&guest).unwrap().len();
    assert_eq!(json["bytes"], bytes);
    assert!(json["gzipBytes"].as_u64().unwrap() < bytes);
    assert_eq!(json["configMaps"], 1);
    assert_eq!(json["manifest"]["primary"]["plural"], "podroutes");
    assert_eq!(json["contract"], "innkeeper:guest@0.1.0");
    assert_eq!(json["digest"].as_str().unwrap().len(), "sha256:".len() + 64);
}

#[test]
fn inspect_of_a_policy_prints_what_it_reviews() {
    let manifest = json!({
        "name": "labels", "version": "1.0.0",
        "policy": {
            "kind": "Mutate", "reinvocation": true,
            "rules": [
                {"groups": ["", "apps"], "resources": ["pods", "deployments/scale"],
                    "operations": ["CREATE", "UPDATE"]},
                {"groups": ["example.com"], "versions": ["v1"], "resources": ["*"],
                    "operations": ["DELETE"], "scope": "Cluster"},
            ],
            "matchConditions": [{"name": "small", "expression": "a\n\u{1b}[31m"}],
        },
        "reads": [{"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}],
    });
    let files = Files::new();
    let guest = Tiny::policy(ALLOWED).manifest(&manifest.to_string()).component();
    let guest = files.write("labels.wasm", guest);
    let mut lines: Vec<String> = done(&["inspect", &guest]).lines().map(str::to_owned).collect();
    lines.drain(1..3);
    expect![[r#"
        labels 1.0.0
          ConfigMaps  1
          contract    innkeeper:guest@0.1.0
          reads       v1 ConfigMap (configmaps)
          policy      mutates, again after other policies
          rules       CREATE, UPDATE of pods, deployments/scale in the core group, apps
                      DELETE of * in example.com (v1), cluster-scoped objects only
          conditions  small: a\n\u{1b}[31m
          parameters  none"#]]
    .assert_eq(&lines.join("\n"));
}

/// How far a size in the README may be from that of the component, in percent: a compiler of
/// another version makes other code.
const SIZE_PERCENT: u64 = 10;

#[test]
fn sizes_in_the_readme_of_the_guests_are_those_of_the_components() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for line in readme.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, size, zipped] = cells[..] else { continue };
        let (Ok(size), Ok(zipped)) = (size.parse::<u64>(), zipped.parse::<u64>()) else { continue };
        let name = name.rsplit('`').nth(1).unwrap();
        let printed = done(&["inspect", &component(name), "-o", "json"]);
        let json: Value = serde_json::from_str(&printed).unwrap();
        for (member, claimed) in [("bytes", size), ("gzipBytes", zipped)] {
            let found = json[member].as_u64().unwrap() / 1000;
            assert!(
                found.abs_diff(claimed) * 100 <= claimed * SIZE_PERCENT,
                "{name}: guests/README.md says {claimed} KB, but {member} is {found} KB"
            );
        }
        rows += 1;
    }
    assert_eq!(rows, 8, "rows of both tables");
}

#[test]
fn inspect_prints_the_definitions_that_an_administrator_applies() {
    let guest = component("podroute");
    let printed: Value = serde_yaml_ng::from_str(&done(&["inspect", &guest, "--crds"])).unwrap();
    assert_eq!(printed["kind"], "CustomResourceDefinition");
    assert_eq!(printed["metadata"]["name"], "podroutes.quay.io");
    assert_eq!(printed["spec"]["group"], "quay.io");
    let none = component("labels");
    failed(
        &["inspect", &none, "--crds"],
        1,
        &[],
        &expect![[r#"
            innkeeper: the guest labels describes no CustomResourceDefinition
        "#]],
    );
}

#[test]
fn inspect_fails_with_the_reason_when_a_file_is_no_guest() {
    let files = Files::new();
    let cut = files.write("cut.wasm", b"\0asm\x0d\0\x01\0cut off");
    let script = files.write("script.wasm", "#!/bin/sh");
    let wasi = component("imports-wasi");
    let traps = component("traps-in-describe");
    let folder = files.0.path().to_str().unwrap().to_owned();
    let hidden = [(wasi.as_str(), "WASI"), (traps.as_str(), "TRAPS"), (folder.as_str(), "DIR")];
    failed(
        &["inspect", &script],
        1,
        &hidden,
        &expect![[r#"
        innkeeper: DIR/script.wasm is neither WebAssembly nor gzip of it: it begins with 23212f62696e2f73
    "#]],
    );
    failed(
        &["inspect", &format!("{folder}/none.wasm")],
        1,
        &hidden,
        &expect![[r#"
        innkeeper: DIR/none.wasm does not exist
    "#]],
    );
    failed(
        &["inspect", &wasi],
        1,
        &hidden,
        &expect![[r#"
        innkeeper: WASI is not a guest that can be run: the component imports wasi:cli/environment@0.2.0, which is not part of innkeeper:guest@0.1.0 (guests have no WASI: build for wasm32-unknown-unknown, or stub WASI away)
    "#]],
    );
    let output = innkeeper(&["inspect", &traps]);
    assert!(text(&output.stderr).contains("describe failed: the guest trapped"), "{output:?}");
    let output = innkeeper(&["inspect", &cut]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cut.wasm is not a guest"), "{output:?}");
}
