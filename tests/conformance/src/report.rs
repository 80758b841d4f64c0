//! Ginkgo's JSON report, of a dry run and of a run of one spec.

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

/// A spec of the program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spec {
    /// The texts of its containers and its own, joined by spaces.
    pub name: String,
}

/// How a spec ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Every assertion held.
    Passed,
    /// An assertion failed, or the time was over.
    Failed,
    /// The spec found that it does not apply to this cluster.
    Skipped,
}

/// The result of one spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecResult {
    /// How the spec ended.
    pub outcome: Outcome,
    /// Why it failed or was skipped; empty if it passed.
    pub message: String,
    /// File and line of the failure in the sources of Kubernetes.
    pub place: String,
    /// Wall-clock time, in whole seconds.
    pub seconds: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Vec<SpecReport>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SpecReport {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    #[serde(default)]
    run_time: u64,
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    #[serde(default)]
    message: String,
    location: Option<Location>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Location {
    #[serde(default)]
    file_name: String,
    #[serde(default)]
    line_number: u32,
}

impl SpecReport {
    fn name(&self) -> String {
        let mut texts = self.container_hierarchy_texts.clone().unwrap_or_default();
        texts.push(self.leaf_node_text.clone());
        texts.join(" ")
    }
}

/// The specs of the report of a dry run, by name.
///
/// # Errors
/// If the bytes are no report of ginkgo.
pub(crate) fn specs(json: &[u8]) -> Result<Vec<Spec>> {
    let mut specs: Vec<Spec> = reports(json)?
        .iter()
        .filter(|report| report.leaf_node_type == "It")
        .map(|report| Spec { name: report.name() })
        .collect();
    specs.sort();
    Ok(specs)
}

/// The result of the spec `name` in the report of a run of this spec.
///
/// # Errors
/// If the bytes are no report of ginkgo, or the report does not have the spec, or the spec did not
/// run.
pub(crate) fn result(json: &[u8], name: &str) -> Result<SpecResult> {
    let reports = reports(json)?;
    let report =
        reports.iter().find(|report| report.leaf_node_type == "It" && report.name() == name);
    let report = report.with_context(|| format!("ginkgo's report has no spec `{name}`"))?;
    let outcome = match (report.state.as_str(), &report.failure) {
        ("passed", _) => Outcome::Passed,
        // Ginkgo also calls the specs skipped that the focus leaves out, without a message.
        ("skipped", Some(_)) => Outcome::Skipped,
        ("skipped" | "pending", _) => bail!("the program did not run `{name}`"),
        _ => Outcome::Failed,
    };
    let (message, place) = match &report.failure {
        Some(failure) => (failure.message.clone(), failure.place()),
        None => (String::new(), String::new()),
    };
    Ok(SpecResult { outcome, message, place, seconds: report.run_time.div_ceil(NANOSECONDS) })
}

/// The nanoseconds of a second, in which ginkgo counts.
const NANOSECONDS: u64 = 1_000_000_000;

impl Failure {
    fn place(&self) -> String {
        match &self.location {
            Some(at) => format!("{}:{}", at.file_name, at.line_number),
            None => String::new(),
        }
    }
}

fn reports(json: &[u8]) -> Result<Vec<SpecReport>> {
    let suites: Vec<Suite> =
        serde_json::from_slice(json).context("reading ginkgo's JSON report")?;
    Ok(suites.into_iter().flat_map(|suite| suite.spec_reports).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"[{"SpecReports": [
        {"ContainerHierarchyTexts": null, "LeafNodeType": "SynchronizedBeforeSuite",
         "LeafNodeText": "", "State": "passed", "RunTime": 5},
        {"ContainerHierarchyTexts": ["[sig-b] Watchers", "of events"], "LeafNodeType": "It",
         "LeafNodeText": "see all [Conformance]", "State": "passed", "RunTime": 1500000000},
        {"ContainerHierarchyTexts": ["[sig-a] Quotas"], "LeafNodeType": "It",
         "LeafNodeText": "count", "State": "failed", "RunTime": 1,
         "Failure": {"Message": "no quota", "Location": {"FileName": "e2e/q.go", "LineNumber": 7}}},
        {"ContainerHierarchyTexts": ["[sig-a] Quotas"], "LeafNodeType": "It",
         "LeafNodeText": "wait", "State": "timedout", "RunTime": 1,
         "Failure": {"Message": "A suite timeout occurred"}},
        {"ContainerHierarchyTexts": [], "LeafNodeType": "It", "LeafNodeText": "alpha",
         "State": "skipped", "RunTime": 1, "Failure": {"Message": "not served"}},
        {"ContainerHierarchyTexts": [], "LeafNodeType": "It", "LeafNodeText": "not chosen",
         "State": "skipped", "RunTime": 0}
    ]}]"#;

    fn outcome(name: &str) -> Outcome {
        result(REPORT.as_bytes(), name).unwrap().outcome
    }

    #[test]
    fn specs_are_named_by_their_containers_and_texts_and_the_setup_is_no_spec() {
        let names: Vec<_> =
            specs(REPORT.as_bytes()).unwrap().into_iter().map(|spec| spec.name).collect();
        assert_eq!(
            names,
            [
                "[sig-a] Quotas count",
                "[sig-a] Quotas wait",
                "[sig-b] Watchers of events see all [Conformance]",
                "alpha",
                "not chosen"
            ]
        );
    }

    #[test]
    fn result_has_the_message_the_place_and_the_seconds() {
        let found = result(REPORT.as_bytes(), "[sig-a] Quotas count").unwrap();
        assert_eq!(found.outcome, Outcome::Failed);
        assert_eq!((&*found.message, &*found.place), ("no quota", "e2e/q.go:7"));
        let found =
            result(REPORT.as_bytes(), "[sig-b] Watchers of events see all [Conformance]").unwrap();
        assert_eq!((found.outcome, found.seconds), (Outcome::Passed, 2));
    }

    #[test]
    fn spec_whose_time_is_over_failed_and_one_that_does_not_apply_is_skipped() {
        assert_eq!(outcome("[sig-a] Quotas wait"), Outcome::Failed);
        assert_eq!(outcome("alpha"), Outcome::Skipped);
    }

    #[test]
    fn spec_that_the_program_left_out_is_an_error_and_not_a_skip() {
        assert!(result(REPORT.as_bytes(), "not chosen").is_err());
        assert!(result(REPORT.as_bytes(), "unknown").is_err());
        assert!(result(b"{}", "alpha").is_err());
    }
}
