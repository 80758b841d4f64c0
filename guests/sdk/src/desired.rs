mod object;

use innkeeper_contract::ReadFields;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

pub(crate) use self::object::AnyObject;
pub use self::object::{Apply, DesiredObject, IntoObject};
use crate::{
    Condition, Event, Observed, Policy, Primary, Readiness, ReadinessState, Reference, Resource,
    RevisionHistory, UpdateGroup,
};

/// The desired state: objects, and the primary's status, conditions and Events.
///
/// [`complete`](Self::complete), [`partial`](Self::partial) or
/// [`complete_when_ready`](Self::complete_when_ready) turn it into the outcome of a run.
#[derive(Default)]
pub struct Desired {
    objects: Vec<DesiredObject>,
    update_groups: Vec<UpdateGroup>,
    revision_history: Option<RevisionHistory>,
    keep: Vec<Reference>,
    finalized: bool,
    status: Option<Box<RawValue>>,
    conditions: Vec<Condition>,
    events: Vec<Event>,
    requeue_after_seconds: Option<u32>,
    read_fields: Option<Vec<ReadFields>>,
    unwritable: Option<String>,
}

impl Desired {
    /// Creates an empty desired state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object. The primary owns it, and the host deletes it when no complete outcome
    /// desires it any more.
    pub fn object<Source>(self, object: impl IntoObject<Source>) -> Self {
        self.object_with(object, [])
    }

    /// Adds objects of one type, each as [`object`](Self::object) does.
    pub fn objects<Source, O: IntoObject<Source>>(
        mut self,
        objects: impl IntoIterator<Item = O>,
    ) -> Self {
        self.objects.extend(objects.into_iter().map(IntoObject::into_object));
        self
    }

    /// Adds an object with policies that change how the host treats it.
    pub fn object_with<Source>(
        mut self,
        object: impl IntoObject<Source>,
        policy: impl IntoIterator<Item = Policy>,
    ) -> Self {
        let object = policy.into_iter().fold(object.into_object(), IntoObject::policy);
        self.objects.push(object);
        self
    }

    /// Adds an object that stands for itself ([`Policy::Independent`]): somebody else's object of
    /// its name holds back no other object, and no conflict about another object holds it back.
    ///
    /// Objects in different namespaces are independent without it.
    pub fn independent_object<Source>(self, object: impl IntoObject<Source>) -> Self {
        self.object_with(object, [Policy::Independent])
    }

    /// Adds an update group, whose objects the host updates together:
    /// [`in_update_group`](IntoObject::in_update_group) puts an object into it.
    pub fn update_group(mut self, group: UpdateGroup) -> Self {
        self.update_groups.push(group);
        self
    }

    /// Sets which fields of the primary the host stores, so that it creates a missing object of a
    /// rolling group as it was while the update stops. The manifest has to own
    /// [`ControllerRevision`](crate::kinds::ControllerRevision).
    pub fn revision_history(mut self, history: RevisionHistory) -> Self {
        self.revision_history = Some(history);
        self
    }

    /// Keeps an object that an earlier run desired: the host neither deletes nor changes it.
    ///
    /// An empty `namespace` means the primary's.
    pub fn keep<R: Resource>(mut self, namespace: &str, name: &str) -> Self {
        self.keep.push(Reference {
            api_version: R::API_VERSION.to_owned(),
            kind: R::KIND.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
        self
    }

    /// Ends the finalization of a deleted primary: the host removes the finalizer. Without effect
    /// unless [`Observed::is_deleting`] is true.
    pub fn finalized(mut self) -> Self {
        self.finalized = true;
        self
    }

    /// Sets the primary's status: an object without `conditions` and `observedGeneration`, which
    /// the host writes.
    ///
    /// A status that cannot be serialized turns the outcome into a failure with the reason
    /// `UnwritableOutcome`.
    pub fn status(mut self, status: &impl Serialize) -> Self {
        match to_raw_value(status) {
            Ok(status) => self.status = Some(status),
            Err(error) => self.unwritable = Some(format!("status: {error}")),
        }
        self
    }

    /// Adds a condition of the primary. See [`condition`](crate::condition).
    pub fn condition(mut self, condition: Condition) -> Self {
        self.add_condition(condition);
        self
    }

    pub(crate) fn set_read_fields(&mut self, read_fields: Option<Vec<ReadFields>>) {
        self.read_fields = read_fields;
    }

    pub(crate) fn add_condition(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// Adds the condition `Ready`: `True` if all desired objects exist and are ready, otherwise
    /// `False` with the message of the first object that is not. Call it after the last
    /// [`object`](Self::object).
    pub fn ready_condition<P: Primary>(self, observed: &Observed<P>) -> Self {
        let condition = if let Some(unapplied) = observed.unapplied().first() {
            let message = format!("{}: {}", unapplied.reference, unapplied.message);
            crate::condition::not_ready(&unapplied.reason, message)
        } else {
            match self.first_unready(observed) {
                None => crate::condition::ready("AllReady", "all desired objects are ready"),
                Some(Readiness { state: ReadinessState::Failed, message }) => {
                    crate::condition::not_ready("Failed", message)
                }
                Some(Readiness { message, .. }) => {
                    crate::condition::not_ready("InProgress", message)
                }
            }
        };
        self.condition(condition)
    }

    /// Adds an Event about the primary. See [`event`](crate::event).
    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// Requeues the primary: the host runs the guest again after this many seconds even if nothing
    /// changed.
    pub fn requeue_after(mut self, seconds: u32) -> Self {
        self.requeue_after_seconds = Some(seconds);
        self
    }

    /// Returns the desired objects for changes, for a guest that extends another guest.
    pub fn objects_mut(&mut self) -> &mut [DesiredObject] {
        &mut self.objects
    }

    /// Returns the readiness of the first desired object that is missing or not ready. Skips
    /// objects of kinds that the API server does not serve.
    pub(crate) fn first_unready<P: Primary>(&self, observed: &Observed<P>) -> Option<Readiness> {
        self.objects.iter().find_map(|one| {
            let (api_version, kind) = (one.api_version(), one.kind());
            if observed.is_unserved(api_version, kind) {
                return None;
            }
            let name = &one.metadata().name;
            match observed.readiness_of(api_version, kind, name) {
                None => Some(Readiness {
                    state: ReadinessState::InProgress,
                    message: format!("{kind} {name} does not exist yet"),
                }),
                Some(readiness) if readiness.state == ReadinessState::Ready => None,
                Some(Readiness { state, message }) if message.is_empty() => Some(Readiness {
                    state: *state,
                    message: format!("{kind} {name} is not ready"),
                }),
                Some(Readiness { state, message }) => {
                    Some(Readiness { state: *state, message: format!("{kind} {name}: {message}") })
                }
            }
        })
    }

    /// Returns the `desired` document. It is written member by member: building a tree of JSON
    /// values first would take several times as long.
    pub(crate) fn text(&self) -> Result<String, String> {
        if let Some(unwritable) = &self.unwritable {
            return Err(unwritable.clone());
        }
        // Most documents are a few KiB; a text that grows is copied.
        let mut text = Vec::with_capacity(4096);
        self.write(&mut text).map_err(|error| error.to_string())?;
        String::from_utf8(text).map_err(|error| error.to_string())
    }

    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        text.extend_from_slice(b"{\"objects\":[");
        for (index, one) in self.objects.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            one.write(text)?;
        }
        text.push(b']');
        if !self.update_groups.is_empty() {
            member(text, b",\"updateGroups\":", &self.update_groups)?;
        }
        if let Some(history) = &self.revision_history {
            member(text, b",\"revisionHistory\":", history)?;
        }
        if !self.keep.is_empty() {
            member(text, b",\"keep\":", &self.keep)?;
        }
        if self.finalized {
            text.extend_from_slice(b",\"finalized\":true");
        }
        if let Some(status) = &self.status {
            member(text, b",\"status\":", status)?;
        }
        if !self.conditions.is_empty() {
            member(text, b",\"conditions\":", &self.conditions)?;
        }
        if !self.events.is_empty() {
            member(text, b",\"events\":", &self.events)?;
        }
        if let Some(seconds) = self.requeue_after_seconds {
            member(text, b",\"requeueAfterSeconds\":", &seconds)?;
        }
        if let Some(fields) = &self.read_fields {
            member(text, b",\"readFields\":", fields)?;
        }
        text.push(b'}');
        Ok(())
    }
}

fn member(text: &mut Vec<u8>, key: &[u8], value: &impl Serialize) -> serde_json::Result<()> {
    text.extend_from_slice(key);
    serde_json::to_writer(text, value)
}
