//! What the preview of a revision found.

use innkeeper_modules::module::{CandidateStatus, ExampleStatus, ModuleStatus};

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
        })
    }

    /// Adds the counts and examples to a page, indented. The preview of the active revision is of
    /// the time before its activation.
    pub(crate) fn add_to(&self, page: &mut Page, is_active: bool) {
        let Self { primaries, previewed, creates, changes, deletes, failures, examples } = self;
        let before = if is_active { " before its activation" } else { "" };
        let primaries = counted(*primaries, "primary", "primaries");
        page.line(format_args!(
            "  preview{before} for {previewed} of {primaries}: {creates} to create, {changes} to change, {deletes} to delete, {failures} failing"
        ));
        for example in examples {
            let (action, fields) = (example.action.to_lowercase(), example.fields.join(" "));
            page.line(format_args!("  {action:8} {} {fields}", example.object));
        }
    }
}
