//! What the preview of a revision found.

use innkeeper_modules::module::{
    CandidateStatus, ExampleStatus, ModuleStatus, PolicyPreviewStatus,
};

use innkeeper_core::counted;

use crate::out::Page;

/// The changes that a revision makes, according to its preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PreviewedChanges {
    primaries: u32,
    previewed: u32,
    creates: u32,
    changes: u32,
    deletes: u32,
    failures: u32,
    examples: Vec<ExampleStatus>,
    policy: Option<PolicyPreviewStatus>,
}

impl PreviewedChanges {
    /// Those of a candidate revision, if the host has previewed it.
    pub(crate) fn of_candidate(candidate: &CandidateStatus) -> Option<Self> {
        Some(Self {
            primaries: candidate.primaries?,
            previewed: candidate.previewed?,
            creates: candidate.creates.unwrap_or_default(),
            changes: candidate.changes.unwrap_or_default(),
            deletes: candidate.deletes.unwrap_or_default(),
            failures: candidate.failures.unwrap_or_default(),
            examples: candidate.examples.clone(),
            policy: candidate.policy.clone(),
        })
    }

    /// Those of the active revision, if the status has its preview. `digest` leaves out the preview
    /// of another revision.
    pub(crate) fn of_active(status: &ModuleStatus, digest: Option<&str>) -> Option<Self> {
        let preview = status.preview.as_ref()?;
        let is_other = digest.is_some_and(|digest| digest != preview.digest);
        (!is_other).then(|| Self {
            primaries: preview.primaries,
            previewed: preview.previewed,
            creates: preview.creates,
            changes: preview.changes,
            deletes: preview.deletes,
            failures: preview.failures,
            examples: preview.examples.clone(),
            policy: preview.policy.clone(),
        })
    }

    /// Adds the counts and examples to a page, indented. The preview of the active revision is of
    /// the time before its activation.
    pub(crate) fn add_to(&self, page: &mut Page, is_active: bool) {
        let Self { primaries, previewed, creates, changes, deletes, failures, examples, policy } =
            self;
        let before = if is_active { " before its activation" } else { "" };
        // Of a guest that only reviews, the counts of primaries say nothing.
        if *primaries > 0 || policy.is_none() {
            let primaries = counted(*primaries, "primary", "primaries");
            page.line(format_args!(
                "  preview{before} for {previewed} of {primaries}: {creates} to create, {changes} to change, {deletes} to delete, {failures} failing"
            ));
        }
        for example in examples {
            let (action, fields) = (example.action.to_lowercase(), example.fields.join(" "));
            page.line(format_args!("  {action:8} {} {fields}", example.object));
        }
        if let Some(policy) = policy {
            add_policy(page, policy, before);
        }
    }
}

/// Adds what a policy decides otherwise to a page, indented.
pub(crate) fn add_policy(page: &mut Page, preview: &PolicyPreviewStatus, before: &str) {
    let PolicyPreviewStatus { objects, reviewed, requests, .. } = preview;
    let objects = counted(*objects, "existing object", "existing objects");
    let requests = counted(*requests, "recent request", "recent requests");
    page.line(format_args!(
        "  reviews{before} of {reviewed} of {objects} and {requests}: {} newly denied, {} newly allowed, {} changed differently, {} newly failing",
        preview.newly_denied, preview.newly_allowed, preview.newly_changed, preview.newly_failing
    ));
    for example in &preview.examples {
        let (decision, details) = (example.decision.to_lowercase(), example.details.join("; "));
        page.line(format_args!("  {decision:8} {} {details}", example.object));
    }
    for left_out in &preview.left_out {
        page.line(format_args!("  left out {left_out}"));
    }
}
