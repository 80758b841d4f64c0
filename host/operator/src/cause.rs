//! Why a key is worked on.

use std::fmt;
use std::sync::Arc;

use innkeeper_cluster::Change;
use innkeeper_contract::Kind;
use innkeeper_core::Target;

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is there, and was not.
    Made,
    /// It is another one than before.
    Changed,
    /// Somebody deletes it, and something holds it still.
    Going,
    /// It is not there any more.
    Gone,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Made => "created",
            Self::Changed => "changed",
            Self::Going => "is being deleted",
            Self::Gone => "deleted",
        })
    }
}

/// One thing for which a key is worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The primary, or an object that its last run read.
    Object {
        /// Which.
        target: Target,
        /// What became of it.
        turn: Turn,
    },
    /// Something that its run read changed while it ran.
    Meanwhile,
    /// A version of the module begins to serve.
    Serves,
    /// Whether objects of a kind can be read is otherwise than before.
    Readable(Arc<Kind>),
    /// Statuses of its kind can be written, which they could not before.
    Statuses,
    /// A time that the guest, its module or its primary asked for is over.
    Due,
    /// Its last turn ended before all was written, for the write rate.
    Continued,
    /// It failed so many times in a row.
    Failed(u32),
}

impl Cause {
    /// A change of an object.
    pub fn change(change: &Change) -> Self {
        let is_going = |object: &Option<_>| {
            object.as_ref().is_some_and(|one: &Arc<innkeeper_core::Object>| one.is_terminating())
        };
        let turn = match (&change.before, &change.after) {
            (_, None) => Turn::Gone,
            (None, Some(_)) => Turn::Made,
            (before, after) if is_going(after) && !is_going(before) => Turn::Going,
            _ => Turn::Changed,
        };
        Self::Object { target: Target::new(change.kind.clone(), change.key.clone()), turn }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { target, turn } => write!(f, "{target} {turn}"),
            Self::Meanwhile => f.write_str("an input changed during the run"),
            Self::Serves => f.write_str("revision activated"),
            Self::Readable(kind) => write!(f, "whether {} can be read changed", kind.kind),
            Self::Statuses => f.write_str("status became writable"),
            Self::Due => f.write_str("requeue time reached"),
            Self::Continued => f.write_str("writes continue"),
            Self::Failed(1) => f.write_str("retry after a failure"),
            Self::Failed(times) => write!(f, "retry after {times} failures"),
        }
    }
}

/// What a key is worked on for: the first thing that happened, and how many others did before its turn came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Causes {
    /// What happened first.
    pub first: Cause,
    /// How often something else happened after it.
    pub more: u32,
}

impl Causes {
    /// Notes that something happened to a key that may wait already.
    pub fn note(causes: &mut Option<Self>, cause: &Cause) {
        match causes {
            None => *causes = Some(Self { first: cause.clone(), more: 0 }),
            Some(causes) if causes.first == *cause => {}
            Some(causes) => causes.more = causes.more.saturating_add(1),
        }
    }
}

impl fmt::Display for Causes {
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
    use innkeeper_core::{Key, Object};

    use super::*;

    fn change(before: Option<&str>, after: Option<&str>) -> Cause {
        let kind = Arc::new(Kind::namespaced("v1", "Pod", "pods"));
        let object = |text: Option<&str>| {
            let more = text?;
            let text = format!(
                r#"{{"metadata":{{"name":"a","namespace":"n","uid":"u","resourceVersion":"1"{more}}}}}"#
            );
            Some(Arc::new(Object::decode(&kind, &text, None).unwrap()))
        };
        let (before, after) = (object(before), object(after));
        let key = Key::new("n", "a");
        let source = Source::Watch;
        Cause::change(&Change { kind: kind.clone(), namespace: None, key, before, after, source })
    }

    #[test]
    fn a_change_says_what_became_of_the_object() {
        let going = r#","deletionTimestamp":"2026-01-01T00:00:00Z""#;
        assert_eq!(change(None, Some("")).to_string(), "Pod n/a created");
        assert_eq!(change(Some(""), Some("")).to_string(), "Pod n/a changed");
        assert_eq!(change(Some(""), Some(going)).to_string(), "Pod n/a is being deleted");
        assert_eq!(change(Some(going), Some(going)).to_string(), "Pod n/a changed");
        assert_eq!(change(Some(going), None).to_string(), "Pod n/a deleted");
    }

    #[test]
    fn the_first_cause_is_told_and_the_others_are_counted() {
        let mut causes = None;
        for cause in [Cause::Serves, Cause::Serves, Cause::Due, Cause::Failed(2)] {
            Causes::note(&mut causes, &cause);
        }
        assert_eq!(causes.unwrap().to_string(), "revision activated, and 2 more");
    }
}
