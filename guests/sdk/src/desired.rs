use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    Condition, Event, Metadata, Observed, Outcome, Policy, Primary, Readiness, ReadinessState,
    Reference, Resource,
};

/// A typed object that can be desired: a builder of [`kinds`](crate::kinds), or a type of the
/// guest's own whose fields are `metadata` and whatever the kind has beside it
/// (`apiVersion` and `kind` are added).
///
/// It names the fields that the guest has an opinion about, and no others: a field that is
/// left out belongs to whoever sets it.
pub trait Apply: Resource + Serialize {
    /// Its metadata.
    fn metadata(&self) -> &Metadata;

    /// Its metadata, to change.
    fn metadata_mut(&mut self) -> &mut Metadata;

    /// In this namespace instead of the primary's (the Module must allow it).
    fn namespace(mut self, namespace: impl Into<String>) -> Self
    where
        Self: Sized,
    {
        self.metadata_mut().namespace = namespace.into();
        self
    }

    /// With this label too.
    fn label(mut self, key: &str, value: &str) -> Self
    where
        Self: Sized,
    {
        self.metadata_mut().labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// With these labels too.
    fn labels(mut self, labels: &crate::Labels) -> Self
    where
        Self: Sized,
    {
        self.metadata_mut().labels.extend(labels.clone());
        self
    }

    /// With this annotation too.
    fn annotation(mut self, key: &str, value: &str) -> Self
    where
        Self: Sized,
    {
        self.metadata_mut().annotations.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// [`Apply`] without its types, so that objects of several kinds lie in one list.
trait AnyObject {
    fn api_version(&self) -> &'static str;
    fn kind(&self) -> &'static str;
    fn metadata(&self) -> &Metadata;
    fn metadata_mut(&mut self) -> &mut Metadata;
    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()>;
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Typed<'a, T> {
    api_version: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    object: &'a T,
}

impl<T: Apply> AnyObject for T {
    fn api_version(&self) -> &'static str {
        T::API_VERSION
    }

    fn kind(&self) -> &'static str {
        T::KIND
    }

    fn metadata(&self) -> &Metadata {
        Apply::metadata(self)
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        Apply::metadata_mut(self)
    }

    fn write(&self, text: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(
            text,
            &Typed { api_version: T::API_VERSION, kind: T::KIND, object: self },
        )
    }
}

/// An object that should be, and how it differs from an ordinary one.
pub struct DesiredObject {
    object: Box<dyn AnyObject>,
    policy: Vec<Policy>,
}

impl DesiredObject {
    /// Its kind's name.
    pub fn kind(&self) -> &'static str {
        self.object.kind()
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Metadata {
        self.object.metadata()
    }

    /// Its metadata, to change.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        self.object.metadata_mut()
    }
}

/// What should be: objects, and what is said about the primary.
///
/// Ends in [`complete`](Self::complete), [`partial`](Self::partial) or
/// [`complete_when_ready`](Self::complete_when_ready).
#[derive(Default)]
pub struct Desired {
    objects: Vec<DesiredObject>,
    keep: Vec<Reference>,
    finalized: bool,
    status: Option<Box<RawValue>>,
    conditions: Vec<Condition>,
    events: Vec<Event>,
    requeue_after_seconds: Option<u32>,
    unwritable: Option<String>,
}

impl Desired {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// This object should be.
    pub fn object(self, object: impl Apply + 'static) -> Self {
        self.object_with(object, [])
    }

    /// This object should be, with policies.
    pub fn object_with(
        mut self,
        object: impl Apply + 'static,
        policy: impl IntoIterator<Item = Policy>,
    ) -> Self {
        let policy = policy.into_iter().collect();
        self.objects.push(DesiredObject { object: Box::new(object), policy });
        self
    }

    /// An object that was made before stays as it is, although it is not desired anew.
    pub fn keep<R: Resource>(mut self, namespace: &str, name: &str) -> Self {
        self.keep.push(Reference {
            api_version: R::API_VERSION.to_owned(),
            kind: R::KIND.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        });
        self
    }

    /// Asked while deleting: nothing is left to do, the primary may go.
    pub fn finalized(mut self) -> Self {
        self.finalized = true;
        self
    }

    /// The primary's status: an object, without `conditions` and `observedGeneration`.
    pub fn status(mut self, status: &impl Serialize) -> Self {
        match to_raw_value(status) {
            Ok(status) => self.status = Some(status),
            Err(error) => self.unwritable = Some(format!("status: {error}")),
        }
        self
    }

    /// A condition of the primary. See [`condition`](crate::condition).
    pub fn condition(mut self, condition: Condition) -> Self {
        self.add_condition(condition);
        self
    }

    pub(crate) fn add_condition(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// The condition `Ready`: true if all that is desired is there and ready, with the first
    /// reason otherwise. Call it when all objects are in.
    pub fn ready_condition<P: Primary>(self, observed: &Observed<P>) -> Self {
        let condition = if let Some(unapplied) = observed.unapplied().first() {
            let message = format!("{}: {}", unapplied.reference, unapplied.message);
            crate::condition::not_ready(&unapplied.reason, message)
        } else {
            match self.first_unready(observed) {
                None => crate::condition::ready("AllReady", "everything is in place and ready"),
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

    /// An event about the primary. See [`event`](crate::event).
    pub fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    /// Run again after this many seconds even if nothing changed.
    pub fn requeue_after(mut self, seconds: u32) -> Self {
        self.requeue_after_seconds = Some(seconds);
        self
    }

    /// The objects, to change: for a guest that builds upon another.
    pub fn objects_mut(&mut self) -> &mut [DesiredObject] {
        &mut self.objects
    }

    /// This is all: what was made before and is not in it goes.
    pub fn complete(self) -> Outcome {
        Outcome::Complete(self)
    }

    /// Apply this and keep the rest: something is not ready or not known yet.
    pub fn partial(self) -> Outcome {
        Outcome::Partial(self)
    }

    /// Complete if all that is desired is there and ready; partial while something is not, so
    /// that what it replaces stays until then.
    pub fn complete_when_ready<P: Primary>(self, observed: &Observed<P>) -> Outcome {
        if self.first_unready(observed).is_none() { self.complete() } else { self.partial() }
    }

    /// The first desired object that is missing or not ready. Kinds that are not served do not
    /// count.
    fn first_unready<P: Primary>(&self, observed: &Observed<P>) -> Option<Readiness> {
        self.objects.iter().find_map(|one| {
            let (api_version, kind) = (one.object.api_version(), one.object.kind());
            if observed.is_unserved(api_version, kind) {
                return None;
            }
            let name = &one.object.metadata().name;
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

    /// The `desired` document. Written piece by piece: the objects are the bulk of it, and
    /// going through a tree of JSON values would cost several times the time.
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
            text.extend_from_slice(if index == 0 { b"{\"object\":" } else { b",{\"object\":" });
            one.object.write(text)?;
            if !one.policy.is_empty() {
                text.extend_from_slice(b",\"policy\":");
                serde_json::to_writer(&mut *text, &one.policy)?;
            }
            text.push(b'}');
        }
        text.push(b']');
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
        text.push(b'}');
        Ok(())
    }
}

fn member(text: &mut Vec<u8>, key: &[u8], value: &impl Serialize) -> serde_json::Result<()> {
    text.extend_from_slice(key);
    serde_json::to_writer(text, value)
}
