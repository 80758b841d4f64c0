#![allow(
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "assertions for tests, which fail by a panic"
)]

use innkeeper_contract::{Desired, DesiredObject, Event};
use serde_json::{Map, Value};

use crate::{
    Condition, ConditionStatus, Failure, LogLevel, Manifest, Policy, RawOutcome, Resource,
};

/// The outcome of a run, with assertions. Each returns the run, so that calls can be chained, and
/// panics with the actual outcome if it is false.
#[derive(Clone, Debug)]
pub struct Run {
    end: End,
    objects: Vec<Value>,
    log: Vec<(LogLevel, String)>,
}

#[derive(Clone, Debug)]
enum End {
    Complete(Desired),
    Partial(Desired),
    Failed(Failure),
    NotSelected,
}

impl Run {
    /// Parses the documents as strictly as the host does.
    pub(super) fn new(
        outcome: &RawOutcome,
        manifest: &Manifest,
        log: Vec<(LogLevel, String)>,
    ) -> Self {
        let end = match outcome {
            RawOutcome::Complete(text) => End::Complete(desired(text, manifest)),
            RawOutcome::Partial(text) => End::Partial(desired(text, manifest)),
            RawOutcome::Failed(text) => match serde_json::from_str(text) {
                Ok(failure) => End::Failed(failure),
                Err(error) => panic!("the host would reject this failure ({error}): {text}"),
            },
        };
        let objects = match &end {
            End::Complete(desired) | End::Partial(desired) => {
                desired.objects.iter().map(|one| one.object.clone()).collect()
            }
            End::Failed(_) | End::NotSelected => Vec::new(),
        };
        Self { end, objects, log }
    }

    /// Creates the run of a primary that the guest does not select: the host does not call it.
    pub(super) fn not_selected() -> Self {
        Self { end: End::NotSelected, objects: Vec::new(), log: Vec::new() }
    }

    /// Asserts that the host does not call the guest, since the selector of the manifest leaves
    /// the primary out.
    #[track_caller]
    pub fn is_not_selected(&self) -> &Self {
        match &self.end {
            End::NotSelected => self,
            other => panic!("the manifest selects the primary: the run is {}", other.name()),
        }
    }

    /// Asserts that the outcome is complete.
    #[track_caller]
    pub fn is_complete(&self) -> &Self {
        match &self.end {
            End::Complete(_) => self,
            other => panic!("the run is not complete but {}", other.name()),
        }
    }

    /// Asserts that the outcome is partial.
    #[track_caller]
    pub fn is_partial(&self) -> &Self {
        match &self.end {
            End::Partial(_) => self,
            other => panic!("the run is not partial but {}", other.name()),
        }
    }

    /// Asserts that the run failed with this reason.
    #[track_caller]
    pub fn failed_because(&self, reason: &str) -> &Self {
        match &self.end {
            End::Failed(failure) if failure.reason == reason => self,
            other => panic!("the run did not fail because of {reason}, it is {}", other.name()),
        }
    }

    /// Returns whether the outcome is complete, and the desired state; `None` if the run failed.
    pub(super) fn desired(&self) -> Option<(bool, &Desired)> {
        match &self.end {
            End::Complete(desired) => Some((true, desired)),
            End::Partial(desired) => Some((false, desired)),
            End::Failed(_) | End::NotSelected => None,
        }
    }

    /// Returns the failure; `None` if the run did not fail.
    pub fn failure(&self) -> Option<&Failure> {
        match &self.end {
            End::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// Returns the desired objects as the host receives them.
    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// Returns the desired objects as indented JSON, for a golden file.
    pub fn objects_text(&self) -> String {
        let list: Vec<String> = self.objects.iter().map(|object| format!("{object:#}\n")).collect();
        list.concat()
    }

    /// Asserts that an object of this kind and name is desired. Returns it for more assertions.
    #[track_caller]
    pub fn desires<K: Resource>(&self, name: &str) -> DesiredView<'_> {
        let found = self.entries().iter().find(|entry| is::<K>(&entry.object, name));
        match found {
            Some(entry) => DesiredView { run: self, entry },
            None => panic!("no {} {name} is desired, only: {}", K::KIND, self.names()),
        }
    }

    /// Asserts that no object of this kind and name is desired.
    #[track_caller]
    pub fn does_not_desire<K: Resource>(&self, name: &str) -> &Self {
        assert!(
            !self.objects.iter().any(|object| is::<K>(object, name)),
            "{} {name} is desired",
            K::KIND
        );
        self
    }

    /// Asserts the number of desired objects.
    #[track_caller]
    pub fn desires_objects(&self, count: usize) -> &Self {
        assert_eq!(self.objects.len(), count, "desired are: {}", self.names());
        self
    }

    /// Asserts that the status has this value at a JSON pointer (`/readyReplicas`).
    #[track_caller]
    pub fn status(&self, pointer: &str, expected: impl Into<Value>) -> &Self {
        let status = self.whole_status();
        let found = status.pointer(pointer);
        let expected = expected.into();
        assert!(
            found == Some(&expected),
            "status{pointer} is not {expected}; the status is {status}"
        );
        self
    }

    /// Asserts that the status has nothing at a JSON pointer.
    #[track_caller]
    pub fn without_status(&self, pointer: &str) -> &Self {
        let status = self.whole_status();
        assert!(
            status.pointer(pointer).is_none(),
            "status{pointer} is set; the status is {status}"
        );
        self
    }

    fn whole_status(&self) -> Value {
        let status = match &self.end {
            End::Complete(desired) | End::Partial(desired) => desired.status.clone(),
            End::Failed(failure) => failure.status.clone(),
            End::NotSelected => None,
        };
        status.map_or(Value::Null, Value::Object)
    }

    /// Asserts that the condition `type_` has this status and reason.
    #[track_caller]
    pub fn condition(&self, type_: &str, status: ConditionStatus, reason: &str) -> &Self {
        let conditions = self.conditions();
        let holds = conditions
            .iter()
            .any(|one| one.type_ == type_ && one.status == status && one.reason == reason);
        assert!(
            holds,
            "no condition {type_}={} because of {reason}; the conditions are {conditions:#?}",
            status.as_str()
        );
        self
    }

    /// Asserts that the guest gives no condition.
    #[track_caller]
    pub fn has_no_conditions(&self) -> &Self {
        let conditions = self.conditions();
        assert!(conditions.is_empty(), "there are conditions: {conditions:#?}");
        self
    }

    /// Asserts that the message of the condition `type_` contains `text`.
    #[track_caller]
    pub fn condition_says(&self, type_: &str, text: &str) -> &Self {
        let message =
            self.conditions().iter().find(|one| one.type_ == type_).map(|one| &one.message);
        assert!(
            message.is_some_and(|message| message.contains(text)),
            "the message of condition {type_} does not contain {text:?}: {message:?}"
        );
        self
    }

    /// Asserts that there is no Event with this reason.
    #[track_caller]
    pub fn without_event(&self, reason: &str) -> &Self {
        let events = self.events();
        assert!(events.iter().all(|one| one.reason != reason), "there are {events:#?}");
        self
    }

    fn events(&self) -> &[Event] {
        match &self.end {
            End::Complete(desired) | End::Partial(desired) => &desired.events,
            End::Failed(failure) => &failure.events,
            End::NotSelected => &[],
        }
    }

    /// Asserts that there is an Event with this reason.
    #[track_caller]
    pub fn event(&self, reason: &str) -> &Self {
        let events = self.events();
        assert!(
            events.iter().any(|one| one.reason == reason),
            "no event {reason}; there are {events:#?}"
        );
        self
    }

    /// Asserts that the run requeues the primary after this many seconds.
    #[track_caller]
    pub fn requeues_after(&self, seconds: u32) -> &Self {
        let requeue = match &self.end {
            End::Complete(desired) | End::Partial(desired) => desired.requeue_after_seconds,
            End::Failed(failure) => failure.requeue_after_seconds,
            End::NotSelected => None,
        };
        assert_eq!(requeue, Some(seconds), "seconds until the next run");
        self
    }

    /// Asserts that the object of this kind and name is kept without being desired.
    #[track_caller]
    pub fn keeps<K: Resource>(&self, name: &str) -> &Self {
        let keep = match &self.end {
            End::Complete(desired) | End::Partial(desired) => desired.keep.as_slice(),
            End::Failed(_) | End::NotSelected => &[],
        };
        assert!(
            keep.iter().any(|one| one.kind == K::KIND
                && one.api_version == K::API_VERSION
                && one.name == name),
            "{} {name} is not kept; kept are {keep:?}",
            K::KIND
        );
        self
    }

    /// Asserts that no object of this kind and name is kept.
    #[track_caller]
    pub fn does_not_keep<K: Resource>(&self, name: &str) -> &Self {
        let keep = match &self.end {
            End::Complete(desired) | End::Partial(desired) => desired.keep.as_slice(),
            End::Failed(_) | End::NotSelected => &[],
        };
        assert!(
            !keep.iter().any(|one| one.kind == K::KIND
                && one.api_version == K::API_VERSION
                && one.name == name),
            "{} {name} is kept",
            K::KIND
        );
        self
    }

    /// Asserts that the run does not end the finalization of the primary.
    #[track_caller]
    pub fn is_not_finalized(&self) -> &Self {
        assert!(!self.finalized(), "the run ended the finalization of the primary");
        self
    }

    /// Asserts that the run ends the finalization of the primary.
    #[track_caller]
    pub fn is_finalized(&self) -> &Self {
        assert!(self.finalized(), "the run did not end the finalization of the primary");
        self
    }

    /// Returns the lines that the run logged.
    pub fn logged(&self) -> &[(LogLevel, String)] {
        &self.log
    }

    fn entries(&self) -> &[DesiredObject] {
        match &self.end {
            End::Complete(desired) | End::Partial(desired) => &desired.objects,
            End::Failed(_) | End::NotSelected => &[],
        }
    }

    fn finalized(&self) -> bool {
        match &self.end {
            End::Complete(desired) | End::Partial(desired) => desired.finalized,
            End::Failed(_) | End::NotSelected => false,
        }
    }

    fn conditions(&self) -> &[Condition] {
        match &self.end {
            End::Complete(desired) | End::Partial(desired) => &desired.conditions,
            End::Failed(failure) => &failure.conditions,
            End::NotSelected => &[],
        }
    }

    fn names(&self) -> String {
        let names: Vec<String> = self
            .objects
            .iter()
            .map(|object| {
                let of = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
                format!("{} {}", of("/kind"), of("/metadata/name"))
            })
            .collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    }
}

impl End {
    fn name(&self) -> String {
        match self {
            Self::Complete(_) => "complete".to_owned(),
            Self::Partial(_) => "partial".to_owned(),
            Self::Failed(failure) => format!("failed ({}: {})", failure.reason, failure.message),
            Self::NotSelected => {
                "skipped, since the selector of the manifest leaves the primary out".to_owned()
            }
        }
    }
}

/// A desired object of a [`Run`], with assertions.
#[derive(Clone, Copy, Debug)]
pub struct DesiredView<'a> {
    run: &'a Run,
    entry: &'a DesiredObject,
}

impl<'a> DesiredView<'a> {
    /// Asserts that the object has this value at a JSON pointer (`/spec/replicas`).
    #[track_caller]
    pub fn with(self, pointer: &str, expected: impl Into<Value>) -> Self {
        let expected = expected.into();
        let found = self.entry.object.pointer(pointer);
        assert!(
            found == Some(&expected),
            "{pointer} is not {expected} but {}; the object is {:#}",
            found.map_or_else(|| "missing".to_owned(), Value::to_string),
            self.entry.object
        );
        self
    }

    /// Asserts that the object has no value at a JSON pointer.
    #[track_caller]
    pub fn without(self, pointer: &str) -> Self {
        let found = self.entry.object.pointer(pointer);
        assert!(found.is_none(), "{pointer} is set: {found:?}");
        self
    }

    /// Asserts that the object has this policy.
    #[track_caller]
    pub fn policy(self, policy: Policy) -> Self {
        assert!(self.entry.policy.contains(&policy), "its policies are {:?}", self.entry.policy);
        self
    }

    /// Asserts that the object has no policy: it is owned, kept as desired, and pruned.
    #[track_caller]
    pub fn without_policy(self) -> Self {
        assert!(self.entry.policy.is_empty(), "its policies are {:?}", self.entry.policy);
        self
    }

    /// Returns the object.
    pub fn object(&self) -> &'a Value {
        &self.entry.object
    }

    /// Returns the run.
    pub fn and(self) -> &'a Run {
        self.run
    }
}

fn is<K: Resource>(object: &Value, name: &str) -> bool {
    object["apiVersion"] == K::API_VERSION
        && object["kind"] == K::KIND
        && object["metadata"]["name"] == name
}

/// The members of `metadata` that the host accepts in a desired object.
const METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

/// Parses the document. Panics where the host would reject it: unknown members, undeclared kinds,
/// objects without a name, and members that belong to the API server or to another controller.
fn desired(text: &str, manifest: &Manifest) -> Desired {
    let desired: Desired = match serde_json::from_str(text) {
        Ok(desired) => desired,
        Err(error) => panic!("the host would reject this outcome ({error}): {text}"),
    };
    for one in &desired.objects {
        let declared = manifest.owned.iter().any(|owned| {
            one.object["apiVersion"] == owned.kind.api_version
                && one.object["kind"] == owned.kind.kind
        });
        assert!(
            declared,
            "the host would reject this object, whose kind the manifest does not own (add it with Describe::owns): {:#}",
            one.object
        );
        assert!(
            one.object["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty()),
            "the host would reject this object, which has no name: {:#}",
            one.object
        );
        let metadata = one.object["metadata"].as_object().into_iter().flat_map(Map::keys);
        let foreign = metadata
            .filter(|member| !METADATA.contains(&member.as_str()))
            .map(|member| format!("metadata.{member}"))
            .chain(["status", "items"].map(str::to_owned).into_iter().filter(|member| {
                // A list has items, an object does not.
                one.object.get(member).is_some()
            }))
            .collect::<Vec<_>>();
        assert!(
            foreign.is_empty(),
            "the host would reject this object, since {} is not the guest's to set; leave it out: {:#}",
            foreign.join(", "),
            one.object
        );
    }
    desired
}
