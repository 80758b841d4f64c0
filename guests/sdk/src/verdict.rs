use innkeeper_contract::Cause;
use serde_json::Value;

use crate::ReadError;

/// The HTTP status of an object that breaks a rule about its content.
const UNPROCESSABLE: i64 = 422;

/// The result of a review: the policy allows the request, denies it, or cannot decide.
///
/// ```
/// use innkeeper_sdk::Verdict;
///
/// let verdict = Verdict::invalid("the label team is missing; add it to metadata.labels")
///     .cause("metadata.labels", "has no team");
/// assert!(!verdict.is_allowed());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    answer: Answer,
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// Boxed, so that a `Result` with a verdict as its error stays small.
    Decided(Box<innkeeper_contract::Verdict>),
    Failed(String),
}

/// A [`Verdict`] as the text that the host receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawVerdict {
    /// A `verdict` document.
    Decided(String),
    /// Why the policy cannot decide, for people.
    Failed(String),
}

impl Verdict {
    /// Allows the request.
    pub fn allow() -> Self {
        Self::decided(innkeeper_contract::Verdict { allowed: true, ..Default::default() })
    }

    /// Allows the request, and replaces its object. Only for a policy whose manifest is made with
    /// [`Describe::mutating_policy`](crate::Describe::mutating_policy), and not for a `DELETE`.
    ///
    /// `object` is the whole object: [`Review::raw`](crate::Review::raw) with changes. An object
    /// that the guest serialises from a struct of its own would lose each field that the struct
    /// lacks. The host refuses a change of the name, the namespace, and other metadata than labels
    /// and annotations.
    pub fn change(object: Value) -> Self {
        Self::decided(innkeeper_contract::Verdict {
            allowed: true,
            object: Some(object),
            ..Default::default()
        })
    }

    /// Denies the request with the status 403, `Forbidden`.
    ///
    /// `message` says, for the user who sent the request, what is wrong and what to do. The same
    /// request gives the same text: no times, no random order.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::decided(innkeeper_contract::Verdict { message: message.into(), ..Default::default() })
    }

    /// Denies the request with the status 422, `Invalid`: the object breaks a rule about its
    /// content. Arguments as for [`deny`](Self::deny).
    ///
    /// For this reason, `kubectl` shows the [causes](Self::cause) in place of the message if there
    /// are any.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::decided(innkeeper_contract::Verdict {
            message: message.into(),
            reason: "Invalid".to_owned(),
            code: Some(UNPROCESSABLE),
            ..Default::default()
        })
    }

    /// Does not decide: the failure policy of the Module decides about the request.
    ///
    /// `why` says, for the administrator of the cluster, what failed, why, and what to do.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { answer: Answer::Failed(why.into()) }
    }

    /// Sets the reason of a denial for programs, one of Kubernetes' words such as `Invalid`.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        self.with(|verdict| verdict.reason = reason.into())
    }

    /// Sets the HTTP status of a denial: 400 to 599.
    pub fn code(self, code: u16) -> Self {
        self.with(|verdict| verdict.code = Some(code.into()))
    }

    /// Adds a field at fault: its path, for example `spec.containers[0].image`, and what is wrong
    /// with it. The host passes on at most 32.
    pub fn cause(self, field: impl Into<String>, message: impl Into<String>) -> Self {
        let cause = Cause { field: field.into(), message: message.into(), reason: String::new() };
        self.with(|verdict| verdict.causes.push(cause))
    }

    /// Adds a line that the client shows to its user, whether the request is allowed or denied. The
    /// host passes on at most 16 lines of 256 bytes.
    pub fn warn(self, line: impl Into<String>) -> Self {
        self.with(|verdict| verdict.warnings.push(line.into()))
    }

    /// Adds an annotation to the audit event of the API server, for example `images` with the
    /// value `2 without a digest`. The host passes on at most 16, of 1,024 bytes each.
    pub fn audit(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|verdict| drop(verdict.audit_annotations.insert(key.into(), value.into())))
    }

    /// Returns whether the policy allows the request. It is false if the policy cannot decide.
    pub fn is_allowed(&self) -> bool {
        matches!(&self.answer, Answer::Decided(verdict) if verdict.allowed)
    }

    /// Returns the document that the host receives.
    pub(crate) fn into_raw(self) -> RawVerdict {
        match self.answer {
            Answer::Decided(verdict) => match serde_json::to_string(&verdict) {
                Ok(text) => RawVerdict::Decided(text),
                Err(error) => RawVerdict::Failed(format!(
                    "the verdict of the policy cannot be serialized as JSON: {error}"
                )),
            },
            Answer::Failed(why) => RawVerdict::Failed(why),
        }
    }

    fn decided(verdict: innkeeper_contract::Verdict) -> Self {
        Self { answer: Answer::Decided(Box::new(verdict)) }
    }

    /// Changes a decision. A policy that cannot decide has nothing to add to.
    fn with(mut self, change: impl FnOnce(&mut innkeeper_contract::Verdict)) -> Self {
        if let Answer::Decided(verdict) = &mut self.answer {
            change(verdict);
        }
        self
    }
}

/// A policy cannot decide when it cannot read an object that it needs.
impl From<ReadError> for Verdict {
    fn from(error: ReadError) -> Self {
        Self::failed(format!("a read failed: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, json};

    use super::*;

    fn document(verdict: Verdict) -> Value {
        match verdict.into_raw() {
            RawVerdict::Decided(text) => from_str(&text).unwrap(),
            RawVerdict::Failed(why) => panic!("{why}"),
        }
    }

    #[test]
    fn verdict_is_the_document_of_the_contract() {
        assert_eq!(document(Verdict::allow()), json!({"allowed": true}));
        assert_eq!(document(Verdict::deny("no")), json!({"allowed": false, "message": "no"}),);
        assert_eq!(
            document(Verdict::invalid("no").cause("spec.x", "is 1").warn("w").audit("k", "v")),
            json!({
                "allowed": false, "message": "no", "reason": "Invalid", "code": 422,
                "causes": [{"field": "spec.x", "message": "is 1"}],
                "warnings": ["w"], "auditAnnotations": {"k": "v"},
            }),
        );
        assert_eq!(
            document(Verdict::deny("later").reason("TooManyRequests").code(429)),
            json!({"allowed": false, "message": "later", "reason": "TooManyRequests", "code": 429}),
        );
        let object = json!({"kind": "Any"});
        assert_eq!(
            document(Verdict::change(object.clone())),
            json!({"allowed": true, "object": object}),
        );
    }

    #[test]
    fn failed_verdict_stays_a_failure_whatever_is_added() {
        let verdict = Verdict::failed("no answer").warn("w").code(500).cause("spec", "x");
        assert!(!verdict.is_allowed());
        assert_eq!(verdict.into_raw(), RawVerdict::Failed("no answer".to_owned()));
    }
}
