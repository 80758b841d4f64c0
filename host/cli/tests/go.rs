//! What a guest in Go has instead of a system: the log, and clock, randomness and memory that are
//! the same in each run. Slow, since it compiles `guest_in_go`.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of them.
#[allow(dead_code)]
mod author;
#[allow(dead_code)]
mod support;

use std::sync::OnceLock;

use author::{root, shell};
use support::{Files, innkeeper, text};

/// The component, built once.
fn guest() -> &'static str {
    static COMPONENT: OnceLock<String> = OnceLock::new();
    COMPONENT.get_or_init(|| {
        let component = concat!(env!("CARGO_TARGET_TMPDIR"), "/edges.wasm").to_owned();
        let folder = root().join("host/cli/tests/guest_in_go");
        let printed = shell(&folder, &format!("innkeeper build --out {component}"));
        assert!(!printed.contains("wasi"), "{printed}");
        component
    })
}

/// Renders a primary for which the guest does something. Returns whether it succeeded, and output
/// and errors.
fn does(case: &str) -> (bool, String) {
    let files = Files::new();
    let large = "x".repeat(100_000);
    let objects = files.write(
        "objects.yaml",
        format!(
            "apiVersion: example.com/v1\nkind: Edge\nmetadata: {{name: a, namespace: default}}\nspec: {{does: {case}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: large, namespace: default}}\ndata: {{text: {large}}}\n"
        ),
    );
    // Room for a busy machine, but for the guest that never ends.
    let timeout = if case == "forever" { "1s" } else { "20s" };
    let module = files.write(
        "module.yaml",
        format!(
            "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {{name: edges}}\nspec: {{source: {{}}, limits: {{timeout: {timeout}}}}}\n"
        ),
    );
    let now = "2026-01-01T00:00:00Z";
    let output = innkeeper(&["render", guest(), "-f", &objects, "-f", &module, "--now", now]);
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// The result of a case, in one line.
fn result(case: &str) -> String {
    let (ok, printed) = does(case);
    assert!(ok, "{case}: {printed}");
    let (_, result) = printed.split_once("#   result:").unwrap();
    let lines = result.lines().map(|line| line.trim_start_matches(['#', ' ', '-']));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// The error of a case that fails.
fn error(case: &str) -> String {
    let (ok, printed) = does(case);
    assert!(!ok, "{case}: {printed}");
    printed
}

#[test]
fn printed_text_goes_to_the_log_line_by_line() {
    let (ok, printed) = does("print");
    assert!(ok, "{printed}");
    let lines: Vec<&str> =
        printed.lines().filter_map(|line| line.strip_prefix("guest: ")).collect();
    assert_eq!(lines[0], "info: a line in parts");
    assert_eq!(lines[1], "info: und eine zweite f\u{fc}r Z\u{fc}rich");
    // A long line is cut between characters, and an unfinished one ends with the call.
    assert_eq!(lines[2..4].concat().matches('\u{fc}').count(), 2_500);
    assert_eq!(lines[4..], ["warn: a line without an end"]);
}

#[test]
fn collector_frees_memory_and_moves_no_answer_of_the_host() {
    assert_eq!(result("collect"), "704");
    assert_eq!(
        result("read"),
        "100000; 1; 'cannot read ConfigMap default/none: not found'; 'cannot read Secret default/large: the manifest does not declare the kind'"
    );
}

#[test]
fn timers_move_the_clock_of_go_and_not_the_time_of_the_run() {
    assert_eq!(result("wait"), "1h1m0s; 0s; 2026");
}

#[test]
fn goroutines_run_to_the_end() {
    assert_eq!(result("goroutines"), "4950");
}

#[test]
fn order_of_maps_and_random_numbers_are_the_same_in_each_run() {
    assert_eq!(result("random"), result("random"));
}

#[test]
fn system_has_no_environment_and_no_files() {
    assert_eq!(result("system"), "0; 0; 'open /etc/passwd: Not implemented on wasip1'");
}

#[test]
fn crash_is_reported_with_its_reason() {
    let printed = error("panic");
    assert!(printed.contains("panic: assignment to entry in nil map"), "{printed}");
    assert!(printed.contains("main.go:"), "the stack is in the log: {printed}");
    for (case, reason) in [
        ("panic-elsewhere", "its last error: panic: in another goroutine"),
        ("deadlock", "its last error: fatal error: all goroutines are asleep - deadlock!"),
        ("exit", "guest: info: the last words"),
        ("memory", "the guest wanted more than 67108864 bytes of memory"),
        ("forever", "the guest ran longer than 1s and was stopped"),
    ] {
        let printed = error(case);
        assert!(printed.contains(reason), "{case}: {printed}");
    }
}
