//! The status of a primary, as the host writes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_contract::{Condition, ConditionStatus, ReadinessState};
use innkeeper_core::object::{Entry, Operation};
use innkeeper_core::{LastRun, Manager, Object, control, readiness, status};
use innkeeper_operator::evaluate::Evaluated;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::picture::Picture;
use crate::subject::Subject;
use crate::variants;

/// Writes statuses into pictures.
pub(super) struct StatusUpdate {
    /// The schema of the status, if the kind has one.
    schema: Option<Value>,
    /// The status of a decorated primary belongs to its own controller.
    decorates: bool,
}

impl StatusUpdate {
    pub(super) fn of(subject: &Subject) -> Self {
        let schema = variants::schema_of(subject);
        let schema = schema.and_then(|schema| schema.pointer("/properties/status").cloned());
        Self { schema, decorates: control::decorates(&subject.manifest) }
    }

    /// Writes the status after a round that changed so many objects. Returns whether it differs.
    pub(super) fn write(
        &self,
        picture: &mut Picture,
        evaluated: &Evaluated,
        changed: usize,
        now: Timestamp,
    ) -> bool {
        if self.decorates {
            return false;
        }
        let guest = evaluated.answer.status.clone().unwrap_or_default();
        let written = status::status(&status::Input {
            object: &picture.primary,
            guest: Some(&guest),
            conditions: &conditions(picture, evaluated),
            manage: true,
            schema: self.schema.as_ref(),
            last_run: LastRun {
                ok: evaluated.desired.objects.len(),
                changed,
                skipped: 0,
                failures: 0,
            },
            run_result: None,
            now,
        });
        let Some(status) = written else { return false };
        let primary = with_status(&picture.primary, status);
        picture.primary = Arc::new(primary);
        true
    }
}

/// The conditions of the guest, and those that the host adds.
fn conditions(picture: &Picture, evaluated: &Evaluated) -> Vec<Condition> {
    let unready = picture.objects.iter().find_map(|(object_ref, object)| {
        let readiness = readiness::of(&object_ref.kind, object);
        let is_ready = readiness.state == ReadinessState::Ready;
        (!is_ready).then(|| format!("{object_ref}: {}", readiness.message))
    });
    let (status, reason) = match &unready {
        Some(_) => (ConditionStatus::False, "InProgress"),
        None => (ConditionStatus::True, "ObjectsReady"),
    };
    let synced = condition("Synced", ConditionStatus::True, "Applied", String::new());
    let ready = condition("Ready", status, reason, unready.unwrap_or_default());
    let guest = evaluated.answer.conditions.iter().cloned();
    let mut types = BTreeSet::new();
    let all = std::iter::once(synced).chain(guest).chain([ready]);
    all.filter(|one| types.insert(one.type_.to_ascii_lowercase())).collect()
}

fn condition(type_: &str, status: ConditionStatus, reason: &str, message: String) -> Condition {
    Condition { type_: type_.to_owned(), status, reason: reason.to_owned(), message }
}

/// The primary with a status that the host has applied.
fn with_status(primary: &Object, status: Value) -> Object {
    let members = status.as_object().into_iter().flatten();
    let fields: Map<String, Value> = members.map(|(name, value)| field(name, value)).collect();
    let entry = Entry {
        manager: Manager::Host,
        operation: Operation::Apply,
        subresource: "status".into(),
        time: 0,
        fields: json!({ "f:status": fields }).to_string().into(),
    };
    let mut text: Value = serde_json::from_str(&primary.text.read()).unwrap_or_default();
    text["status"] = status;
    Object { entries: Box::new([entry]), text: text.to_string().into(), ..primary.clone() }
}

/// The entry of `managedFields` for one member of a status.
fn field(name: &str, value: &Value) -> (String, Value) {
    let mut items = Map::new();
    if name == "conditions" {
        for condition in value.as_array().into_iter().flatten() {
            items.insert(format!("k:{}", json!({"type": condition["type"]})), json!({}));
        }
    }
    (format!("f:{name}"), items.into())
}
