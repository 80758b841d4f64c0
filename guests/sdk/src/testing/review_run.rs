#![allow(
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "assertions for tests, which fail by a panic"
)]

use innkeeper_contract::{Operation, PolicyKind, ReviewRequest};
use serde_json::Value;

use crate::{LogLevel, RawVerdict};

/// The members of `metadata` that a policy can change.
const METADATA: [&str; 3] = ["annotations", "finalizers", "labels"];

/// The result of a review, with assertions. Each returns the run, so that calls can be chained, and
/// panics with the actual result if it is false.
#[derive(Clone, Debug)]
pub struct ReviewRun {
    end: End,
    /// The object of the request, with the changes of the policy.
    object: Option<Value>,
    log: Vec<(LogLevel, String)>,
}

#[derive(Clone, Debug)]
enum End {
    Decided(innkeeper_contract::Verdict),
    Failed(String),
    NotReviewed,
}

impl ReviewRun {
    /// Parses the verdict as strictly as the host does.
    pub(super) fn new(
        raw: &RawVerdict,
        kind: PolicyKind,
        request: &ReviewRequest,
        log: Vec<(LogLevel, String)>,
    ) -> Self {
        let mut object = request.object.clone();
        let end = match raw {
            RawVerdict::Decided(text) => {
                let verdict = match serde_json::from_str(text) {
                    Ok(verdict) => verdict,
                    Err(error) => panic!("the host would refuse this verdict ({error}): {text}"),
                };
                check(&verdict, kind, request);
                if verdict.object.is_some() {
                    object.clone_from(&verdict.object);
                }
                End::Decided(verdict)
            }
            RawVerdict::Failed(why) => End::Failed(why.clone()),
        };
        Self { end, object, log }
    }

    /// Creates the run of a request that no rule of the policy matches.
    pub(super) fn not_reviewed(object: Option<Value>) -> Self {
        Self { end: End::NotReviewed, object, log: Vec::new() }
    }

    /// Returns the object that the policy gave, if it gave one.
    pub(super) fn changed(&self) -> Option<&Value> {
        match &self.end {
            End::Decided(verdict) => verdict.object.as_ref(),
            End::Failed(_) | End::NotReviewed => None,
        }
    }

    /// Asserts that the policy allows the request.
    #[track_caller]
    pub fn is_allowed(&self) -> &Self {
        assert!(self.decided().allowed, "the request is not allowed: it is {}", self.name());
        self
    }

    /// Asserts that the policy denies the request with a message that contains this text.
    #[track_caller]
    pub fn is_denied(&self, text: &str) -> &Self {
        let verdict = self.decided();
        assert!(!verdict.allowed, "the request is not denied: it is {}", self.name());
        assert!(verdict.message.contains(text), "the message has no {text:?}: {}", verdict.message);
        self
    }

    /// Asserts that the policy could not decide, and that its reason contains this text.
    #[track_caller]
    pub fn is_failed(&self, text: &str) -> &Self {
        match &self.end {
            End::Failed(why) if why.contains(text) => self,
            _ => panic!("the review did not fail because of {text:?}: it is {}", self.name()),
        }
    }

    /// Asserts that the API server does not ask the policy, since no rule matches the request.
    #[track_caller]
    pub fn is_not_reviewed(&self) -> &Self {
        match &self.end {
            End::NotReviewed => self,
            _ => panic!("a rule matches the request: it is {}", self.name()),
        }
    }

    /// Asserts that the denial names this field.
    #[track_caller]
    pub fn has_cause(&self, field: &str) -> &Self {
        let causes = &self.decided().causes;
        assert!(causes.iter().any(|one| one.field == field), "no cause {field} in {causes:?}");
        self
    }

    /// Asserts that a warning contains this text.
    #[track_caller]
    pub fn warns(&self, text: &str) -> &Self {
        let warnings = &self.decided().warnings;
        assert!(warnings.iter().any(|one| one.contains(text)), "no {text:?} in {warnings:?}");
        self
    }

    /// Asserts that the policy adds this annotation to the audit event.
    #[track_caller]
    pub fn audits(&self, key: &str, value: &str) -> &Self {
        let annotations = &self.decided().audit_annotations;
        let found = annotations.get(key).map(String::as_str);
        assert_eq!(found, Some(value), "{key} in {annotations:?}");
        self
    }

    /// Asserts that the object, with the changes of the policy, has this value at a JSON pointer
    /// (`/spec/replicas`).
    #[track_caller]
    pub fn with(&self, pointer: &str, expected: impl Into<Value>) -> &Self {
        let expected = expected.into();
        let found = self.object().pointer(pointer);
        assert!(
            found == Some(&expected),
            "{pointer} is not {expected} but {}; the object is {:#}",
            found.map_or_else(|| "missing".to_owned(), Value::to_string),
            self.object()
        );
        self
    }

    /// Asserts that the object, with the changes of the policy, has no value at a JSON pointer.
    #[track_caller]
    pub fn without(&self, pointer: &str) -> &Self {
        let found = self.object().pointer(pointer);
        assert!(found.is_none(), "{pointer} is set: {found:?}");
        self
    }

    /// Returns the object of the request with the changes of the policy; null for `DELETE`.
    pub fn object(&self) -> &Value {
        self.object.as_ref().unwrap_or(&Value::Null)
    }

    /// Returns the message of a denial; empty for another result.
    pub fn message(&self) -> &str {
        match &self.end {
            End::Decided(verdict) => &verdict.message,
            End::Failed(_) | End::NotReviewed => "",
        }
    }

    /// Returns the lines that the policy has logged.
    pub fn logged(&self) -> &[(LogLevel, String)] {
        &self.log
    }

    #[track_caller]
    fn decided(&self) -> &innkeeper_contract::Verdict {
        match &self.end {
            End::Decided(verdict) => verdict,
            End::Failed(_) | End::NotReviewed => {
                panic!("the policy did not decide: the request is {}", self.name())
            }
        }
    }

    fn name(&self) -> String {
        match &self.end {
            End::Decided(verdict) if verdict.allowed => "allowed".to_owned(),
            End::Decided(verdict) => format!("denied: {}", verdict.message),
            End::Failed(why) => format!("failed: {why}"),
            End::NotReviewed => "not reviewed, since no rule matches it".to_owned(),
        }
    }
}

/// Panics where the host would refuse a verdict: an object that the policy may not give, and a
/// change of what identifies the object.
fn check(verdict: &innkeeper_contract::Verdict, kind: PolicyKind, request: &ReviewRequest) {
    let Some(object) = &verdict.object else { return };
    let may_change =
        kind == PolicyKind::Mutate && verdict.allowed && request.operation != Operation::Delete;
    assert!(
        may_change,
        "the host would refuse this object: only a policy of Describe::mutating_policy changes one, when it allows the request, and not for DELETE: {object:#}"
    );
    let before = request.object.as_ref().unwrap_or(&Value::Null);
    let metadata = |object: &Value| {
        let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
        metadata.retain(|member, _| !METADATA.contains(&member.as_str()));
        metadata
    };
    let is_same = object["apiVersion"] == before["apiVersion"]
        && object["kind"] == before["kind"]
        && metadata(object) == metadata(before);
    assert!(
        is_same,
        "the host would refuse this object: of apiVersion, kind and metadata, a policy changes only labels, annotations and finalizers: {object:#}"
    );
}
