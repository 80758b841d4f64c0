//! Cases of `innkeeper check`, as `--scenario` plays them again.

use std::time::Duration;

use innkeeper_check::{Case, Trace, Violation};
use innkeeper_core::foreign;

/// The longest error, in bytes.
const ERROR_BYTES_MAX: usize = 4_096;

/// The most steps of a case that is read.
const STEPS_MAX: usize = 1_000;

/// Reads a case. What is read is printed as it was, in JSON and in YAML, and its trace has only
/// visible characters. An error is short.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let case = match Case::read(text) {
        Ok(case) => case,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty());
            assert!(text.len() <= ERROR_BYTES_MAX, "{} bytes: {text}", text.len());
            return;
        }
    };
    assert!(case.scenario.steps.len() <= STEPS_MAX);
    let json = serde_json::to_string(&case).expect("a case is printed as JSON");
    assert_eq!(Case::read(&json).as_ref(), Ok(&case), "a case changes in JSON: {json}");
    // As a value: the library does not print enums within enums.
    let value = serde_json::to_value(&case).expect("a case is a value");
    let yaml = serde_yaml_ng::to_string(&value).expect("a case is printed as YAML");
    assert_eq!(Case::read(&yaml).as_ref(), Ok(&case), "a case changes in YAML: {yaml}");

    let violation = Violation { what: "it differs".to_owned(), details: Vec::new() };
    let trace = Trace {
        case,
        violation,
        writes: Vec::new(),
        read_last: Vec::new(),
        more_writes: 0,
        tried: 0,
        took: Duration::ZERO,
    };
    let page = trace.to_string();
    let is_safe = |c: char| c == '\n' || foreign::is_visible(c);
    assert!(page.chars().all(is_safe), "a trace sends commands to the terminal: {page:?}");
}
