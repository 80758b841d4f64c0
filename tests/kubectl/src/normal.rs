//! What kubectl printed, without what chance and the clock put into it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// A pattern that is known to be one.
fn pattern(text: &str) -> Regex {
    #[allow(clippy::unwrap_used, reason = "the patterns are written here")]
    Regex::new(text).unwrap()
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));

/// What is replaced, in this order.
static REPLACED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0000 UTC", "TIME"),
        (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d \+0000", "TIME"),
        // A client that is asked to end a watch does not always know that it was.
        (r"(?m)^[EWI]\d{4} .*very short watch.*\n", ""),
        // At the end of its time it may begin its watch once more before it notices the end.
        (r#"(?m)^[EWI]\d{4} .*"Failed to watch" err="context deadline exceeded".*\n"#, ""),
        (r"10\.96\.\d+\.\d+", "ADDRESS"),
        (r"127\.0\.0\.1:\d+", "SERVER"),
        // The folders of `kubectl diff`, and the time of its files.
        (r"(LIVE|MERGED)-\d+", "$1"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+\d{4}", "TIME"),
        (r#"(?i)(resource ?version"?: *"?)\d+"#, "${1}VERSION"),
        (r"\b\d+(ms|s|m|h|d|y)(\d+(s|m|h|d))?\b", "AGE"),
        // How wide a column is depends on how old things are.
        (r"[ \t]{2,}", "  "),
        (r"-{2,}", "--"),
    ]
    .map(|(text, by)| (pattern(text), by))
    .into()
});

/// The uids that one side has had so far, by the order in which they were seen.
#[derive(Debug, Default)]
pub struct Names {
    uids: BTreeMap<String, usize>,
}

impl Names {
    /// The comparable form of a text.
    pub fn normal(&mut self, text: &str) -> String {
        let uids = &mut self.uids;
        let mut text = UID
            .replace_all(text, |found: &Captures<'_>| {
                let next = uids.len();
                format!("UID-{}", uids.entry(found[0].to_owned()).or_insert(next))
            })
            .into_owned();
        for (pattern, by) in REPLACED.iter() {
            text = pattern.replace_all(&text, *by).into_owned();
        }
        let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        // Of several mistakes the server tells in the order of a Go map.
        for causes in
            lines.chunk_by_mut(|one, other| one.starts_with("* ") && other.starts_with("* "))
        {
            causes.sort_unstable();
        }
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_the_same_read_the_same() {
        let mut names = Names::default();
        let one = names.normal("NAME   AGE\na      5s\nresourceVersion: \"12\" 10.96.0.1");
        let other = names.normal("NAME   AGE  \na      12m30s\nresourceVersion: \"7\" 10.96.3.4");
        assert_eq!(one, other);
        let uid = "uid: 0a1b2c3d-0000-4000-8000-000000000001";
        assert_eq!(names.normal(uid), "uid: UID-0");
        assert_eq!(names.normal(&uid.replace("01", "02")), "uid: UID-1");
        assert_eq!(names.normal(uid), "uid: UID-0");
    }

    #[test]
    fn watch_that_begins_at_the_end_of_its_time_is_left_out() {
        let line = "E1123 17:53:22.750930  26584 reflector.go:204] \"Failed to watch\" \
                    err=\"context deadline exceeded\" type=\"x\"\n";
        let end = "error: timed out waiting for the condition";
        assert_eq!(Names::default().normal(&format!("{line}{end}")), end);
        let refused = line.replace("context deadline exceeded", "forbidden");
        assert!(Names::default().normal(&refused).contains("forbidden"));
    }
}
