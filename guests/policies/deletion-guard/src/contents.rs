use innkeeper_sdk::serde_json::Value;
use innkeeper_sdk::{Context, KindName, Owned, ReadError};
use serde::Deserialize as _;

use crate::Parameters;
use crate::claim::Claim;
use crate::database::Database;
use crate::guarded::{AnyObject, GuardedMetadata};

/// How many objects a message names.
const NAMED_MAX: usize = 5;

/// The objects of a Namespace that would be missed, as messages name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    titles: Vec<String>,
}

impl Contents {
    /// Reads what a Namespace has.
    ///
    /// # Errors
    /// If a kind cannot be read. A kind that the API server does not serve has no objects.
    pub(crate) fn of(
        context: &Context,
        parameters: &Parameters,
        namespace: &str,
    ) -> Result<Self, ReadError> {
        let databases = Database::all(context, namespace)?;
        let claims = context.list::<Claim>(namespace, "")?;
        let mut contents = Self::default();
        for Owned { object: claim, .. } in &claims {
            let has_data = claim.has_volume()
                && (claim.is_retained()
                    || claim.owner().is_some()
                    || databases.iter().any(|database| database.has(claim)));
            let is_missed = has_data || claim.metadata.is_protected(parameters);
            if is_missed && claim.metadata.is_held(parameters) {
                contents.titles.push(claim.title());
            }
        }
        for Database { metadata, .. } in &databases {
            if metadata.is_protected(parameters) && metadata.is_held(parameters) {
                contents.titles.push(format!("PostgreSQL {}", metadata.name));
            }
        }
        for kind in &parameters.kinds {
            contents.add_protected(context, parameters, kind, namespace)?;
        }
        Ok(contents)
    }

    fn add_protected(
        &mut self,
        context: &Context,
        parameters: &Parameters,
        kind: &KindName,
        namespace: &str,
    ) -> Result<(), ReadError> {
        let found = match context.list_of(kind, namespace, &parameters.label) {
            Err(ReadError::NotServed) => Vec::new(),
            found => found?,
        };
        for Owned { object, .. } in found {
            let metadata = metadata(&object, kind)?;
            // The objects of a cluster-scoped kind are in no Namespace.
            if metadata.namespace == namespace && metadata.is_held(parameters) {
                self.titles.push(format!("{} {}", kind.kind, metadata.name));
            }
        }
        Ok(())
    }

    /// Returns whether nothing would be missed.
    pub(crate) fn is_empty(&self) -> bool {
        self.titles.is_empty()
    }

    /// Returns the first objects, and how many more there are.
    pub(crate) fn summary(&self) -> String {
        let named = self.titles.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        match self.titles.len().saturating_sub(NAMED_MAX) {
            0 => named,
            more => format!("{named} and {more} more"),
        }
    }
}

fn metadata(object: &Value, kind: &KindName) -> Result<GuardedMetadata, ReadError> {
    AnyObject::deserialize(object)
        .map(|object| object.metadata)
        .map_err(|error| ReadError::Unreadable(format!("a {} in a list: {error}", kind.kind)))
}
