//! Asks a policy about requests as the host does, with the objects of files as the cluster.

use std::fmt;

use innkeeper_admission::patch::patch;
use innkeeper_contract::{Manifest, Operation, PolicyManifest};
use innkeeper_core::diff::changed_fields;
use innkeeper_core::review::{ChangeContext, check, check_change, document, is_excluded};
use innkeeper_sandbox::{Guest, ReviewOutcome};
use jiff::Timestamp;
use serde_json::Value;

use super::answer::{Answer, Change, Decision, Outcome};
use super::request::Request;
use crate::file_objects::FileObjects;
use crate::given_module::GivenModule;
use crate::objects::{self, InputObject};
use crate::out;

/// The most changed fields that are shown.
const FIELDS_MAX: usize = 50;

/// A policy and what it gets in addition to a request.
pub(crate) struct Reviewer<'a> {
    pub(crate) guest: &'a Guest,
    pub(crate) policy: &'a PolicyManifest,
    pub(crate) module: Option<&'a GivenModule>,
    pub(crate) given: &'a [InputObject],
    pub(crate) unserved: &'a [String],
    pub(crate) parameters: &'a str,
    pub(crate) now: Timestamp,
}

impl Reviewer<'_> {
    /// Says what the command does not do.
    pub(crate) fn print_notes(&self) {
        let of_module = self.module.map(GivenModule::conditions).unwrap_or_default();
        let conditions = self.policy.match_conditions.len() + of_module;
        if conditions > 0 {
            out::eprint(&format!(
                "innkeeper: note: the API server evaluates {conditions} conditions in CEL before it asks the policy; this command takes them as met"
            ));
        }
        if let Some(note) = self.module.and_then(GivenModule::policy_note) {
            out::eprint(&format!("innkeeper: note: {note}"));
        }
    }

    /// Asks the policy about one request.
    ///
    /// # Errors
    /// If an object of the files cannot be read.
    pub(super) fn review(&self, request: &Request<'_>) -> anyhow::Result<Answer> {
        let outcome = self.outcome(request, &mut self.view(request)?);
        Ok(Answer { request: request.to_string(), outcome })
    }

    /// Asks the policy, which reads the cluster that [`before`] gives, about one request.
    pub(crate) fn outcome(&self, request: &Request<'_>, view: &mut FileObjects) -> Outcome {
        self.decide(request, view).unwrap_or_else(|outcome| outcome)
    }

    fn decide(&self, request: &Request<'_>, view: &mut FileObjects) -> Result<Outcome, Outcome> {
        let failed = |error: &dyn fmt::Display| Outcome::Failed(error.to_string());
        let input = request.input(self.parameters);
        if is_excluded(&input, None) {
            return Err(Outcome::NotReviewed("no policy reviews such requests"));
        }
        let leaves_out = |module: &GivenModule| {
            !input.namespace.is_empty() && !module.includes_namespace(input.namespace)
        };
        if self.module.is_some_and(leaves_out) {
            return Err(Outcome::NotReviewed("spec.namespaces of the Module leaves it out"));
        }
        let limits = self.guest.limits();
        let document = document(&input, &objects::digest, limits.memory_bytes)
            .map_err(|error| failed(&error))?;
        let reviewed = self.guest.review(&document.text, view).map_err(|error| failed(&error))?;
        let verdict = match reviewed.outcome {
            ReviewOutcome::Decided(verdict) => verdict,
            ReviewOutcome::Failed(why) => return Err(Outcome::Failed(why)),
        };
        let mut verdict =
            check(verdict, self.policy.kind, input.operation).map_err(|error| failed(&error))?;
        let change = match (verdict.object.take(), &document.object) {
            (Some(after), Some(before)) => {
                let finalizers = self.module.is_some_and(GivenModule::allows_finalizers);
                let context = ChangeContext::of(&input, finalizers);
                change(before, after, &context).map_err(Outcome::Failed)?
            }
            _ => None,
        };
        Ok(Outcome::Decided(Box::new(Decision { verdict, change })))
    }

    /// The cluster at the time of a request.
    ///
    /// # Errors
    /// If an object of the files cannot be read.
    fn view(&self, request: &Request<'_>) -> anyhow::Result<FileObjects> {
        let view = view_of(self.guest.manifest(), self.given, self.unserved, self.now)?;
        Ok(before(view, request))
    }
}

/// The objects of the files that a guest may read, at a time.
///
/// # Errors
/// If an object cannot be read or is given twice, or the guest declares no unserved kind.
pub(crate) fn view_of(
    manifest: &Manifest,
    given: &[InputObject],
    unserved: &[String],
    now: Timestamp,
) -> anyhow::Result<FileObjects> {
    let owned = manifest.owned.iter().map(|owned| &owned.kind);
    let kinds = manifest.primary.iter().chain(owned).chain(&manifest.reads);
    FileObjects::new(kinds, given, unserved, now)
}

/// The cluster before a request: an object that it creates is not there yet.
pub(crate) fn before(mut view: FileObjects, request: &Request<'_>) -> FileObjects {
    if request.operation == Operation::Create && !request.background {
        view.remove(request.place);
    }
    view
}

/// The change from the shown object to that of a verdict; none if they are equal.
fn change(before: &str, after: Value, context: &ChangeContext) -> Result<Option<Change>, String> {
    let before: Value = serde_json::from_str(before).map_err(|error| error.to_string())?;
    let after = check_change(&before, after, context).map_err(|error| error.to_string())?;
    let patch = patch(&before, &after).map_err(|error| error.to_string())?;
    let fields = changed_fields(&before, &after, FIELDS_MAX);
    Ok((!patch.is_empty()).then_some(Change { fields, patch }))
}
