//! The decision of a policy about a request: the checked verdict of its guest, and the change to
//! the real object.

use innkeeper_admission::patch::{JsonPatch, patch};
use innkeeper_contract::{PolicyKind, Verdict};
use innkeeper_core::audit::FIELDS_MAX;
use innkeeper_core::diff::changed_fields;
use innkeeper_core::review::{
    ChangeContext, CheckedVerdict, InvalidVerdict, ReviewInput, check, check_change,
};
use serde_json::Value;

use super::decision_kind::DecisionKind;
use super::review_failure::ReviewFailure;

/// A change of the object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The patch of the real object.
    pub patch: JsonPatch,
    /// The paths of the changed fields: one more than [`FIELDS_MAX`] if there are more, so that
    /// texts say so.
    pub fields: Vec<String>,
}

/// The decision of a policy about a request.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The verdict, with bounded texts.
    pub verdict: CheckedVerdict,
    /// The change that the verdict makes; `None` if it makes none.
    pub change: Option<Change>,
}

impl Decision {
    /// Checks the verdict of a policy of this kind about a request. `shown` is the object that the
    /// policy got, and `allow_finalizers` is `spec.allowFinalizers` of the Module.
    ///
    /// # Errors
    /// If the object of the verdict is one that the policy may not ask for.
    pub fn of(
        verdict: Verdict,
        kind: PolicyKind,
        input: &ReviewInput<'_>,
        shown: Option<&str>,
        allow_finalizers: bool,
    ) -> Result<Self, ReviewFailure> {
        let mut verdict = check(verdict, kind, input.operation)?;
        let change = match verdict.object.take() {
            None => None,
            Some(object) => Change::of(shown, object, &ChangeContext::of(input, allow_finalizers))?,
        };
        Ok(Self { verdict, change })
    }

    /// Whether the request is allowed, changed or denied.
    pub fn kind(&self) -> DecisionKind {
        match (&self.verdict.denial, &self.change) {
            (Some(_), _) => DecisionKind::Denied,
            (None, Some(_)) => DecisionKind::Changed,
            (None, None) => DecisionKind::Allowed,
        }
    }
}

impl Change {
    /// The change from the shown object to the one of a verdict; `None` if they are equal.
    fn of(
        shown: Option<&str>,
        object: Value,
        context: &ChangeContext,
    ) -> Result<Option<Self>, ReviewFailure> {
        let why = "for a request without an object";
        let shown = shown.ok_or(InvalidVerdict::UnexpectedObject { why })?;
        // The host has written the text itself: only its depth can make it unreadable.
        let before: Value =
            serde_json::from_str(shown).map_err(|_| InvalidVerdict::RequestTooDeep)?;
        let after = check_change(&before, object, context)?;
        let patch = patch(&before, &after)?;
        if patch.is_empty() {
            return Ok(None);
        }
        let fields = changed_fields(&before, &after, FIELDS_MAX + 1);
        Ok(Some(Self { patch, fields }))
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{Operation, User};
    use innkeeper_core::review::{Gvk, Gvr};
    use serde_json::json;

    use super::*;

    fn decision(shown: Option<&str>, object: Value) -> Result<Decision, ReviewFailure> {
        let user = User::default();
        let input = ReviewInput {
            operation: Operation::Create,
            kind: Gvk { group: "", version: "v1", kind: "ConfigMap" },
            resource: Gvr { group: "", version: "v1", resource: "configmaps" },
            subresource: "",
            request_kind: None,
            request_resource: None,
            name: "a",
            namespace: "n",
            user: &user,
            object: None,
            old_object: None,
            options: None,
            dry_run: false,
            background: false,
            parameters: "",
        };
        let verdict = Verdict { allowed: true, object: Some(object), ..Verdict::default() };
        Decision::of(verdict, PolicyKind::Mutate, &input, shown, false)
    }

    #[test]
    fn object_that_differs_is_a_change_and_an_equal_one_is_none() {
        let changed = decision(Some(r#"{"x":1}"#), json!({"x": 2})).unwrap();
        assert_eq!(changed.kind(), DecisionKind::Changed);
        assert_eq!(changed.change.unwrap().fields, [".x"]);
        let same = decision(Some(r#"{"x":1}"#), json!({"x": 1})).unwrap();
        assert_eq!(same.kind(), DecisionKind::Allowed);
    }

    #[test]
    fn object_for_a_request_without_one_or_with_one_too_deep_fails_by_name() {
        let reason = |shown| decision(shown, json!({})).unwrap_err().reason();
        assert_eq!(reason(None), "UnexpectedObject");
        let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        assert_eq!(reason(Some(&deep)), "RequestTooDeep");
        let large: Value = (0..2_000).map(|at| (at.to_string(), json!(at))).collect();
        let failure = decision(Some("{}"), large).unwrap_err();
        assert_eq!(failure.reason(), "TooManyChanges");
        assert!(failure.message("m").starts_with("policy m failed: the policy changes more than"));
    }
}
