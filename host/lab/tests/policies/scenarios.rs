//! Scenarios that name what must be denied.

use std::path::Path;

use innkeeper_lab::scenario::{Backend, Case, Outcome, Player};
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::json;

use crate::stage::{Stage, block_on};

const DENIED: &str = r#"{"allowed":false,"message":"the label team is missing"}"#;

const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

fn annotated(message: &str) -> String {
    format!("{OBJECT}  annotations:\n    innkeeper.dev/denied: {message:?}\n")
}

fn step(denied: &str) -> String {
    format!("apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ndenied:\n{denied}")
}

/// The player with the policy of a verdict runs a case of these files. Returns the outcome, and
/// whether the ConfigMap is there at the end.
fn play(verdict: &str, operations: &[&str], files: &[(&str, &str)]) -> (Outcome, bool) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let case = Case::read(folder.path()).unwrap();
    block_on(async {
        let rules =
            json!([{"groups": [""], "resources": ["configmaps"], "operations": operations}]);
        let spec = json!({"policy": {"rules": rules}});
        let Stage { lab, .. } = Stage::start(&[("labels", Tiny::policy(verdict), spec)]).await;
        let backend = Backend::Lab(Box::new(lab));
        let outcome = Player::new(&backend, "ns".to_owned(), None, false).play(&case).await;
        let Backend::Lab(lab) = backend else { panic!("no lab") };
        let object = lab.api().get("/api/v1/namespaces/ns/configmaps/a").await.unwrap();
        (outcome, object.is_some())
    })
}

/// The failure of a case in its step: message and details.
fn failure(outcome: Outcome, folder_of: &str) -> (String, String) {
    let failure = outcome.failure.unwrap();
    let (_, message) = failure.message.split_once(folder_of).unwrap();
    (message.to_owned(), failure.details)
}

#[test]
fn step_that_must_be_denied_fails_when_it_is_admitted() {
    let (outcome, exists) = play(ALLOWED, &["CREATE"], &[("00-denied.yaml", &annotated("team"))]);
    let (message, details) = failure(outcome, "00-denied.yaml");
    assert_eq!(message, ", document 1: ConfigMap a is admitted and must be denied");
    assert!(details.starts_with("expected: team\nfound:    admitted\n"), "{details}");
    assert!(!exists, "the player deletes what it must not have created");
}

#[test]
fn denial_with_its_message_holds_and_another_one_fails() {
    let files = [("00-denied-x.yaml", &*annotated("team is missing"))];
    assert_eq!(play(DENIED, &["CREATE"], &files).0.failure, None);
    let (outcome, _) = play(DENIED, &["CREATE"], &[("00-denied.yaml", &annotated("another"))]);
    let (message, details) = failure(outcome, "00-denied.yaml");
    assert_eq!(message, ", document 1: ConfigMap a is refused otherwise than expected");
    assert!(details.contains("denied the request: the label team is missing (403)\n"), "{details}");
}

#[test]
fn test_step_denies_the_objects_of_a_file_and_deletions() {
    let denied = "- file: bad/a.yaml\n  message: team is missing\n  code: 403\n";
    let files = [("00-step.yaml", &*step(denied)), ("bad/a.yaml", OBJECT)];
    assert_eq!(play(DENIED, &["CREATE"], &files).0.failure, None);
    let other = step(&denied.replace("403", "422"));
    let (outcome, _) =
        play(DENIED, &["CREATE"], &[("00-step.yaml", &other), ("bad/a.yaml", OBJECT)]);
    let (_, details) = failure(outcome, "bad/a.yaml");
    assert!(details.starts_with("expected: team is missing (422)\n"), "{details}");

    let delete =
        step("- delete: {apiVersion: v1, kind: ConfigMap, name: a}\n  message: team is missing\n");
    let files = [("00-object.yaml", OBJECT), ("00-step.yaml", &*delete)];
    let (outcome, exists) = play(DENIED, &["DELETE"], &files);
    assert_eq!((outcome.failure, exists), (None, true));
    let (outcome, exists) = play(ALLOWED, &["DELETE"], &files);
    let (message, _) = failure(outcome, "00-step.yaml");
    assert_eq!(message, ", document 1: the deletion of ConfigMap a is admitted and must be denied");
    assert!(!exists);
    let (outcome, _) = play(DENIED, &["DELETE"], &[("00-step.yaml", &*delete)]);
    assert!(failure(outcome, "00-step.yaml").0.contains("the object does not exist"));
}

#[test]
fn server_that_does_not_serve_a_kind_denies_nothing() {
    let unknown = annotated("team").replace("ConfigMap", "Unknown");
    let (outcome, _) = play(DENIED, &["CREATE"], &[("00-denied.yaml", &unknown)]);
    let (message, details) = failure(outcome, "00-denied.yaml");
    assert!(message.ends_with("is not denied: the request fails"), "{message}");
    assert!(details.contains("does not serve Unknown"), "{details}");
}

#[test]
fn denied_object_is_refused_in_its_file_with_the_place() {
    let read = |name: &str, text: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        Case::read(Path::new(folder.path())).unwrap_err().to_string()
    };
    let error = read("00-denied.yaml", OBJECT);
    assert!(error.contains("00-denied.yaml, document 1: the object has no annotation"), "{error}");
    let error = read("00-deny.yaml", &annotated("x"));
    assert!(error.contains("00-deny.yaml, document 1: the annotation"), "{error}");
    let error = read("00-step.yaml", &step("- message: x\n"));
    assert!(error.contains("either file or delete"), "{error}");
}
