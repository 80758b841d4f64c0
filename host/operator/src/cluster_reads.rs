//! The reads of a guest from a snapshot of the caches: the same rules for reconciles and reviews.

use std::borrow::Cow;
use std::sync::Arc;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{CacheLookup, CacheSnapshot};
use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey, ObjectRef, Selector, names, observed, readiness};
use innkeeper_sandbox::{ReadError, ResourceKind};

use crate::watch::read_record::ReadRecord;

/// What the reads of one call are answered from.
pub trait ClusterReads {
    /// The snapshot.
    ///
    /// # Errors
    /// If there is none.
    fn snapshot(&self) -> Result<&CacheSnapshot, ReadError>;

    /// A kind that the manifest declares.
    fn declared(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>>;

    /// The record of the reads.
    fn record(&mut self) -> &mut ReadRecord;

    /// An object as the guest sees it that read it by its name.
    fn found<'o>(&'o self, kind: &Kind, object: &'o Object) -> Cow<'o, Object>;

    /// An object as the guest sees it in a list.
    fn listed<'o>(&'o self, kind: &Kind, object: &'o Object) -> Cow<'o, Object>;

    /// Notes that the caches do not know an object now, and gives what the guest sees.
    fn unknown(&mut self, object_ref: ObjectRef) -> ReadError;
}

/// Answers [`Host::get`](innkeeper_sandbox::Host::get).
///
/// # Errors
/// [`ReadError`].
pub fn get(
    reads: &mut impl ClusterReads,
    kind: &ResourceKind,
    (namespace, name): (&str, &str),
    room: usize,
) -> Result<String, ReadError> {
    let kind = declared(reads, kind)?;
    // The API server has no object of such a name; in a request the name would be a path.
    if !names::is_name_of(&kind, name) || !is_namespace(namespace) {
        return Err(ReadError::NotFound);
    }
    let key = ObjectKey::new(namespace, name);
    reads.record().get(&kind, &key);
    match reads.snapshot()?.get(&kind, &key) {
        CacheLookup::Found(object) => {
            let shown = reads.found(&kind, &object);
            if observed::bytes([&*shown]) > room {
                return Err(ReadError::TooLarge);
            }
            Ok(observed::object_document(&shown, &readiness::of(&kind, &object)))
        }
        CacheLookup::Absent => Err(ReadError::NotFound),
        CacheLookup::Unknown => Err(reads.unknown(ObjectRef::new(kind, key))),
        CacheLookup::Unreadable(why) => Err(refused(why)),
    }
}

/// Answers [`Host::list`](innkeeper_sandbox::Host::list).
///
/// # Errors
/// [`ReadError`].
pub fn list(
    reads: &mut impl ClusterReads,
    kind: &ResourceKind,
    (namespace, label_selector): (&str, &str),
    room: usize,
) -> Result<String, ReadError> {
    let kind = declared(reads, kind)?;
    let selector: Selector =
        label_selector.parse().map_err(|error| ReadError::Invalid(format!("{error}")))?;
    if !is_namespace(namespace) {
        return Ok(observed::list_document::<&Object>(&[]));
    }
    reads.record().list(&kind, namespace, selector.clone());
    let within = (!namespace.is_empty()).then_some(namespace);
    let objects = reads
        .snapshot()?
        .list(&kind, within, &|labels| selector.matches(labels))
        .map_err(refused)?;
    if observed::bytes(objects.iter().map(|object| &**object)) > room {
        return Err(ReadError::TooLarge);
    }
    let shown = |object| (reads.listed(&kind, object), readiness::of(&kind, object));
    let objects: Vec<_> = objects.iter().map(|object| shown(object)).collect();
    Ok(observed::list_document(&objects))
}

fn declared(reads: &impl ClusterReads, kind: &ResourceKind) -> Result<Arc<Kind>, ReadError> {
    reads.declared(&kind.api_version, &kind.kind).ok_or(ReadError::Undeclared)
}

/// Whether a guest's text is the name of a namespace, or empty for all namespaces.
fn is_namespace(text: &str) -> bool {
    text.is_empty() || names::is_label(text)
}

fn refused(why: CacheReadError) -> ReadError {
    match why {
        CacheReadError::NotServed => ReadError::NotServed,
        CacheReadError::Undeclared => ReadError::Undeclared,
        CacheReadError::Forbidden(denial) => ReadError::Forbidden(denial.to_string()),
        CacheReadError::Mismatched(mismatch) => ReadError::Forbidden(mismatch.to_string()),
        CacheReadError::NotSynced(why) => ReadError::Forbidden(why),
    }
}
