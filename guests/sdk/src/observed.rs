use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Kind, Primary, Readiness, ReadinessState, Resource, Unapplied};
use innkeeper_contract::ObservedObject;

/// What is, when a run begins: the primary, what it has made, and how the last round went.
///
/// The objects are kept as text and parsed when they are asked for.
pub struct Observed<'a, P> {
    document: innkeeper_contract::Observed<P, &'a RawValue>,
}

/// An object that was read, and how ready it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned<O> {
    /// The object.
    pub object: O,
    /// How ready it is, by the rules of kstatus.
    pub readiness: Readiness,
}

impl<O> From<ObservedObject<O>> for Owned<O> {
    fn from(observed: ObservedObject<O>) -> Self {
        Self { object: observed.object, readiness: observed.readiness }
    }
}

/// As much of an object as tells which one it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: HeadMetadata<'a>,
}

#[derive(Deserialize)]
struct HeadMetadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl Head<'_> {
    fn is<R: Resource>(&self) -> bool {
        self.kind == R::KIND && self.api_version == R::API_VERSION
    }
}

impl<'a, P: Primary> Observed<'a, P> {
    /// Reads an `observed` document. Errors name what does not fit and where.
    pub(crate) fn parse(text: &'a str) -> serde_json::Result<Self> {
        Ok(Self { document: serde_json::from_str(text)? })
    }

    /// The primary.
    pub fn primary(&self) -> &P {
        &self.document.object
    }

    /// The primary's name.
    pub fn name(&self) -> &str {
        &self.primary().metadata().name
    }

    /// The primary's namespace; empty if its kind is cluster-scoped.
    pub fn namespace(&self) -> &str {
        &self.primary().metadata().namespace
    }

    /// The object of this kind and name that the primary has made, if there is one and it
    /// is shaped as `R`.
    pub fn owned<R: Resource + DeserializeOwned>(&self, name: &str) -> Option<Owned<R>> {
        let found = self.find::<R>(name)?;
        let object = serde_json::from_str(found.object.get()).ok()?;
        Some(Owned { object, readiness: found.readiness.clone() })
    }

    /// All objects of this kind that the primary has made, ordered by namespace and name.
    pub fn all_owned<R: Resource + DeserializeOwned>(&self) -> Vec<Owned<R>> {
        self.document
            .owned
            .iter()
            .filter(|one| head(one.object).is_some_and(|head| head.is::<R>()))
            .filter_map(|one| {
                let object = serde_json::from_str(one.object.get()).ok()?;
                Some(Owned { object, readiness: one.readiness.clone() })
            })
            .collect()
    }

    /// How many objects of this kind the primary has made.
    pub fn count_owned<R: Resource>(&self) -> usize {
        self.document
            .owned
            .iter()
            .filter(|one| head(one.object).is_some_and(|head| head.is::<R>()))
            .count()
    }

    /// How ready the object of this kind and name is; in progress if it is not there yet.
    pub fn readiness<R: Resource>(&self, name: &str) -> Readiness {
        self.find::<R>(name).map_or_else(
            || Readiness {
                state: ReadinessState::InProgress,
                message: format!("{} {name} does not exist yet", R::KIND),
            },
            |one| one.readiness.clone(),
        )
    }

    /// Whether the object of this kind and name is there and ready.
    pub fn is_ready<R: Resource>(&self, name: &str) -> bool {
        self.readiness::<R>(name).state == ReadinessState::Ready
    }

    /// The readiness of the object that `api_version`, `kind` and `name` tell, if it is there.
    pub(crate) fn readiness_of(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
    ) -> Option<&Readiness> {
        self.document
            .owned
            .iter()
            .find(|one| {
                head(one.object).is_some_and(|head| {
                    head.kind == kind
                        && head.api_version == api_version
                        && head.metadata.name == name
                })
            })
            .map(|one| &one.readiness)
    }

    /// What could not be applied in the round before, and why. When that changes the guest is asked
    /// again at once, so a condition made from it is never older than the objects it is about. It
    /// is there to be told: a guest that wants something else because of it never comes to rest.
    pub fn unapplied(&self) -> &[Unapplied] {
        &self.document.unapplied
    }

    /// Whether the API server serves a declared kind now.
    pub fn is_served<R: Resource>(&self) -> bool {
        !self.is_unserved(R::API_VERSION, R::KIND)
    }

    pub(crate) fn is_unserved(&self, api_version: &str, kind: &str) -> bool {
        self.document
            .unserved
            .iter()
            .any(|one: &Kind| one.kind == kind && one.api_version == api_version)
    }

    /// The Module's parameters as a type of the guest's. They have passed the manifest's
    /// schema; the error says what does not fit the type all the same.
    pub fn parameters<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        let parameters = &self.document.parameters;
        let empty = Value::Object(serde_json::Map::new());
        T::deserialize(if parameters.is_null() { &empty } else { parameters })
    }

    /// Whether the primary is being deleted and this guest's finalizer holds it.
    pub fn is_deleting(&self) -> bool {
        self.document.deleting
    }

    fn find<R: Resource>(&self, name: &str) -> Option<&ObservedObject<&'a RawValue>> {
        self.document.owned.iter().find(|one| {
            head(one.object).is_some_and(|head| head.is::<R>() && head.metadata.name == name)
        })
    }
}

fn head(object: &RawValue) -> Option<Head<'_>> {
    serde_json::from_str(object.get()).ok()
}
