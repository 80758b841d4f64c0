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

#[test]
fn scenarios_of_the_examples_of_metacontroller_hold() {
    hold("examples/metacontroller", 17);
}

#[test]
fn scenario_of_the_guest_in_go_holds() {
    hold("examples/cron-go", 2);
}

#[test]
fn scenarios_of_the_policy_for_labels_hold() {
    hold("policies/required-labels", 2);
}

#[test]
fn scenarios_of_the_policy_for_registries_hold() {
    hold("policies/allowed-registries", 2);
}

#[test]
fn scenarios_of_the_policy_for_defaults_hold() {
    hold("policies/pod-defaults", 2);
}

#[test]
fn scenarios_of_the_policy_for_deletions_hold() {
    hold("policies/deletion-guard", 3);
}

#[test]
fn scenarios_of_the_policies_built_with_kubewarden_s_sdk_hold() {
    hold("kubewarden", 2);
}

#[test]
fn policy_that_admits_what_a_case_denies_fails_it_with_the_message() {
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("labels");
    std::fs::create_dir(&case).unwrap();
    let denied = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  labels: {team: shop}\n  annotations: {innkeeper.dev/denied: the label team is missing}\nspec:\n  ports: [{port: 80}]\n";
    std::fs::write(case.join("00-denied.yaml"), denied).unwrap();
    let modules = root().join("guests/policies/required-labels/tests/scenarios/modules");
    let (ok, out, _) =
        run(&[folder.path().to_str().unwrap(), "--modules", modules.to_str().unwrap()]);
    assert!(!ok);
    assert!(out.starts_with("FAIL  labels, step 00-denied\n"), "{out}");
    let message = "00-denied.yaml, document 1: Service web is admitted and must be denied\nexpected: the label team is missing\nfound:    admitted\n";
    assert!(out.contains(message), "{out}");
    // The policy reviews, so its Module has no problem.
    assert!(!out.contains("Modules with problems"), "{out}");
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
    let cause = "Modules with problems:\n  podroute: Loaded=False CRDGroupNotAllowed: ";
    assert!(out.contains(cause) && out.contains("allowedCRDGroups"), "{out}");
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("<failure message=\"setup: cannot run the case"), "{report}");
}

/// Writes files below a folder.
fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// The text behind the first occurrence of each part, in this order.
fn assert_in_order(out: &str, parts: &[&str]) {
    let mut rest = out;
    for part in parts {
        let after = rest.split_once(part).map(|(_, after)| after);
        assert!(after.is_some(), "no {part:?} in {rest:?} of {out}");
        rest = after.unwrap();
    }
}

#[test]
fn failed_case_prints_unsynced_primaries_and_objects_of_the_name_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let theirs = "apiVersion: v1\nkind: Service\nmetadata: {name: podroute-service}\nspec: {ports: [{port: 80}]}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\n---\n";
    let assert = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";
    let install = format!("{theirs}{PODROUTE}");
    write(folder.path(), &[("taken/00-install.yaml", &install), ("taken/00-assert.yaml", assert)]);
    let (ok, out, _) = run(&[folder.path().to_str().unwrap(), "--guest", &component("podroute")]);
    assert!(!ok, "{out}");
    assert_in_order(
        &out,
        &[
            "ConfigMap settings not found (after 30 s)\n",
            "ConfigMap settings exists in namespace default\n",
            "primaries that are not synced:\n  Podroute test-taken/site: Synced=False Conflict: Service test-taken/podroute-service: ",
        ],
    );
}

#[test]
fn decorator_that_cannot_apply_is_shown_by_its_warning_event_and_logged_with_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let module = format!(
        "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {{name: labels}}\nspec:\n  source: {{file: {}}}\n  serviceAccountName: labels\n  parameters: {{labels: {{team: ours}}}}\n",
        component("labels")
    );
    let namespace = |team| {
        format!(
            "apiVersion: v1\nkind: Namespace\nmetadata: {{name: $NAMESPACE, labels: {{team: {team}}}}}\n"
        )
    };
    write(
        folder.path(),
        &[
            ("modules/labels.yaml", &module),
            ("theirs/00-install.yaml", &namespace("theirs")),
            ("theirs/00-assert.yaml", &namespace("ours")),
        ],
    );
    let (ok, out, error) = run(&[folder.path().to_str().unwrap(), "--log-filter", "warn"]);
    assert!(!ok, "{out}");
    let event = "Warning Events:\n  Namespace test-theirs: FieldConflict: ";
    assert_in_order(&out, &["-    team: ours\n+    team: theirs\n", event, "innkeeper-test"]);
    let line = error.lines().find(|line| line.contains("write failed")).unwrap_or_default();
    assert!(line.starts_with("2026-01-01T00:00:") && line.contains(" WARN "), "{error}");
}

/// The files of the example in docs/testing.md: blocks whose first line is a comment with a path.
fn documented_files() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(root().join("docs/testing.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let named = blocks.filter_map(|(block, _)| {
        let path = block.strip_prefix("# ")?.lines().next()?;
        path.contains('/').then(|| (path.to_owned(), block.to_owned()))
    });
    named.collect()
}

#[test]
fn documented_scenario_holds() {
    let folder = tempfile::tempdir().unwrap();
    let files = documented_files();
    let parts: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    for part in ["00-order.yaml", "01-never.yaml", "02-assert.yaml", "03-errors.yaml"] {
        assert!(parts.iter().any(|path| path.ends_with(part)), "no {part} in {parts:?}");
    }
    for (path, text) in &files {
        write(folder.path(), &[(path, text)]);
    }
    let (ok, out, error) =
        run(&[folder.path().to_str().unwrap(), "--guest", &component("podroute")]);
    assert!(ok && out.ends_with("1 passed, 0 failed\n"), "{out}{error}");
}

/// Runs the documented scenario with other text in one file.
fn changed(file: &str, before: &str, after: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in documented_files() {
        let text = if path.ends_with(file) { text.replacen(before, after, 1) } else { text };
        write(folder.path(), &[(&path, &text)]);
    }
    let (ok, out, _) = run(&[folder.path().to_str().unwrap(), "--guest", &component("podroute")]);
    assert!(!ok, "{out}");
    out
}

#[test]
fn never_fails_at_a_state_that_passes_and_order_at_the_other_order() {
    // The Deployment has one replica for a moment before the assert holds.
    let out = changed("01-never.yaml", "replicas: 0", "replicas: 1");
    let state = "Deployment pod-route was in a state that must never be";
    assert_in_order(
        &out,
        &["FAIL  example, step 01-", "01-never.yaml, document 1: ", state, "replicas: 1\n"],
    );
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: pod-route}\n";
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: podroute-service}\n";
    let (right, wrong) =
        (format!("{deployment}---\n{service}"), format!("{service}---\n{deployment}"));
    let out = changed("00-order.yaml", &right, &wrong);
    let early = "Deployment pod-route was created before Service podroute-service";
    assert_in_order(&out, &["00-order.yaml, document 2: ", early]);
}

#[test]
fn errors_alone_are_judged_when_the_cluster_is_settled() {
    let folder = tempfile::tempdir().unwrap();
    let errors = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: pod-route}\n";
    write(folder.path(), &[("late/00-install.yaml", PODROUTE), ("late/00-errors.yaml", errors)]);
    let (ok, out, _) = run(&[folder.path().to_str().unwrap(), "--guest", &component("podroute")]);
    assert!(!ok, "{out}");
    assert_in_order(&out, &["00-errors.yaml, document 1: Deployment pod-route exists"]);
}
