//! The policies under `guests/policies`: their golden files, and the policies in CEL of their
//! READMEs.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Files, component, done, innkeeper, text};

fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests")
}

fn folder(policy: &str) -> PathBuf {
    guests().join("policies").join(policy)
}

/// A file of a policy.
fn file(policy: &str, path: &str) -> String {
    folder(policy).join(path).to_str().unwrap().to_owned()
}

/// Compares the review of objects with a golden file. `UPDATE_EXPECT` writes it instead.
fn golden(policy: &str, objects: &str, more: &[&str]) {
    let (guest, module) = (component(policy), file(policy, "module.yaml"));
    let objects = format!("tests/golden/{objects}");
    let golden = file(policy, &objects.replace(".yaml", ".txt"));
    let objects = file(policy, &objects);
    let given = ["review", &guest, "-f", &module, "-f", &objects, "--golden", &golden];
    let update: &[&str] =
        if std::env::var_os("UPDATE_EXPECT").is_some() { &["--update"] } else { &[] };
    done(&[&given[..], more, update].concat());
}

#[test]
fn reviews_of_required_labels_are_those_of_its_golden_file() {
    golden("required-labels", "objects.yaml", &[]);
}

#[test]
fn reviews_of_allowed_registries_are_those_of_its_golden_file() {
    golden("allowed-registries", "objects.yaml", &[]);
}

#[test]
fn reviews_of_pod_defaults_are_those_of_its_golden_file() {
    golden("pod-defaults", "objects.yaml", &[]);
}

#[test]
fn reviews_of_deletion_guard_are_those_of_its_golden_files() {
    golden("deletion-guard", "objects.yaml", &["--operation", "DELETE"]);
    let definition = guests().join("postgres/crd.json");
    let definition = ["--operation", "DELETE", "-f", definition.to_str().unwrap()];
    golden("deletion-guard", "databases.yaml", &definition);
}

/// An object of a golden file, and whether the guest denies the request about it.
struct Reviewed {
    document: String,
    is_denied: bool,
}

/// The objects of `tests/golden/objects.yaml`, as the guest reviews them.
fn reviewed(policy: &str, operation: &str) -> Vec<Reviewed> {
    let (guest, module) = (component(policy), file(policy, "module.yaml"));
    let objects = file(policy, "tests/golden/objects.yaml");
    let output = innkeeper(&[
        "review",
        &guest,
        "-f",
        &module,
        "-f",
        &objects,
        "--operation",
        operation,
        "-o",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let documents = fs::read_to_string(objects).unwrap();
    let documents: Vec<&str> = documents.split("---\n").collect();
    // The policy may review objects of module.yaml too, which come first.
    let answers = &answers[answers.len() - documents.len()..];
    let reviewed = |(document, answer): (&&str, &Value)| {
        let is_denied = answer["result"] == "denied";
        assert!(is_denied || answer["result"] == "allowed", "{answer}");
        Reviewed { document: (*document).to_owned(), is_denied }
    };
    documents.iter().zip(answers).map(reviewed).collect()
}

/// Writes the first steps of a case: the policy in CEL of the README, and with it `others`.
fn with_policy_in_cel(files: &Files, policy: &str, others: &str) -> PathBuf {
    let readme = fs::read_to_string(file(policy, "README.md")).unwrap();
    let section = readme.split_once("## The same in CEL\n").unwrap().1;
    let cel = section.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0;
    let case = files.0.path().join(policy);
    fs::create_dir(&case).unwrap();
    fs::write(case.join("00-policy.yaml"), format!("{others}{cel}")).unwrap();
    case
}

/// The part of a message by which a policy in CEL denies.
fn denied_by(policy: &str) -> String {
    format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request")
}

/// Runs the cases of a folder on a cluster without a policy of Innkeeper.
fn hold(files: &Files) {
    let folder = files.0.path().to_str().unwrap().to_owned();
    let output = innkeeper(&["test", &folder, "--guest", &component("podroute")]);
    let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{printed}");
}

#[test]
fn policies_in_cel_of_the_readmes_deny_what_the_guests_deny() {
    let files = Files::new();
    for policy in ["required-labels", "allowed-registries"] {
        let case = with_policy_in_cel(&files, policy, "");
        let reviewed = reviewed(policy, "CREATE");
        assert!(reviewed.iter().any(|one| one.is_denied), "{policy} denies nothing");
        for (index, Reviewed { document, is_denied }) in reviewed.iter().enumerate() {
            // The files have the metadata of an object in one line.
            let message =
                format!("annotations: {{innkeeper.dev/denied: \"{}\"}}", denied_by(policy));
            let (name, document) = if *is_denied {
                (
                    "denied",
                    document.replace("metadata: {name", &format!("metadata: {{{message}, name")),
                )
            } else {
                ("allowed", document.clone())
            };
            fs::write(case.join(format!("01-{name}-{index}.yaml")), document).unwrap();
        }
    }
    hold(&files);
}

#[test]
fn policy_in_cel_for_deletions_denies_what_the_guest_denies_but_for_its_reads() {
    let files = Files::new();
    let policy = "deletion-guard";
    let objects = fs::read_to_string(file(policy, "tests/golden/objects.yaml")).unwrap();
    let case = with_policy_in_cel(&files, policy, &format!("{objects}---\n"));
    let (mut deleted, mut denied) = (String::new(), String::new());
    for Reviewed { document, is_denied } in reviewed(policy, "DELETE") {
        let object: Value = serde_json::to_value(
            serde_yaml_ng::from_str::<serde_yaml_ng::Value>(&document).unwrap(),
        )
        .unwrap();
        let metadata = &object["metadata"];
        let mut target = serde_json::json!({"apiVersion": object["apiVersion"],
            "kind": object["kind"], "name": metadata["name"]});
        if object["kind"] == "Namespace" {
            // Only the guest reads what a Namespace has.
            assert_eq!(is_denied, metadata["name"] == "shop");
            continue;
        }
        target["namespace"] = metadata["namespace"].clone();
        if is_denied {
            let message = denied_by(policy);
            writeln!(denied, "- delete: {target}\n  message: \"{message}\"").unwrap();
        } else {
            writeln!(deleted, "- {target}").unwrap();
        }
    }
    assert!(!denied.is_empty() && !deleted.is_empty());
    let step = format!(
        "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ndelete:\n{deleted}denied:\n{denied}"
    );
    fs::write(case.join("01-step.yaml"), step).unwrap();
    hold(&files);
}
