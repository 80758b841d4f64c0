//! `innkeeper demo` as people call it, with the components that `cargo xtask guests` has built.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// What each story comes to, in order.
const COMES_TO: [&str; 8] = [
    "= All are ready,",
    "= production is answered by example-maintpage-maintpage-pod",
    "= production is answered by production-",
    "= podroute-service is answered by 5 pods",
    "= podroute-service is answered by 2 pods",
    "= foodb is answered by foodb-",
    "= It was rehearsed, serves,",
    "= Nothing of it is left.",
];

fn demo(cache: &Path, arguments: &[&str]) -> Command {
    let components = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/target/components");
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.args(["demo", "--components", components, "--cache-dir"]).arg(cache).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The kubeconfig that it tells of in its second line.
fn kubeconfig(line: &str) -> &Path {
    Path::new(line.trim().strip_prefix("export KUBECONFIG=").unwrap())
}

/// What the API server answers over plain HTTP.
fn asked(config: &Value, path: &str) -> Value {
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let token = config["users"][0]["user"]["token"].as_str().unwrap();
    let address = server.strip_prefix("https://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let begin = answer.find('{').unwrap();
    let end = answer.rfind('}').unwrap();
    serde_json::from_str(&answer[begin..=end]).unwrap()
}

#[test]
fn the_stories_go_as_they_should_and_the_cluster_answers_others_until_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("code");

    let output = demo(&cache, &["--once", "--fast"]).output().unwrap();
    let (said, complaints) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{complaints}{said}");
    let mut lines = said.lines();
    for story in COMES_TO {
        assert!(lines.any(|line| line.starts_with(story)), "{story}, in order, in:\n{said}");
    }
    assert!(!kubeconfig(said.lines().nth(1).unwrap()).exists());

    // At the pace of the clock, somebody else looks at it.
    let mut child = demo(&cache, &[]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |what: &str| loop {
        let line = lines.next().expect("it goes on").unwrap();
        if line.contains(what) {
            return line;
        }
    };
    let line = until("export KUBECONFIG=");
    let path = kubeconfig(&line);
    until("All are ready");
    let config: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let modules = asked(&config, "/apis/innkeeper.dev/v1alpha1/modules");
    assert_eq!(modules["items"].as_array().unwrap().len(), 6, "{modules:#}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn without_components_it_says_what_builds_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    let output = command.args(["demo", "--components"]).arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cargo xtask guests"), "{said}");
}
