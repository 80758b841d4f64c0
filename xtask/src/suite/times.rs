//! How long single tests took, computed from when the lines with the results arrive: libtest has
//! times on nightly only, and RUSTC_BOOTSTRAP would reach the compilers that tests start.

use std::time::Duration;

/// How many of the slowest tests are shown.
const SHOWN: usize = 10;

/// A line of a program's output.
#[derive(Debug)]
pub(super) struct Line {
    /// Since the start of the program.
    pub(super) at: Duration,
    pub(super) text: String,
    /// Standard output; otherwise standard error.
    pub(super) is_output: bool,
}

/// A test, with the time from when a thread of its program was free for it until its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TestTime {
    /// `tests/cluster/lease::name_of_the_test`
    pub(super) test: String,
    pub(super) time: Duration,
}

/// Computes the time of each test. `order` are the tests as the program lists them, `threads` how
/// many run at once. libtest starts them in that order: the first `threads` tests with the program,
/// each other one with the result that frees a thread. Gives nothing if a result is missing.
pub(super) fn times(order: &[String], threads: usize, lines: &[Line]) -> Vec<TestTime> {
    let results = lines.iter().filter(|line| line.is_output);
    let results: Vec<(&str, Outcome, Duration)> = results
        .filter_map(|line| result(&line.text).map(|(name, outcome)| (name, outcome, line.at)))
        .collect();
    let of = |name: &str| results.iter().find(|(test, ..)| *test == name);
    if order.iter().any(|name| of(name).is_none()) {
        return Vec::new();
    }
    // A test that is ignored takes no thread.
    let ran = |outcome: &Outcome| *outcome == Outcome::Ran;
    let ends: Vec<Duration> =
        results.iter().filter(|(_, outcome, _)| ran(outcome)).map(|(.., at)| *at).collect();
    let of_those_that_ran = order.iter().filter_map(|name| of(name).filter(|one| ran(&one.1)));
    let times = of_those_that_ran.enumerate().map(|(index, (name, _, end))| {
        let frees = index.checked_sub(threads).and_then(|freeing| ends.get(freeing));
        let start = frees.copied().unwrap_or_default();
        TestTime { test: (*name).to_owned(), time: end.saturating_sub(start) }
    });
    times.collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ran,
    Ignored,
}

/// Reads `test name ... ok`.
fn result(line: &str) -> Option<(&str, Outcome)> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match outcome {
        "ok" | "FAILED" => Outcome::Ran,
        other if other.starts_with("ignored") => Outcome::Ignored,
        _ => return None,
    };
    Some((name.strip_suffix(" - should panic").unwrap_or(name), outcome))
}

/// Reads the tests that a program lists, in its order: `name: test`.
pub(super) fn listed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// The slowest tests as lines of a table, with a head that says what the figure means.
pub(super) fn slowest(mut times: Vec<TestTime>) -> Vec<String> {
    times.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.test.cmp(&b.test)));
    let mut lines = vec![
        "The slowest tests, in seconds of wall-clock time from when a thread of the program was \
         free until the result, next to other tests:"
            .to_owned(),
    ];
    let shown = times.iter().take(SHOWN);
    lines.extend(shown.map(|one| format!("{:>8.1}  {}", one.time.as_secs_f32(), one.test)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[(u64, &str)]) -> Vec<Line> {
        let line = |(at, text): &(u64, &str)| Line {
            at: Duration::from_secs(*at),
            text: (*text).to_owned(),
            is_output: true,
        };
        texts.iter().map(line).collect()
    }

    fn seconds(order: &str, threads: usize, lines: &[Line]) -> Vec<(String, u64)> {
        let times = times(&listed(order), threads, lines);
        times.into_iter().map(|one| (one.test, one.time.as_secs())).collect()
    }

    #[test]
    fn test_starts_when_a_result_frees_a_thread() {
        let lines = lines(&[
            (0, "running 4 tests"),
            (3, "test b ... ok"),
            (5, "test c - should panic ... ok"),
            (5, "test skipped ... ignored, needs root"),
            (9, "test a ... FAILED"),
            (11, "test d ... ok"),
        ]);
        let order = "a: test\nb: test\nc: test\nskipped: test\nd: test\n\n5 tests, 0 benchmarks";
        let of = |name: &str, seconds| (name.to_owned(), seconds);
        assert_eq!(seconds(order, 2, &lines), [of("a", 9), of("b", 3), of("c", 2), of("d", 6)]);
        assert_eq!(seconds("a: test\nz: test", 2, &lines), [], "a result is missing");
    }

    #[test]
    fn slowest_come_first_and_at_most_ten_are_shown() {
        let times = (1..=12).map(|seconds| TestTime {
            test: format!("tests/x/y::t{seconds}"),
            time: Duration::from_secs(seconds),
        });
        let lines = slowest(times.collect());
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[1], "    12.0  tests/x/y::t12");
    }
}
