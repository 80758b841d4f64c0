//! A control plane starts, answers, and leaves nothing behind.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use innkeeper_controlplane::{AuditFilter, Background, ControlPlane, Options, Programs};

const BOUND: Duration = Duration::from_mins(1);

fn kubectl(kubeconfig: &Path, args: &[&str]) -> String {
    let programs = Programs::find(&mut |_| ()).unwrap();
    let output = programs
        .command("kubectl")
        .unwrap()
        .env("KUBECONFIG", kubeconfig)
        .args(args)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + BOUND;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not so after {} s", BOUND.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes whose command line names `folder`.
fn processes_of(folder: &Path) -> usize {
    let folder = folder.display().to_string();
    if let Ok(entries) = fs::read_dir("/proc") {
        let line = |path: &Path| fs::read(path.join("cmdline")).unwrap_or_default();
        return entries
            .filter_map(Result::ok)
            .filter(|entry| String::from_utf8_lossy(&line(&entry.path())).contains(&folder))
            .count();
    }
    let output = Command::new("ps").args(["-eo", "args="]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter(|line| line.contains(&folder)).count()
}

#[test]
fn control_plane_reports_its_version_and_logs_writes_by_user_verb_and_resource() {
    let mut plane = ControlPlane::start(&Options::default()).unwrap();
    let version = kubectl(plane.kubeconfig(), &["get", "--raw", "/version"]);
    assert!(version.contains(r#""gitVersion": "v1."#), "{version}");
    assert!(!version.contains("v0.0.0"), "{version}");

    let audit = plane.audit().unwrap();
    let mark = audit.mark().unwrap();
    let create = ["create", "configmap", "one", "--as=jane", "--as-group=system:masters"];
    kubectl(plane.kubeconfig(), &create);
    let filter =
        AuditFilter::new().writes().user("admin").impersonated("jane").resource("configmaps");
    wait_until("one create by jane in the audit log", || {
        let events = audit.since(mark, &filter).unwrap();
        events.len() == 1 && events[0].name == "one" && events[0].code == 201
    });
    plane.check().unwrap();

    let folder = plane.kubeconfig().parent().unwrap().to_owned();
    assert!(processes_of(&folder) >= 2);
    drop(plane);
    assert_eq!(processes_of(&folder), 0);
    assert!(!folder.exists());
}

#[test]
fn children_are_collected_with_their_owner_when_the_controller_manager_runs() {
    let options = Options { controller_manager: true, ..Options::default() };
    let plane = ControlPlane::start(&options).unwrap();
    let config = plane.kubeconfig();
    kubectl(config, &["create", "deployment", "web", "--image=nowhere"]);
    let replicasets = || kubectl(config, &["get", "replicasets", "-l", "app=web", "-o", "name"]);
    wait_until("a ReplicaSet of the Deployment", || !replicasets().is_empty());
    kubectl(config, &["delete", "deployment", "web", "--wait=false"]);
    wait_until("the ReplicaSet is collected", || replicasets().is_empty());
}

#[test]
fn background_control_plane_outlives_its_starter_until_it_is_ended() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("cluster");
    let background = Background::at(&folder);
    assert!(!background.is_up());
    background.up(&Options::default(), &mut |_| ()).unwrap();
    assert!(Background::at(&folder).is_up());
    assert!(kubectl(&background.kubeconfig(), &["get", "--raw", "/readyz"]).contains("ok"));

    Background::at(&folder).down().unwrap();
    assert_eq!(processes_of(&folder), 0);
    assert!(!folder.exists());
    background.down().unwrap();
}

/// Run by the test below in a process of its own, which is then killed.
#[test]
#[ignore = "the other half of a_killed_test_leaves_nothing_behind"]
fn a_test_that_is_killed() {
    let plane = ControlPlane::start(&Options::default()).unwrap();
    let path = std::env::var_os("INNKEEPER_KILLED_TEST").unwrap();
    fs::write(path, plane.kubeconfig().display().to_string()).unwrap();
    std::thread::sleep(Duration::from_mins(10));
}

#[test]
fn a_killed_test_leaves_nothing_behind() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("kubeconfig-path");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_test_that_is_killed"])
        .env("INNKEEPER_KILLED_TEST", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_mins(2);
    let kubeconfig = loop {
        match fs::read_to_string(&path) {
            Ok(text) if !text.is_empty() => break text,
            _ => assert!(Instant::now() < deadline, "the other half did not start"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let folder = Path::new(&kubeconfig).parent().unwrap();
    assert!(processes_of(folder) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the watchdog ends the processes", || processes_of(folder) == 0);
    wait_until("the watchdog removes the folder", || !folder.exists());
}
