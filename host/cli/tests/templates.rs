//! The guests that `innkeeper new` writes, except the one of docs/first-guest.md: their tests pass,
//! and they build. Slow, since it compiles.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod author;
// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use author::{commands, root, shell, tools};
use support::{Files, done, innkeeper, text};

/// A new guest `hello` in a folder.
fn new(files: &Files, arguments: &[&str]) -> PathBuf {
    let folder = files.0.path().join("hello");
    let sdk = root();
    let (path, sdk) = (folder.to_str().unwrap(), sdk.to_str().unwrap());
    done(&[&["new", "hello", "--path", path, "--sdk", sdk], arguments].concat());
    folder
}

/// The commands of the guest's README that need no cluster, each on one line.
fn offline(folder: &Path) -> Vec<String> {
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    commands(&readme.replace(" \\\n", " "), "## Without a cluster")
}

/// Runs the commands of a crate; returns the output of the last one.
fn built_and_rendered(folder: &Path) -> String {
    // The versions of dependencies that are compiled already.
    fs::copy(root().join("guests/Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    shell(folder, "cargo fmt --check");
    let lines = offline(folder);
    let outputs = lines.iter().take(3).map(|line| shell(folder, line)).collect::<Vec<_>>();
    outputs.last().unwrap().clone()
}

#[test]
fn crate_that_decorates_a_kind_passes_its_tests_builds_and_merges_a_label() {
    let files = Files::new();
    let folder = new(&files, &["--decorates", "apps/v1/StatefulSet"]);
    assert!(!folder.join("crd.json").exists());
    let module = fs::read_to_string(folder.join("module.yaml")).unwrap();
    assert!(!module.contains("allowedCRDGroups"), "{module}");

    let rendered = built_and_rendered(&folder);

    let (_, object) = rendered.split_once("---\n# policy: merge\n").unwrap();
    assert!(object.contains("kind: StatefulSet\n"), "{rendered}");
    assert!(object.contains("  labels:\n    hello: web\n"), "{rendered}");
}

#[test]
fn policy_passes_its_tests_builds_reviews_and_denies_by_the_commands_that_new_prints() {
    let files = Files::new();
    let folder = files.0.path().join("hello");
    let (path, sdk) = (folder.to_str().unwrap(), root());
    let printed =
        done(&["new", "hello", "--policy", "--path", path, "--sdk", sdk.to_str().unwrap()]);
    let printed: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    let lines = offline(&folder);
    assert_eq!(printed[0], format!("cd {path}"));
    assert_eq!(printed[1..], lines[..4]);
    let module = fs::read_to_string(folder.join("module.yaml")).unwrap();
    assert!(!module.contains("allowedCRDGroups") && module.contains("mode: Warn"), "{module}");
    // The versions of dependencies that are compiled already.
    fs::copy(root().join("guests/Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    shell(&folder, "cargo fmt --check");

    let outputs = lines.iter().map(|line| shell(&folder, line)).collect::<Vec<_>>();

    assert!(outputs[1].contains("  policy      validates\n"), "{}", outputs[1]);
    assert_eq!(outputs[2], "CREATE Deployment default/web: allowed\n");
    assert!(outputs[3].ends_with("1 passed, 0 failed\n"), "{}", outputs[3]);
    assert!(outputs[4].ends_with("sample.golden.txt created\n"), "{}", outputs[4]);
    assert_eq!(outputs[5], "");
    let component = folder.join("target/components/hello.wasm");
    let denied = folder.join("tests/scenarios/replicas/01-denied.yaml");
    let module = folder.join("tests/scenarios/modules/module.yaml");
    let files = [&component, &module, &denied].map(|file| file.to_str().unwrap());
    let output = innkeeper(&["review", files[0], "-f", files[1], "-f", files[2]]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown = text(&output.stdout);
    assert!(shown.contains("spec.replicas: is 4, at most 3 are allowed"), "{shown}");
    let rights = done(&["rbac", files[0], "--module", "hello"]);
    assert!(rights.contains("innkeeper.dev/allowed-modules: hello"), "{rights}");
}

#[test]
fn policy_in_another_language_or_with_a_kind_is_refused_with_the_reason() {
    let files = Files::new();
    let path = files.0.path().join("hello");
    let new = |more: &[&str]| {
        let given = ["new", "hello", "--policy", "--path", path.to_str().unwrap()];
        innkeeper(&[&given[..], more].concat())
    };
    let output = new(&["--language", "python"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(
        text(&output.stderr),
        "innkeeper: --policy: a policy is written in Rust, since the SDK for Python does not export the interface of policies yet; leave --language out\n"
    );
    let output = new(&["--kind", "Hello", "--group", "example.com"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("'--policy' cannot be used with"), "{output:?}");
    assert!(!path.exists());
}

#[test]
fn crate_of_a_cluster_scoped_kind_passes_its_tests_builds_and_renders() {
    let files = Files::new();
    let kind = ["--kind", "Hello", "--group", "example.com", "--cluster-scoped"];
    let folder = new(&files, &kind);

    let rendered = built_and_rendered(&folder);

    assert!(rendered.contains("  name: first\n  namespace: default\n"), "{rendered}");
    let decorated = ["--decorates", "v1/Namespace"];
    let files = Files::new();
    let library = fs::read_to_string(new(&files, &decorated).join("src/lib.rs")).unwrap();
    assert!(library.contains("\"namespaces\", Cluster);"), "{library}");
}

const KINDS: [&[&str]; 4] = [
    &["--kind", "Hello", "--group", "example.com"],
    &["--kind", "Hello", "--group", "example.com", "--cluster-scoped"],
    &["--decorates", "apps/v1/StatefulSet"],
    &["--decorates", "v1/Namespace"],
];

/// Runs the tests of the template for each kind, and builds the component of one.
fn passes_its_tests_and_builds(language: &str, link: &str, target: &Path, build: &str) {
    for (index, kind) in KINDS.iter().enumerate() {
        let files = Files::new();
        let folder = new(&files, &[kind, &["--language", language][..]].concat());
        symlink(target, folder.join(link)).unwrap();
        let lines = offline(&folder);
        let is_check = |line: &&String| {
            [" test", "run check", "unittest", "bin/mypy"].iter().any(|check| line.contains(check))
        };
        let checks: Vec<&String> = lines.iter().filter(is_check).collect();
        assert!(!checks.is_empty(), "{lines:?}");
        for check in checks {
            shell(&folder, check);
        }
        if index == 0 {
            shell(&folder, lines.iter().find(|line| line.contains(build)).unwrap());
            let component = fs::read(folder.join("hello.wasm")).unwrap();
            assert!(component.starts_with(b"\0asm"), "no component");
        }
    }
}

#[test]
fn guest_in_python_passes_its_tests_and_builds() {
    let tools = tools("bin/mypy");
    passes_its_tests_and_builds("python", ".venv", &tools, "componentize-py");
}

#[test]
fn guest_in_javascript_passes_its_tests_and_builds() {
    let tools = tools("node_modules/@bytecodealliance").join("node_modules");
    passes_its_tests_and_builds("javascript", "node_modules", &tools, "npm run build");
}

/// What the type checker of an editor finds in the logic of a guest in JavaScript.
fn wrong_types(folder: &Path) -> String {
    let compiler = tools("node_modules/typescript").join("node_modules/typescript/bin/tsc");
    let options = ["--noEmit", "--allowJs", "--target", "es2022", "--module", "nodenext"];
    let mut command = Command::new("node");
    command.arg(compiler).args(options).arg("logic.js").current_dir(folder);
    text(&command.output().unwrap().stdout)
}

#[test]
fn guest_in_javascript_has_types_that_find_wrong_members() {
    for kind in KINDS {
        let files = Files::new();
        let folder = new(&files, &[kind, &["--language", "javascript"][..]].concat());
        assert_eq!(wrong_types(&folder), "", "{kind:?}");

        let logic = fs::read_to_string(folder.join("logic.js")).unwrap();
        let wrong = logic.replace(" objects: [", " objcts: [").replace(" owned: [", " ownd: [");
        fs::write(folder.join("logic.js"), wrong).unwrap();

        let found = wrong_types(&folder);
        assert!(found.contains("'objcts' does not exist in type 'DesiredDocument'"), "{found}");
        assert!(found.contains("'ownd' does not exist in type 'Manifest'"), "{found}");
    }
}

#[test]
fn guest_in_typescript_passes_its_tests_and_builds() {
    let tools = tools("node_modules/typescript").join("node_modules");
    passes_its_tests_and_builds("typescript", "node_modules", &tools, "npm run build");
}

#[test]
fn guest_in_go_passes_its_tests_builds_and_renders() {
    for kind in KINDS {
        let files = Files::new();
        let folder = new(&files, &[kind, &["--language", "go"][..]].concat());
        assert_eq!(shell(&folder, "gofmt -l ."), "", "{kind:?}");
        shell(&folder, "go vet ./...");
        // The tests, the component, and what it desires.
        let lines = offline(&folder);
        let outputs = lines.iter().map(|line| shell(&folder, line)).collect::<Vec<_>>();
        let rendered = outputs.last().unwrap();
        assert!(
            rendered.contains("hello: web") || rendered.contains("text: Good day"),
            "{rendered}"
        );
    }
}
