//! `innkeeper test`: the scenarios of the guests, and the messages for cases that fail.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::path::{Path, PathBuf};

use support::component;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs `innkeeper test`. Returns whether it succeeded, and both outputs.
fn run(arguments: &[&str]) -> (bool, String, String) {
    let mut command = support::command();
    let output = command.arg("test").args(arguments).env_remove("RUST_LOG").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Expects that the scenarios of a guest hold.
fn hold(guest: &str, cases: usize) {
    let folder = root().join(format!("guests/{guest}/tests/scenarios"));
    let (ok, out, error) = run(&[folder.to_str().unwrap()]);
    assert!(ok, "{out}{error}");
    assert!(out.ends_with(&format!("{cases} passed, 0 failed\n")), "{out}");
}

#[test]
fn the_scenarios_of_podroute_hold() {
    hold("podroute", 7);
}

#[test]
fn scenarios_of_maintpage_hold() {
    hold("maintpage", 4);
}

#[test]
fn scenarios_of_postgres_hold() {
    hold("postgres", 5);
}

#[test]
fn scenarios_of_kabocha_hold() {
    hold("kabocha", 2);
}

const PODROUTE: &str = "apiVersion: quay.io/v1alpha1\nkind: Podroute\nmetadata:\n  name: site\nspec:\n  image: example.com/app:1\n  replicas: 2\n";

/// A folder with one case, whose assert expects a number of replicas.
fn case(replicas: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("two-pods");
    std::fs::create_dir(&case).unwrap();
    std::fs::write(case.join("00-install.yaml"), PODROUTE).unwrap();
    let assert = format!(
        "# The expected objects.\napiVersion: v1\nkind: Service\nmetadata:\n  name: podroute-service\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: pod-route\nstatus:\n  readyReplicas: {replicas}\n"
    );
    std::fs::write(case.join("00-assert.yaml"), assert).unwrap();
    folder
}

#[test]
fn failed_case_prints_the_difference_and_is_written_as_junit() {
    let folder = case(3);
    let dir = folder.path().to_str().unwrap();
    let report = folder.path().join("junit.xml");
    let guest = component("podroute");
    let options = [dir, "--guest", &guest, "--timeout", "20", "--junit", report.to_str().unwrap()];
    let (ok, out, error) = run(&options);
    assert!(!ok);
    assert!(out.starts_with("FAIL  two-pods, step 00-install\n"), "{out}");
    let message =
        "00-assert.yaml, document 2: Deployment pod-route is not as expected (after 20 s)";
    assert!(out.contains(message), "{out}");
    assert!(out.contains("-  readyReplicas: 3\n+  readyReplicas: 2\n"), "{out}");
    assert!(out.contains("its conditions:\n  Available=True MinimumReplicasAvailable"), "{out}");
    assert!(out.ends_with("0 passed, 1 failed\n"), "{out}");
    assert_eq!(error, "innkeeper: 1 of 1 case failed\n");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("tests=\"1\" failures=\"1\""), "{report}");
    assert!(report.contains("<failure message=\"00-install: "), "{report}");

    // After an update the case holds.
    let (ok, out, error) = run(&[dir, "--guest", &guest, "--timeout", "20", "--update"]);
    assert!(ok, "{out}{error}");
    assert!(out.contains("00-assert.yaml updated"), "{out}");
    let written = std::fs::read_to_string(folder.path().join("two-pods/00-assert.yaml")).unwrap();
    assert!(written.contains("readyReplicas: 2"), "{written}");
    assert!(
        written.starts_with("# The expected objects.\n"),
        "the update changed the comment: {written}"
    );
    let (ok, out, _) = run(&[dir, "--guest", &guest]);
    assert!(ok, "{out}");
}

#[test]
fn test_fails_with_advice_when_a_case_cannot_be_run() {
    let folder = case(2);
    let dir = folder.path().to_str().unwrap();
    let (ok, _, error) = run(&[dir]);
    assert!(!ok && error.contains("no guest is given; name its component with --guest"), "{error}");
    let (ok, _, error) = run(&[dir, "--guest", &component("podroute"), "--case", "other"]);
    assert!(!ok && error.contains("--case other: no such case; the cases are two-pods"), "{error}");
    let step =
        "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ncommands:\n- command: kubectl get pods\n";
    std::fs::write(folder.path().join("two-pods/01-run.yaml"), step).unwrap();
    let (ok, _, error) = run(&[dir, "--guest", &component("podroute")]);
    assert!(
        !ok && error.contains("01-run.yaml, document 1: commands and scripts are not supported"),
        "{error}"
    );
    let empty = tempfile::tempdir().unwrap();
    let (ok, _, error) = run(&[empty.path().to_str().unwrap()]);
    assert!(!ok && error.contains("no test case found"), "{error}");
}

#[test]
fn case_fails_in_its_setup_when_a_module_does_not_become_active() {
    let folder = case(2);
    let modules = folder.path().join("modules");
    std::fs::create_dir(&modules).unwrap();
    // The guest installs its definition, but the Module allows no group.
    let module = format!(
        "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata:\n  name: podroute\nspec:\n  source:\n    file: {}\n  serviceAccountName: podroute\n",
        component("podroute")
    );
    std::fs::write(modules.join("podroute.yaml"), module).unwrap();
    let report = folder.path().join("junit.xml");
    let (ok, out, error) =
        run(&[folder.path().to_str().unwrap(), "--junit", report.to_str().unwrap()]);
    assert!(!ok && error == "innkeeper: 1 of 1 case failed\n", "{error}");
    let failure = "FAIL  two-pods, step setup\ncannot run the case: ";
    assert!(
        out.starts_with(failure) && out.contains("the module is active: not within 120 s"),
        "{out}"
    );
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("<failure message=\"setup: cannot run the case"), "{report}");
}
