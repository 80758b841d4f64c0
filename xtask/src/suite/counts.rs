//! How many tests passed and failed.

/// The tests of programs that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TestCounts {
    pub(super) passed: u64,
    pub(super) failed: u64,
}

impl TestCounts {
    /// Adds other ones.
    pub(super) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Adds those that a line of a program reports, if it does.
    pub(super) fn add_line(&mut self, line: &str) {
        if let Some(found) = summary(line) {
            self.add(found);
        }
    }
}

/// Reads the counts in a line of cargo (`test result: ok. 4 passed; 0 failed; ...`) or node
/// (`# pass 4`), or the result of one test of Python's unittest (`test_it (...) ... ok`) or Go
/// (`--- PASS: TestIt (0.00s)`).
fn summary(line: &str) -> Option<TestCounts> {
    let number = |rest: &str| rest.trim().parse().ok();
    if let Some(passed) = line.strip_prefix("# pass ").and_then(number) {
        return Some(TestCounts { passed, failed: 0 });
    }
    if let Some(failed) = line.strip_prefix("# fail ").and_then(number) {
        return Some(TestCounts { passed: 0, failed });
    }
    if let Some((_, result)) = line.strip_prefix("test_").and_then(|rest| rest.rsplit_once(" ... "))
    {
        return match result {
            "ok" => Some(TestCounts { passed: 1, failed: 0 }),
            "FAIL" | "ERROR" => Some(TestCounts { passed: 0, failed: 1 }),
            _ => None,
        };
    }
    if line.starts_with("--- PASS: ") {
        return Some(TestCounts { passed: 1, failed: 0 });
    }
    if line.starts_with("--- FAIL: ") {
        return Some(TestCounts { passed: 0, failed: 1 });
    }
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |what: &str| counts.split("; ").find_map(|part| number(part.strip_suffix(what)?));
    Some(TestCounts { passed: count("passed")?, failed: count("failed")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_test_programs_are_read() {
        let line = "test result: FAILED. 4 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(summary(line), Some(TestCounts { passed: 4, failed: 2 }));
        assert_eq!(summary("# pass 5"), Some(TestCounts { passed: 5, failed: 0 }));
        assert_eq!(summary("# fail 2"), Some(TestCounts { passed: 0, failed: 2 }));
        let python = |result: &str| summary(&format!("test_a (test_x.X.test_a) ... {result}"));
        assert_eq!(python("ok"), Some(TestCounts { passed: 1, failed: 0 }));
        assert_eq!(python("FAIL"), Some(TestCounts { passed: 0, failed: 1 }));
        assert_eq!(python("skipped 'no'"), None);
        let go = |result: &str| summary(&format!("--- {result}: TestIt (0.00s)"));
        assert_eq!(go("PASS"), Some(TestCounts { passed: 1, failed: 0 }));
        assert_eq!(go("FAIL"), Some(TestCounts { passed: 0, failed: 1 }));
        assert_eq!(go("SKIP"), None);
        assert_eq!(summary("    --- PASS: TestIt/part (0.00s)"), None, "a part of a test");
        assert_eq!(summary("test a ... ok"), None);
        assert_eq!(summary("test result: none"), None);
    }
}
