//! Secrets that a Module grants to its guest whole (`spec.secretNames`).
//!
//! The host reads them live, as the module's account, before each run of an active or previous
//! revision, and drops them after it: the caches never hold their bytes. All other guests, the same
//! guest for any other Secret, and every preview see digests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_cluster::ApiError;
use innkeeper_contract::{Condition, Event, Kind};
use innkeeper_core::object::Entry;
use innkeeper_core::{Manager, Object, ObjectKey, object};
use innkeeper_sandbox::Outcome;
use serde_json::value::RawValue;

use crate::modules::open_revision::OpenRevision;
use crate::reconcile::problem::{Problem, Retry};
use crate::redact::{Redactor, VALUES_BYTES_MAX};

/// The kind of Secrets.
static SECRET: LazyLock<Kind> = LazyLock::new(|| Kind::namespaced("v1", "Secret", "secrets"));

/// Secrets with their bytes, for one run, and what masks them in texts. Shows its names only.
#[derive(Default)]
pub struct GrantedSecrets {
    secrets: BTreeMap<ObjectKey, Object>,
    redactor: Redactor,
}

/// What of a Secret is searched for in texts.
#[derive(serde::Deserialize)]
struct Values {
    #[serde(rename = "type", default)]
    type_: String,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl GrantedSecrets {
    /// Grants nothing: for a preview, whose guest nobody has approved.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Grants a Secret with this value.
    #[cfg(test)]
    pub fn of_value(value: &[u8]) -> Self {
        let key = ObjectKey::new("n", "s");
        let object = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"n","uid":"u","resourceVersion":"1"}}"#;
        let secrets = Object::decode(&SECRET, object, None).map(|object| (key, object));
        Self { secrets: secrets.into_iter().collect(), redactor: Redactor::new([value]) }
    }

    /// Reads what the Module grants, in the namespace of a primary.
    ///
    /// # Errors
    /// If one cannot be read, holds a token of the API server, or if all together are too large.
    /// One that is not there is none.
    pub async fn read(active: &OpenRevision, primary: &ObjectKey) -> Result<Self, Problem> {
        let mut granted = Self::default();
        let names = &active.spec().secret_names;
        if names.is_empty() || active.kind(&SECRET.api_version, &SECRET.kind).is_none() {
            return Ok(granted);
        }
        let mut values = Vec::new();
        let mut bytes = 0;
        for name in names {
            let key = ObjectKey::new(primary.namespace(), name);
            let found: Box<RawValue> = match active.client.get_as(&SECRET, &key).await {
                Ok(found) => found,
                Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => continue,
                Err(error) => return Err(refused(&key, &error)),
            };
            // The error is dropped: it might quote the Secret.
            let Ok(read) = serde_json::from_str::<Values>(found.get()) else { continue };
            let Ok(secret) = Object::decode(&SECRET, found.get(), None) else { continue };
            // With a token, a guest's output could give away an identity.
            if object::is_token_type(&read.type_) {
                let problem = format!("it has the type {}, a token of the API server", read.type_);
                return Err(not_grantable(&key, &problem));
            }
            // Otherwise a guest could read a value source by the name of its copy.
            if is_copy_of(active.name(), &secret) {
                return Err(not_grantable(&key, "it is a copy of a value source"));
            }
            let decoded = read.data.into_values().map(|value| {
                // The API server keeps nothing but base64 there; what it kept otherwise is masked
                // as it is.
                STANDARD.decode(&value).unwrap_or(value.into_bytes())
            });
            let before = values.len();
            values.extend(decoded);
            bytes += values.iter().skip(before).map(Vec::len).sum::<usize>();
            if bytes > VALUES_BYTES_MAX {
                return Err(too_large());
            }
            granted.secrets.insert(key, secret);
        }
        granted.redactor = Redactor::new(values.iter().map(Vec::as_slice));
        Ok(granted)
    }

    /// A Secret with its bytes, if it is granted.
    pub fn get(&self, kind: &Kind, key: &ObjectKey) -> Option<&Object> {
        if *kind == *SECRET { self.secrets.get(key) } else { None }
    }

    /// A text with what was granted masked.
    pub fn mask(&self, text: &str) -> String {
        self.redactor.mask(text)
    }

    /// Masks what was granted in the texts of a run's outcome. The desired objects and the members
    /// of the status stay: the Module lets the guest write the bytes there.
    pub fn mask_outcome(&self, outcome: &mut Outcome) {
        if self.secrets.is_empty() {
            return;
        }
        let (conditions, events) = match outcome {
            Outcome::Complete(desired) | Outcome::Partial(desired) => {
                (&mut desired.conditions, &mut desired.events)
            }
            Outcome::Failed(failure) => {
                self.redactor.mask_word(&mut failure.reason);
                self.redactor.mask_in(&mut failure.message);
                (&mut failure.conditions, &mut failure.events)
            }
        };
        self.mask_conditions(conditions);
        for event in events {
            self.mask_event(event);
        }
    }

    /// Masks what was granted in conditions. Of several that have one type then, the first stays.
    pub fn mask_conditions(&self, conditions: &mut Vec<Condition>) {
        if self.secrets.is_empty() {
            return;
        }
        for condition in conditions.iter_mut() {
            self.redactor.mask_word(&mut condition.type_);
            self.redactor.mask_word(&mut condition.reason);
            self.redactor.mask_in(&mut condition.message);
        }
        let mut has_masked = false;
        conditions.retain(|one| {
            one.type_ != crate::redact::MASKED_WORD || !std::mem::replace(&mut has_masked, true)
        });
    }

    /// Masks what was granted in an Event.
    pub fn mask_event(&self, event: &mut Event) {
        self.redactor.mask_word(&mut event.reason);
        self.redactor.mask_in(&mut event.message);
    }

    /// Masks what was granted in a problem, which may quote the guest.
    #[must_use]
    pub fn mask_problem(&self, mut problem: Problem) -> Problem {
        self.redactor.mask_word(&mut problem.reason);
        self.redactor.mask_in(&mut problem.message);
        problem
    }
}

fn refused(key: &ObjectKey, error: &ApiError) -> Problem {
    Problem {
        refusal: None,
        object_ref: None,
        reason: error.reason().to_owned(),
        message: format!("Secret {key}, which the Module grants, cannot be read: {error}"),
        retry: Retry::Backoff,
    }
}

/// Whether the host made a Secret for a primary of this module and copied values into it.
fn is_copy_of(module: &str, secret: &Object) -> bool {
    let is_made_by_module = |entry: &Entry| match &entry.manager {
        Manager::Primary { module: maker, .. } => maker == module,
        _ => false,
    };
    secret.has_copied_values() && secret.entries.iter().any(is_made_by_module)
}

fn not_grantable(key: &ObjectKey, problem: &str) -> Problem {
    Problem {
        refusal: None,
        object_ref: None,
        reason: "SecretNotGrantable".to_owned(),
        message: format!(
            "Secret {key} cannot be granted: {problem}; remove it from the Module's spec.secretNames"
        ),
        retry: Retry::Backoff,
    }
}

fn too_large() -> Problem {
    Problem {
        refusal: None,
        object_ref: None,
        reason: "SecretTooLarge".to_owned(),
        message: format!(
            "the Secrets that the Module grants hold more than {} KiB together; name fewer or smaller ones in spec.secretNames",
            VALUES_BYTES_MAX >> 10
        ),
        retry: Retry::Backoff,
    }
}

impl fmt::Debug for GrantedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.secrets.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{ConditionStatus, Desired, EventType, Failure};

    use super::*;

    fn granted() -> GrantedSecrets {
        GrantedSecrets::of_value(b"Hunter2Hunter2")
    }

    fn condition(type_: &str, reason: &str, message: &str) -> Condition {
        Condition {
            type_: type_.into(),
            status: ConditionStatus::True,
            reason: reason.into(),
            message: message.into(),
        }
    }

    #[test]
    fn condition_types_and_reasons_with_a_value_become_one_word() {
        let mut conditions = vec![
            condition("Hunter2Hunter2", "IsHunter2Hunter2", "<Hunter2Hunter2>"),
            condition("Ready", "Good", "good"),
            condition("AlsoHunter2Hunter2", "Good", "SHVudGVyMkh1bnRlcjI"),
        ];
        granted().mask_conditions(&mut conditions);
        let expected = vec![
            condition("Redacted", "Redacted", "<[redacted]>"),
            condition("Ready", "Good", "good"),
        ];
        assert_eq!(conditions, expected, "of one type the first stays: a list has each type once");
    }

    #[test]
    fn outcomes_are_masked_but_for_what_is_desired() {
        let event = Event {
            type_: EventType::Normal,
            reason: "Hunter2Hunter2".into(),
            message: "48756e7465723248756E74657232".into(),
        };
        let status = serde_json::json!({ "value": "Hunter2Hunter2" });
        let desired = Desired {
            status: status.as_object().cloned(),
            events: vec![event.clone()],
            ..Desired::default()
        };
        let mut outcome = Outcome::Partial(desired.clone());
        granted().mask_outcome(&mut outcome);
        let Outcome::Partial(masked) = outcome else { panic!("{outcome:?}") };
        assert_eq!(masked.status, desired.status);
        assert_eq!(
            (&*masked.events[0].reason, &*masked.events[0].message),
            ("Redacted", "[redacted]")
        );
        let failure = Failure {
            reason: "Hunter2Hunter2".into(),
            message: "at Hunter2Hunter2".into(),
            events: vec![event],
            ..Failure::default()
        };
        let mut outcome = Outcome::Failed(failure);
        granted().mask_outcome(&mut outcome);
        let Outcome::Failed(masked) = outcome else { panic!("{outcome:?}") };
        assert_eq!((&*masked.reason, &*masked.message), ("Redacted", "at [redacted]"));
        assert_eq!(masked.events[0].reason, "Redacted");
    }
}
