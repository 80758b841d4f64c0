//! What `innkeeper check -o json` printed.

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CheckResult {
    /// How many scenarios were played.
    pub(super) scenarios: u64,
    /// Their virtual time, in seconds.
    pub(super) simulated_seconds: f64,
    /// The broken laws, each with the document that `innkeeper check --scenario` plays again.
    pub(super) broken: Vec<(String, Value)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    scenarios: u64,
    simulated_seconds: f64,
    laws: Vec<LawResult>,
}

#[derive(Deserialize)]
struct LawResult {
    law: String,
    violation: Option<Violation>,
}

#[derive(Deserialize)]
struct Violation {
    case: Value,
}

impl CheckResult {
    /// Parses the document.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn parse(text: &[u8]) -> Result<Self> {
        let document: Document =
            serde_json::from_slice(text).context("innkeeper check printed no result")?;
        let broken = document.laws.into_iter();
        let broken = broken.filter_map(|one| Some((one.law, one.violation?.case))).collect();
        let Document { scenarios, simulated_seconds, .. } = document;
        Ok(Self { scenarios, simulated_seconds, broken })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn broken_laws_are_kept_with_their_cases() {
        let text = json!({"seed": 1, "scenarios": 9, "simulatedSeconds": 30.5, "laws": [
            {"law": "crash", "violation": {"what": "x", "case": {"law": "crash"}}},
            {"law": "scope"}]});
        let result = CheckResult::parse(text.to_string().as_bytes()).unwrap();
        assert_eq!(result.broken, [("crash".to_owned(), json!({"law": "crash"}))]);
        assert_eq!(result.scenarios, 9);
        assert!(CheckResult::parse(b"").is_err());
    }
}
