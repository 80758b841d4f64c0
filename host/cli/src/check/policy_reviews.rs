//! The answers of a set's policies about one request, whose object policies change.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use innkeeper_core::foreign;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::documents::{DocumentId, Documents};
use super::orders::{Reviews, Step};
use super::policy_set::PolicySet;
use super::set_member::SetMember;
use crate::file_objects::FileObjects;
use crate::objects::InputObject;
use crate::review::answer::{Decision, Outcome};
use crate::review::request::Request;
use crate::review::reviewer::{Reviewer, before};

/// How much later a second pass is, so that a policy that writes the time is found.
const LATER: SignedDuration = SignedDuration::from_mins(1);

/// The longest message of a policy in a result, in bytes.
const MESSAGE_BYTES_MAX: usize = 1_000;

/// Why a review has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoResult {
    /// The policy, if it is the reason.
    pub(super) policy: Option<usize>,
    pub(super) why: String,
}

impl NoResult {
    fn of_host(why: impl fmt::Display) -> Self {
        Self { policy: None, why: why.to_string() }
    }
}

/// What is the same for all requests.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) set: &'a PolicySet,
    /// The objects that policies read.
    pub(super) objects: &'a [InputObject],
    /// The same as each policy reads them.
    pub(super) views: &'a [FileObjects],
    pub(super) now: Timestamp,
    /// When the command stops to ask.
    pub(super) end: Instant,
}

/// The answers about one request.
pub(super) struct PolicyReviews<'a> {
    given: Given<'a>,
    request: &'a Request<'a>,
    documents: Documents,
    /// By the policy, the object, and whether it is a second pass.
    known: BTreeMap<(usize, DocumentId, bool), Step>,
    /// What each policy reads, at the time of each pass.
    views: BTreeMap<(usize, bool), FileObjects>,
}

impl<'a> PolicyReviews<'a> {
    /// Begins with the object of a request. Returns its id too.
    ///
    /// # Errors
    /// If the object is too large.
    pub(super) fn begin(
        given: Given<'a>,
        request: &'a Request<'a>,
    ) -> Result<(Self, DocumentId), NoResult> {
        let (known, views) = (BTreeMap::new(), BTreeMap::new());
        let mut reviews = Self { given, request, documents: Documents::default(), known, views };
        let object = request.input("").object.map_or("null", |object| object.get());
        let object: Value = serde_json::from_str(object).map_err(NoResult::of_host)?;
        let first = reviews.documents.keep(&object).map_err(NoResult::of_host)?;
        Ok((reviews, first))
    }

    /// An object that policies made.
    pub(super) fn value(&self, id: DocumentId) -> Value {
        self.documents.value(id)
    }

    fn ask(&mut self, policy: usize, object: DocumentId, again: bool) -> Result<Step, NoResult> {
        if let Some(known) = self.known.get(&(policy, object, again)) {
            return Ok(known.clone());
        }
        if Instant::now() >= self.given.end {
            return Err(NoResult::of_host("the time of --timeout is over"));
        }
        let set = self.given.set;
        let Some(member) = set.members.get(policy) else {
            return Err(NoResult::of_host("no such policy"));
        };
        let step = self.review(member, policy, object, again)?;
        self.known.insert((policy, object, again), step.clone());
        Ok(step)
    }

    fn review(
        &mut self,
        member: &'a SetMember,
        policy: usize,
        object: DocumentId,
        again: bool,
    ) -> Result<Step, NoResult> {
        let Some(manifest) = member.policy() else { return Ok(Step::Made(object)) };
        let request = self.request.with_object(&self.documents.text(object));
        let request = request.map_err(NoResult::of_host)?;
        let mut value = self.documents.value(object);
        if !is_selected(member, &request, &value) {
            return Ok(Step::Made(object));
        }
        let now = if again { self.given.now.saturating_add(LATER) } else { Ok(self.given.now) };
        let reviewer = Reviewer {
            guest: &member.guest,
            policy: manifest,
            module: Some(&member.given),
            given: self.given.objects,
            unserved: &[],
            parameters: &member.parameters,
            now: now.map_err(NoResult::of_host)?,
        };
        let Some(objects) = self.given.views.get(policy) else { return Ok(Step::Made(object)) };
        let view = self.views.entry((policy, again)).or_insert_with(|| {
            let view = objects.clone().at(reviewer.now);
            before(view, &request)
        });
        let decision = match reviewer.outcome(&request, view) {
            Outcome::Decided(decision) => *decision,
            Outcome::NotReviewed(_) => return Ok(Step::Made(object)),
            Outcome::Failed(why) => {
                let why = foreign::message(why, MESSAGE_BYTES_MAX);
                return Err(NoResult { policy: Some(policy), why });
            }
        };
        let Decision { verdict, change } = decision;
        if let Some(denial) = verdict.denial {
            let message = foreign::message(denial.message, MESSAGE_BYTES_MAX);
            return Ok(Step::Denied(message.into()));
        }
        let Some(change) = change else { return Ok(Step::Made(object)) };
        // The patch is of the object that the policy sees; it is applied to the whole one.
        change.patch.apply(&mut value).map_err(NoResult::of_host)?;
        Ok(Step::Made(self.documents.keep(&value).map_err(NoResult::of_host)?))
    }
}

/// Whether selector and conditions of a policy hold for an object. Of conditions that cannot be
/// evaluated here, such as those with the variable `authorizer`, it says so.
fn is_selected(member: &SetMember, request: &Request<'_>, object: &Value) -> bool {
    if member.selects_all() {
        return true;
    }
    let document = admission_request(request);
    let old = &document["oldObject"];
    (member.selects(object) || (!old.is_null() && member.selects(old)))
        && innkeeper_simulator::conditions_hold(member.conditions(), &document).unwrap_or(true)
}

/// The member `request` of an AdmissionReview, for conditions in CEL.
fn admission_request(request: &Request<'_>) -> Value {
    let input = request.input("");
    json!({
        "kind": input.kind, "resource": input.resource, "subResource": input.subresource,
        "requestKind": input.kind, "requestResource": input.resource,
        "name": input.name, "namespace": input.namespace, "operation": input.operation,
        "userInfo": input.user, "object": input.object, "oldObject": input.old_object,
        "dryRun": input.dry_run, "options": input.options,
    })
}

impl Reviews for PolicyReviews<'_> {
    type Error = NoResult;

    fn step(&mut self, policy: usize, object: DocumentId) -> Result<Step, NoResult> {
        self.ask(policy, object, false)
    }

    fn later(&mut self, policy: usize, object: DocumentId) -> Result<Step, NoResult> {
        self.ask(policy, object, true)
    }

    fn denial(&mut self, policy: usize, object: DocumentId) -> Result<Option<Arc<str>>, NoResult> {
        Ok(match self.ask(policy, object, false)? {
            Step::Made(_) => None,
            Step::Denied(message) => Some(message),
        })
    }
}
