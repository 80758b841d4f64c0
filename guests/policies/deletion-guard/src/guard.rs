use innkeeper_sdk::serde_json::Value;
use innkeeper_sdk::{Context, Operation, ReadError, Review, Verdict, kind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Parameters;
use crate::claim::Claim;
use crate::contents::Contents;
use crate::database::{DEFINITION, Database};
use crate::guarded::{AnyObject, GROUP, GuardedMetadata, KIND, Owner};

/// A Namespace, as the policy reads it.
#[derive(Debug, Deserialize)]
struct Namespace {
    metadata: GuardedMetadata,
}

kind!(Resource for Namespace, "v1", "namespaces", Cluster);

/// Reads the object of a request as the type that the policy needs.
fn read<T: DeserializeOwned>(object: &Value) -> Result<T, ReadError> {
    T::deserialize(object).map_err(|error| ReadError::Unreadable(error.to_string()))
}

/// The decision about one deletion.
pub(crate) struct Guard<'a> {
    context: &'a Context<'a>,
    parameters: Parameters,
    /// The object that the request deletes.
    object: &'a Value,
    metadata: GuardedMetadata,
}

impl Guard<'_> {
    /// Decides about a request.
    ///
    /// # Errors
    /// A failed verdict if the policy cannot decide.
    pub(crate) fn decide(context: &Context, request: &Review<Value>) -> Result<Verdict, Verdict> {
        let parameters: Parameters = request.parameters()?;
        if request.operation() != Operation::Delete || !request.subresource().is_empty() {
            return Ok(Verdict::allow());
        }
        let Some(object) = request.old_object() else {
            return Err(Verdict::failed("the request does not have the object that it deletes"));
        };
        let AnyObject { metadata } = read(object)?;
        if metadata.is_terminating() {
            return Ok(Verdict::allow());
        }
        if metadata.is_released(&parameters) {
            let name = &parameters.release_annotation;
            return Ok(Verdict::allow().audit("released", format!("by the annotation {name}")));
        }
        let guard = Guard { context, parameters, object, metadata };
        let kind = request.kind();
        let Some(why) = guard.why_held(&kind.group, &kind.kind)? else {
            return Ok(Verdict::allow());
        };
        if guard.is_released_by_namespace()? {
            return Ok(Verdict::allow().audit("released", "by the annotation of the Namespace"));
        }
        let (annotation, name) = (&guard.parameters.release_annotation, &guard.metadata.name);
        Ok(Verdict::deny(format!(
            "{why}; to delete it anyway, set its annotation {annotation} to {name:?}"
        )))
    }

    /// Returns why the object must not be deleted; `None` if it may be.
    fn why_held(&self, group: &str, kind: &str) -> Result<Option<String>, ReadError> {
        if self.metadata.is_protected(&self.parameters) {
            let (name, label) = (&self.metadata.name, &self.parameters.label);
            return Ok(Some(format!("the {kind} {name} is protected by its label {label}")));
        }
        match (group, kind) {
            ("", "Namespace") => self.why_namespace(),
            ("", "PersistentVolumeClaim") => self.why_claim(),
            (GROUP, KIND) => self.why_database(),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => self.why_definition(),
            _ => Ok(None),
        }
    }

    fn why_namespace(&self) -> Result<Option<String>, ReadError> {
        let name = &self.metadata.name;
        let contents = Contents::of(self.context, &self.parameters, name)?;
        let summary = || format!("the Namespace {name} has {}", contents.summary());
        Ok((!contents.is_empty()).then(summary))
    }

    fn why_database(&self) -> Result<Option<String>, ReadError> {
        let name = &self.metadata.name;
        let database: Database = read(self.object)?;
        let claims = database.claims_with_data(self.context)?;
        if claims.is_empty() {
            return Ok(None);
        }
        let titles = claims.iter().map(Claim::title).collect::<Vec<_>>().join(", ");
        let fate = if database.deletes_claims() {
            "its own claims would be deleted with it (spec.deletionPolicy Delete)"
        } else {
            "nobody would serve them"
        };
        Ok(Some(format!("the PostgreSQL {name} has data in {titles}, and {fate}")))
    }

    fn why_claim(&self) -> Result<Option<String>, ReadError> {
        let claim: Claim = read(self.object)?;
        if !claim.has_volume() {
            return Ok(None);
        }
        let title = claim.title();
        if let Some(owner) = claim.owner() {
            let holds = || format!("the {title} holds data of the PostgreSQL {}", owner.name);
            return Ok(self.is_alive(owner)?.then(holds));
        }
        let databases = Database::all(self.context, &self.metadata.namespace)?;
        if let Some(database) = databases.iter().find(|database| database.has(&claim)) {
            let database = &database.metadata.name;
            return Ok(Some(format!("the {title} holds data of the PostgreSQL {database}")));
        }
        let retained = || format!("the {title} holds data that was retained for its database");
        Ok(claim.is_retained().then(retained))
    }

    /// Whether the owner of a claim is there and stays: when it goes, its deletion was allowed, and
    /// Kubernetes deletes its claims.
    fn is_alive(&self, owner: &Owner) -> Result<bool, ReadError> {
        match self.context.find::<Database>(&self.metadata.namespace, &owner.name) {
            Ok(found) => Ok(found.is_some_and(|found| {
                let database = found.object.metadata;
                database.uid == owner.uid && !database.is_terminating()
            })),
            // Kubernetes does not know either whether it is there.
            Err(ReadError::NotServed) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The objects of a definition are deleted with it, and no policy reviews that.
    fn why_definition(&self) -> Result<Option<String>, ReadError> {
        if self.metadata.name != DEFINITION {
            return Ok(None);
        }
        for database in Database::all(self.context, "")? {
            let is_held = database.metadata.is_held(&self.parameters);
            if is_held && !database.claims_with_data(self.context)?.is_empty() {
                let GuardedMetadata { namespace, name, .. } = &database.metadata;
                return Ok(Some(format!(
                    "the CustomResourceDefinition {DEFINITION} has the PostgreSQL {namespace}/{name} with data"
                )));
            }
        }
        Ok(None)
    }

    /// Whether the Namespace of the object is being deleted, and a user has released it with all
    /// that it has.
    fn is_released_by_namespace(&self) -> Result<bool, ReadError> {
        let namespace = &self.metadata.namespace;
        if namespace.is_empty() {
            return Ok(false);
        }
        let found = self.context.find::<Namespace>("", namespace)?;
        Ok(found.is_some_and(|found| {
            let namespace = found.object.metadata;
            namespace.is_terminating() && namespace.is_released(&self.parameters)
        }))
    }
}
