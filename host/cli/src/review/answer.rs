//! What the policy decided about the requests, as text and JSON.

use innkeeper_admission::patch::JsonPatch;
use innkeeper_core::review::CheckedVerdict;
use serde_json::{Value, json};

use super::kubectl;
use crate::out::Page;

/// The result of one request.
pub(crate) struct Answer {
    /// The request, as in `CREATE Deployment web/shop`.
    pub(crate) request: String,
    pub(crate) outcome: Outcome,
}

/// What became of a request.
pub(crate) enum Outcome {
    /// The policy decided.
    Decided(Box<Decision>),
    /// Why there is no verdict that counts.
    Failed(String),
    /// Why the policy is not asked.
    NotReviewed(&'static str),
}

/// A verdict as the host takes it, and its change of the object.
pub(crate) struct Decision {
    pub(crate) verdict: CheckedVerdict,
    pub(crate) change: Option<Change>,
}

/// A change of the object.
pub(crate) struct Change {
    /// The changed fields, at most some.
    pub(crate) fields: Vec<String>,
    /// From the object as the policy sees it.
    pub(crate) patch: JsonPatch,
}

impl Outcome {
    fn name(&self) -> &'static str {
        match self {
            Self::Decided(decision) if decision.verdict.denial.is_some() => "denied",
            Self::Decided(decision) if decision.change.is_some() => "allowed, with changes",
            Self::Decided(_) => "allowed",
            Self::Failed(_) => "failed",
            Self::NotReviewed(_) => "not reviewed",
        }
    }
}

/// The answers as text. `webhook` is the name by which the API server names the policy.
pub(super) fn page(answers: &[Answer], webhook: &str) -> Page {
    let mut page = Page::default();
    for Answer { request, outcome } in answers {
        page.line(format_args!("{request}: {}", outcome.name()));
        match outcome {
            Outcome::Decided(decision) => decided(&mut page, decision, webhook),
            Outcome::Failed(why) => {
                page.line(format_args!("  {why}"));
                page.line("  The failure policy of the Module decides about the request.");
            }
            Outcome::NotReviewed(why) => page.line(format_args!("  {why}")),
        }
    }
    page
}

fn decided(page: &mut Page, Decision { verdict, change }: &Decision, webhook: &str) {
    for warning in &verdict.warnings {
        page.line(format_args!("  Warning: {warning}"));
    }
    if let Some(denial) = &verdict.denial {
        for line in kubectl::error(webhook, denial) {
            // A message may have several lines; none of them begins like another answer.
            for line in line.lines() {
                page.line(format_args!("  {line}"));
            }
        }
    }
    if let Some(change) = change {
        for field in &change.fields {
            page.line(format_args!("  changes {field}"));
        }
        page.line(format_args!("  patch {}", change.patch.text()));
    }
    for (key, value) in &verdict.audit_annotations {
        page.line(format_args!("  audit annotation {key}: {value}"));
    }
    if verdict.left_out > 0 {
        page.line(format_args!(
            "  the host leaves out {} causes, warnings and annotations, which are too many or too long",
            verdict.left_out
        ));
    }
}

/// The answers as JSON.
pub(super) fn json(answers: &[Answer]) -> Value {
    let all = answers.iter().map(|Answer { request, outcome }| {
        let mut answer = json!({"request": request, "result": outcome.name()});
        match outcome {
            Outcome::Decided(decision) => {
                let Decision { verdict, change } = &**decision;
                if let Some(denial) = &verdict.denial {
                    answer["message"] = json!(denial.message);
                    answer["reason"] = json!(denial.reason);
                    answer["code"] = json!(denial.code);
                    answer["causes"] = json!(denial.causes);
                }
                answer["warnings"] = json!(verdict.warnings);
                answer["auditAnnotations"] = json!(verdict.audit_annotations);
                if let Some(change) = change {
                    answer["changedFields"] = json!(change.fields);
                    answer["patch"] = serde_json::from_str(change.patch.text()).unwrap_or_default();
                }
            }
            Outcome::Failed(why) => answer["message"] = json!(why),
            Outcome::NotReviewed(why) => answer["message"] = json!(why),
        }
        answer
    });
    Value::Array(all.collect())
}
