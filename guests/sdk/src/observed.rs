use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::read_fields::ReadFieldsRecord;
use crate::{Kind, Primary, Readiness, ReadinessState, Resource, Unapplied};
use innkeeper_contract::ObservedObject;

/// The observed state at the start of a run: the primary, the objects that it owns, and the
/// objects that the host could not apply after the previous run.
///
/// Objects are kept as JSON text and deserialized on request.
pub struct Observed<'a, P> {
    document: innkeeper_contract::Observed<P, &'a RawValue>,
    fields: ReadFieldsRecord,
}

/// An object from the cluster and its readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned<O> {
    /// The object.
    pub object: O,
    /// Its readiness by the rules of kstatus.
    pub readiness: Readiness,
}

impl<O> From<ObservedObject<O>> for Owned<O> {
    fn from(observed: ObservedObject<O>) -> Self {
        Self { object: observed.object, readiness: observed.readiness }
    }
}

/// The identity of an object.
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
    /// Parses an `observed` document.
    pub(crate) fn parse(text: &'a str) -> serde_json::Result<Self> {
        Ok(Self { document: serde_json::from_str(text)?, fields: ReadFieldsRecord::default() })
    }

    /// Returns the record of the fields that the run reads, if the host takes it.
    pub(crate) fn read_fields(&self) -> Option<&ReadFieldsRecord> {
        self.document.report_read_fields.then_some(&self.fields)
    }

    fn reads<R: Resource + DeserializeOwned>(&self) {
        if self.document.report_read_fields {
            self.fields.add::<R>(R::API_VERSION, R::KIND);
        }
    }

    /// Returns the primary.
    pub fn primary(&self) -> &P {
        &self.document.object
    }

    /// Returns the primary's name.
    pub fn name(&self) -> &str {
        &self.primary().metadata().name
    }

    /// Returns the primary's namespace; empty if its kind is cluster-scoped.
    pub fn namespace(&self) -> &str {
        &self.primary().metadata().namespace
    }

    /// Returns the owned object of this kind and name; `None` if it does not exist or cannot be
    /// deserialized into `R`.
    pub fn owned<R: Resource + DeserializeOwned>(&self, name: &str) -> Option<Owned<R>> {
        self.reads::<R>();
        let found = self.find::<R>(name)?;
        let object = serde_json::from_str(found.object.get()).ok()?;
        Some(Owned { object, readiness: found.readiness.clone() })
    }

    /// Returns all owned objects of this kind, ordered by namespace and name, without those that
    /// cannot be deserialized into `R`.
    pub fn all_owned<R: Resource + DeserializeOwned>(&self) -> Vec<Owned<R>> {
        self.reads::<R>();
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

    /// Returns the number of owned objects of this kind.
    pub fn count_owned<R: Resource>(&self) -> usize {
        self.document
            .owned
            .iter()
            .filter(|one| head(one.object).is_some_and(|head| head.is::<R>()))
            .count()
    }

    /// Returns the readiness of the owned object of this kind and name; `InProgress` if it does not
    /// exist.
    pub fn readiness<R: Resource>(&self, name: &str) -> Readiness {
        self.find::<R>(name).map_or_else(
            || Readiness {
                state: ReadinessState::InProgress,
                message: format!("{} {name} does not exist yet", R::KIND),
            },
            |one| one.readiness.clone(),
        )
    }

    /// Returns whether the owned object of this kind and name exists and is ready.
    pub fn is_ready<R: Resource>(&self, name: &str) -> bool {
        self.readiness::<R>(name).state == ReadinessState::Ready
    }

    /// Returns the readiness of the owned object with this identity; `None` if it does not exist.
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

    /// Returns the desired objects that the host could not apply after the previous run, and why.
    /// The host runs the guest again when this changes.
    ///
    /// Use it for conditions only: if the desired objects depend on it, the guest may change them
    /// in every run and never settle.
    pub fn unapplied(&self) -> &[Unapplied] {
        &self.document.unapplied
    }

    /// Returns whether the API server serves a declared kind.
    pub fn is_served<R: Resource>(&self) -> bool {
        !self.is_unserved(R::API_VERSION, R::KIND)
    }

    pub(crate) fn is_unserved(&self, api_version: &str, kind: &str) -> bool {
        self.document
            .unserved
            .iter()
            .any(|one: &Kind| one.kind == kind && one.api_version == api_version)
    }

    /// Deserializes the Module's `spec.parameters`, which the host has validated against the
    /// manifest's schema. A Module without parameters gives an empty object.
    ///
    /// # Errors
    /// If the parameters cannot be deserialized into `T`.
    pub fn parameters<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        let parameters = &self.document.parameters;
        let empty = Value::Object(serde_json::Map::new());
        T::deserialize(if parameters.is_null() { &empty } else { parameters })
    }

    /// Returns whether the primary is being deleted and still has this guest's finalizer.
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
