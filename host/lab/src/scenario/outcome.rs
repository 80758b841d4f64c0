//! The results of cases.

use std::fmt::Write as _;
use std::time::Duration;

/// Why a case failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The step, by number and name.
    pub step: String,
    /// The reason in one line.
    pub message: String,
    /// The difference between expected and observed state, and other details; may be empty.
    pub details: String,
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The case.
    pub name: String,
    /// Its duration in real time.
    pub took: Duration,
    /// Its duration in virtual time.
    pub passed: Option<Duration>,
    /// The failure, if it failed.
    pub failure: Option<Failure>,
    /// Files that were updated.
    pub updated: Vec<String>,
}

impl Failure {
    /// A failure without details.
    pub fn new(step: impl Into<String>, message: impl Into<String>) -> Self {
        Self { step: step.into(), message: message.into(), details: String::new() }
    }
}

impl Outcome {
    /// The result of a case that did not run.
    pub fn failed(name: &str, failure: Failure) -> Self {
        Self {
            name: name.to_owned(),
            took: Duration::ZERO,
            passed: None,
            failure: Some(failure),
            updated: Vec::new(),
        }
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            // XML cannot represent other control characters.
            one if one.is_control() && !matches!(one, '\n' | '\t') => out.push('\u{fffd}'),
            one => out.push(one),
        }
    }
    out
}

/// Outcomes as `JUnit` XML.
pub fn junit(suite: &str, outcomes: &[Outcome]) -> String {
    let failures = outcomes.iter().filter(|one| one.failure.is_some()).count();
    let took: Duration = outcomes.iter().map(|one| one.took).sum();
    let (count, took, suite) = (outcomes.len(), took.as_secs_f64(), escaped(suite));
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let figures = format!(
        "name=\"{suite}\" tests=\"{count}\" failures=\"{failures}\" errors=\"0\" time=\"{took:.3}\""
    );
    let _ = write!(out, "<testsuites {figures}>\n  <testsuite {figures}>\n");
    for one in outcomes {
        let (name, took) = (escaped(&one.name), one.took.as_secs_f64());
        let _ =
            write!(out, "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{took:.3}\"");
        let Some(Failure { step, message, details }) = &one.failure else {
            out += "/>\n";
            continue;
        };
        let message = escaped(&format!("{step}: {message}"));
        let _ = write!(
            out,
            ">\n      <failure message=\"{message}\">{}</failure>\n    </testcase>\n",
            escaped(details)
        );
    }
    out + "  </testsuite>\n</testsuites>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_written_as_junit() {
        let passed = Outcome {
            name: "good".to_owned(),
            took: Duration::from_millis(12),
            passed: None,
            failure: None,
            updated: Vec::new(),
        };
        let failure = Failure {
            step: "01-change".to_owned(),
            message: "\"a\" < b".to_owned(),
            details: "-x\n+y & z".to_owned(),
        };
        let failed = Outcome { name: "bad".to_owned(), failure: Some(failure), ..passed.clone() };
        assert_eq!(
            junit("s", &[passed, failed]),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"s\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"0.024\">\n  \
             <testsuite name=\"s\" tests=\"2\" failures=\"1\" errors=\"0\" time=\"0.024\">\n    \
             <testcase classname=\"s\" name=\"good\" time=\"0.012\"/>\n    \
             <testcase classname=\"s\" name=\"bad\" time=\"0.012\">\n      \
             <failure message=\"01-change: &quot;a&quot; &lt; b\">-x\n+y &amp; z</failure>\n    \
             </testcase>\n  </testsuite>\n</testsuites>\n"
        );
    }
}
