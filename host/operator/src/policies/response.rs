//! The response to a request, from the decision of a policy and its mode.

use std::collections::BTreeMap;

use innkeeper_admission::{AdmissionResponse, Cause, Denial, Mode, Reviewed};
use innkeeper_core::audit::named_fields;
use innkeeper_core::foreign;
use innkeeper_core::review::texts::{
    AUDIT_ANNOTATION_BYTES_MAX, AUDIT_ANNOTATIONS_MAX, WARNING_BYTES_MAX, WARNINGS_MAX,
};
use innkeeper_core::review::{CheckedDenial, CheckedVerdict};

use super::decision::Decision;

impl Decision {
    /// The response in a mode. Only the mode `Enforce` denies and changes.
    pub fn into_response(self, module: &str, mode: Mode) -> AdmissionResponse {
        let consequence = self.consequence();
        let Self { verdict, change } = self;
        let CheckedVerdict { denial, warnings, audit_annotations, .. } = verdict;
        match mode {
            Mode::Enforce => AdmissionResponse {
                denial: denial.map(denied),
                warnings,
                audit_annotations,
                patch: change.map(|change| change.patch.text().to_owned()),
            },
            Mode::Warn => {
                let warning = consequence.map(|(_, text)| format!("policy {module} would {text}"));
                let warnings = with_warning(warning, warnings);
                AdmissionResponse { warnings, audit_annotations, ..AdmissionResponse::allowed() }
            }
            Mode::Audit => audited(consequence, audit_annotations),
        }
    }

    /// The consequence in the mode `Enforce`, if any: the key of an audit annotation, and a text.
    fn consequence(&self) -> Option<(&'static str, String)> {
        if let Some(denial) = &self.verdict.denial {
            return Some(("would-deny", format!("deny: {}", denial.message)));
        }
        let fields = &self.change.as_ref()?.fields;
        Some(("would-change", format!("change {}", named_fields(fields))))
    }
}

/// The response to a request without a verdict; `why` is for the user. Only in the mode `Enforce`
/// the failure policy applies: in the others no request fails.
pub fn failed(mode: Mode, why: String, is_overloaded: bool) -> Reviewed {
    let none = BTreeMap::new();
    match mode {
        Mode::Enforce if is_overloaded => Reviewed::Overloaded(why),
        Mode::Enforce => Reviewed::Failed(why),
        Mode::Warn => Reviewed::Answer(AdmissionResponse {
            warnings: with_warning(Some(why), Vec::new()),
            ..AdmissionResponse::allowed()
        }),
        Mode::Audit => Reviewed::Answer(audited(Some(("failed", why)), none)),
    }
}

fn denied(denial: CheckedDenial) -> Denial {
    let CheckedDenial { message, reason, code, causes } = denial;
    let causes = causes.into_iter().map(|cause| Cause {
        field: cause.field,
        message: cause.message,
        reason: cause.reason,
    });
    Denial { message, reason, code, causes: causes.collect() }
}

/// Puts a warning of the host before those of the policy.
fn with_warning(warning: Option<String>, warnings: Vec<String>) -> Vec<String> {
    let warning = warning.map(|text| foreign::one_line(text, WARNING_BYTES_MAX - "...".len()));
    warning.into_iter().chain(warnings).take(WARNINGS_MAX).collect()
}

fn audited(
    consequence: Option<(&'static str, String)>,
    mut annotations: BTreeMap<String, String>,
) -> AdmissionResponse {
    if let Some((key, text)) = consequence {
        annotations.remove(key);
        while annotations.len() >= AUDIT_ANNOTATIONS_MAX {
            annotations.pop_last();
        }
        let text = foreign::one_line(text, AUDIT_ANNOTATION_BYTES_MAX - "...".len());
        annotations.insert(key.to_owned(), text);
    }
    AdmissionResponse { audit_annotations: annotations, ..AdmissionResponse::allowed() }
}

#[cfg(test)]
mod tests;
