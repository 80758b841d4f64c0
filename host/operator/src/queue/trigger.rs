//! Why a reconcile request runs.

use std::fmt;
use std::sync::Arc;

use innkeeper_cluster::Change;
use innkeeper_contract::Kind;
use innkeeper_core::ObjectRef;

/// How an object changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created.
    Created,
    /// It was updated.
    Changed,
    /// Its deletion began, and a finalizer holds it.
    Terminating,
    /// It was deleted.
    Deleted,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Terminating => "is being deleted",
            Self::Deleted => "deleted",
        })
    }
}

/// One reason to run a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The primary changed, or an object that its last run read.
    Object {
        /// The object.
        object: ObjectRef,
        /// How it changed.
        change_kind: ChangeKind,
    },
    /// During its run, an object changed that the run had read.
    ReadChanged,
    /// A revision of the module became active.
    RevisionActive,
    /// Objects of a kind became readable, or unreadable.
    ReadabilityChanged(Arc<Kind>),
    /// The status of its kind became writable.
    StatusWritable,
    /// The requeue time of the guest, or the resync period, is over.
    Scheduled,
    /// The write rate, or an update of a group that needs more rounds, interrupted its last turn.
    Resumed,
    /// A retry after this many failures in a row.
    Retry(u32),
}

impl Trigger {
    /// The trigger of a change in a cache.
    pub fn change(change: &Change) -> Self {
        let is_going = |object: &Option<_>| {
            object.as_ref().is_some_and(|one: &Arc<innkeeper_core::Object>| one.is_terminating())
        };
        let change_kind = match (&change.before, &change.after) {
            (_, None) => ChangeKind::Deleted,
            (None, Some(_)) => ChangeKind::Created,
            (before, after) if is_going(after) && !is_going(before) => ChangeKind::Terminating,
            _ => ChangeKind::Changed,
        };
        Self::Object {
            object: ObjectRef::new(change.kind.clone(), change.key.clone()),
            change_kind,
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { object: object_ref, change_kind } => {
                write!(f, "{object_ref} {change_kind}")
            }
            Self::ReadChanged => f.write_str("an input changed during the run"),
            Self::RevisionActive => f.write_str("revision activated"),
            Self::ReadabilityChanged(kind) => {
                write!(f, "whether {} can be read changed", kind.kind)
            }
            Self::StatusWritable => f.write_str("status became writable"),
            Self::Scheduled => f.write_str("requeue time reached"),
            Self::Resumed => f.write_str("writes continue"),
            Self::Retry(1) => f.write_str("retry after a failure"),
            Self::Retry(times) => write!(f, "retry after {times} failures"),
        }
    }
}

/// Why a request runs: the first trigger, and how many others followed before its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triggers {
    /// The first trigger.
    pub first: Trigger,
    /// The number of further triggers.
    pub more: u32,
}

impl Triggers {
    /// Adds a trigger of a request that may have some already.
    pub fn note(triggers: &mut Option<Self>, trigger: &Trigger) {
        match triggers {
            None => *triggers = Some(Self { first: trigger.clone(), more: 0 }),
            Some(triggers) if triggers.first == *trigger => {}
            Some(triggers) => triggers.more = triggers.more.saturating_add(1),
        }
    }
}

impl fmt::Display for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        match self.more {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_cluster::cache::Source;
    use innkeeper_core::{Object, ObjectKey};

    use super::*;

    fn change(before: Option<&str>, after: Option<&str>) -> Trigger {
        let kind = Arc::new(Kind::namespaced("v1", "Pod", "pods"));
        let object = |text: Option<&str>| {
            let more = text?;
            let text = format!(
                r#"{{"metadata":{{"name":"a","namespace":"n","uid":"u","resourceVersion":"1"{more}}}}}"#
            );
            Some(Arc::new(Object::decode(&kind, &text, None).unwrap()))
        };
        let (before, after) = (object(before), object(after));
        let key = ObjectKey::new("n", "a");
        let source = Source::Watch;
        Trigger::change(&Change { kind: kind.clone(), namespace: None, key, before, after, source })
    }

    #[test]
    fn a_trigger_names_the_change_of_the_object() {
        let going = r#","deletionTimestamp":"2026-01-01T00:00:00Z""#;
        assert_eq!(change(None, Some("")).to_string(), "Pod n/a created");
        assert_eq!(change(Some(""), Some("")).to_string(), "Pod n/a changed");
        assert_eq!(change(Some(""), Some(going)).to_string(), "Pod n/a is being deleted");
        assert_eq!(change(Some(going), Some(going)).to_string(), "Pod n/a changed");
        assert_eq!(change(Some(going), None).to_string(), "Pod n/a deleted");
    }

    #[test]
    fn the_first_trigger_is_named_and_the_others_are_counted() {
        let mut triggers = None;
        for trigger in [
            Trigger::RevisionActive,
            Trigger::RevisionActive,
            Trigger::Scheduled,
            Trigger::Retry(2),
        ] {
            Triggers::note(&mut triggers, &trigger);
        }
        assert_eq!(triggers.unwrap().to_string(), "revision activated, and 2 more");
    }
}
