//! `innkeeper simulate --faults`, with a client that is a shell script.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A process that ends with the test.
struct Simulate(Child);

impl Drop for Simulate {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn simulate(folder: &Path, plan: &str, arguments: &[&str]) -> Command {
    let path = folder.join("plan.yaml");
    std::fs::write(&path, plan).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.args(["simulate", "--kubeconfig"]).arg(folder.join("kc")).arg("--faults").arg(path);
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn error(folder: &Path, plan: &str) -> String {
    let output = simulate(folder, plan, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn client_is_killed_after_its_write_and_started_again() {
    // Given a client that creates a ConfigMap, and a plan that ends it before the answer.
    let folder = tempfile::tempdir().unwrap();
    let plan = "faults: [{fault: {crash: {point: beforeAnswer}}},
        {requests: {resource: secrets}, fault: {hang: {}}}]";
    let script = r#"
        field() { sed -n "s/.*\"$1\": \"\(.*\)\".*/\1/p" "$KUBECONFIG" | head -n 1; }
        host=$(field server | sed 's/https/http/'); token=$(field token)
        echo "run of $KUBECONFIG" >&2
        exec 3<>"/dev/tcp/127.0.0.1/${host##*:}"
        body='{"metadata": {"generateName": "made-"}}'
        printf 'POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n' >&3
        printf 'Authorization: Bearer %s\r\nContent-Type: application/json\r\n' "$token" >&3
        printf 'Content-Length: %s\r\n\r\n%s' "${#body}" "$body" >&3
        read -r line <&3
        [ -n "$line" ] && echo "answer $line" >&2
        sleep 600
    "#;
    let path = folder.path().join("client.sh");
    std::fs::write(&path, script).unwrap();
    let command = format!("exec bash '{}'", path.display());
    let mut child =
        Simulate(simulate(folder.path(), plan, &["--faults-exec", &command]).spawn().unwrap());
    // Then its first run gets no answer, and its second one does.
    let mut lines = BufReader::new(child.0.stderr.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let kubeconfig = folder.path().join("kc.client");
    let run = format!("run of {}", kubeconfig.display());
    assert_eq!([next(), next()], [run.clone(), run]);
    assert!(next().starts_with("answer HTTP/1.1 201"));
    // And a signal ends all, with the kubeconfigs.
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    let mut output = String::new();
    child.0.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(output.contains("the client crashes after it, before the answer"), "{output}");
    // And the end names the fault for which no request came.
    let (_, pending) = output.split_once("have not happened:\n").unwrap();
    let expected = "  write of secrets number 1: the request is lost, and no answer comes\n";
    assert_eq!(pending, expected);
    assert!(!kubeconfig.exists() && !folder.path().join("kc").exists());
}

#[test]
fn plan_that_cannot_be_used_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let crash = error(folder.path(), "faults: [{fault: {crash: {point: beforeAnswer}}}]");
    assert!(crash.contains("add `--faults-exec COMMAND`"), "{crash}");
    let unknown = error(folder.path(), "faults: [{fault: {explode: {}}}]");
    assert!(unknown.contains("plan.yaml") && unknown.contains("explode"), "{unknown}");
    assert!(!folder.path().join("kc").exists());
}
