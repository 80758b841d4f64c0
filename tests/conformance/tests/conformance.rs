//! Kubernetes' own specs pass on the simulator, except those of the list.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use innkeeper_conformance::{Options, Outcome, check_list, run};

/// Writes to standard error directly: the output of a test is shown only when it fails.
fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[test]
fn list_has_every_spec_with_a_verdict_that_the_control_plane_does_not_contradict() {
    let problems = check_list(&mut say).unwrap();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn specs_of_kubernetes_pass_on_the_simulator_as_listed() {
    let report = run(&Options::default(), &say).unwrap();
    for name in &report.repeated {
        say(&format!("passed when repeated: {name}"));
    }
    let deviations: Vec<_> = report.deviations.iter().map(ToString::to_string).collect();
    assert!(
        deviations.is_empty(),
        "{} specs are not as tests/conformance/specs.yaml expects:\n{}",
        deviations.len(),
        deviations.join("\n")
    );
    assert!(report.count(Outcome::Passed) > 50, "only {} passed", report.count(Outcome::Passed));
}
