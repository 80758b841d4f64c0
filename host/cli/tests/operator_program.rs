//! The program `innkeeper-operator` of images.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::process::Command;

const OPERATOR: &str = env!("CARGO_BIN_EXE_innkeeper-operator");
const INNKEEPER: &str = env!("CARGO_BIN_EXE_innkeeper");

fn printed(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn it_has_the_same_command_run_and_no_other() {
    let of_operator = printed(OPERATOR, &["run", "--help"]);
    let run = of_operator.replace("innkeeper-operator", "innkeeper");
    assert_eq!(run, printed(INNKEEPER, &["run", "--help"]));
    let help = printed(OPERATOR, &["--help"]);
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names: Vec<_> =
        commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["run", "help"]);
    let output = Command::new(OPERATOR).arg("check").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("unrecognized subcommand 'check'"), "{error}");
}

#[test]
fn it_contains_no_simulator() {
    let names_a_schema = |program: &str| {
        let schema = b"io.k8s.api.apps.v1.DeploymentSpec";
        memchr::memmem::find(&std::fs::read(program).unwrap(), schema).is_some()
    };
    assert!(names_a_schema(INNKEEPER), "the simulator has the schemas of Kubernetes");
    assert!(!names_a_schema(OPERATOR));
}
