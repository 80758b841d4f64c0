//! `innkeeper simulate`.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn simulate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.arg("simulate").args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The first lines of the output.
fn first_lines(child: &mut Child) -> [String; 2] {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    [(); 2].map(|()| lines.next().unwrap().unwrap())
}

/// Whether this process, and so its children, ignore SIGHUP, as below `nohup`.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & 1 != 0
}

#[test]
fn simulate_removes_its_kubeconfig_when_it_is_interrupted() {
    ends_without_a_kubeconfig(Signal::INT);
}

#[test]
fn simulate_removes_its_kubeconfig_when_its_terminal_closes() {
    if is_hangup_ignored() {
        let mut child = simulate(&[]).spawn().unwrap();
        first_lines(&mut child);
        kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    } else {
        ends_without_a_kubeconfig(Signal::HUP);
    }
}

fn ends_without_a_kubeconfig(signal: Signal) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simulated");
    let mut child = simulate(&["--kubeconfig", path.to_str().unwrap()]).spawn().unwrap();
    let [first, second] = first_lines(&mut child);
    assert_eq!(second, format!("  export KUBECONFIG={}", path.display()));
    let config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    assert!(first.contains(server) && server.starts_with("https://127.0.0.1:"), "{first}");
    kill_process(Pid::from_child(&child), signal).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
    assert!(!path.exists());
}

#[test]
fn kubeconfig_is_a_temporary_file_when_none_is_named() {
    let mut child = simulate(&["--freeze-time"]).spawn().unwrap();
    let [_, second] = first_lines(&mut child);
    let path = Path::new(second.rsplit('=').next().unwrap()).to_owned();
    assert!(path.is_absolute() && path.is_file(), "{second}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn simulate_fails_when_the_kubeconfig_exists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine");
    std::fs::write(&path, "precious").unwrap();
    let output = simulate(&["--kubeconfig", path.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("exists already"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}
