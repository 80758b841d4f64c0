//! The revisions that the host finds stored, and their numbers.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::content::{self, Content};
use super::input::RevisionInput;
use super::revision::PrimaryRevision;
use crate::ownership::Ownership;
use crate::well_known::{REVISION_DIGEST_ANNOTATION, REVISION_FIELD_PATHS_ANNOTATION};
use crate::{Object, ObjectRef};

/// The highest number that the host takes from a stored revision. Others may write the number, so
/// a higher one counts as none: the host could not count on.
const NUMBER_MAX: i64 = 1 << 53;

/// A `ControllerRevision` that the host made for the primary. Its name proves its content.
pub(super) struct Stored {
    pub(super) object_ref: ObjectRef,
    pub(super) number: i64,
    pub(super) content: Content,
    /// The keyed digest of the content.
    pub(super) digest: String,
    /// Whether its annotation has the digest.
    pub(super) is_signed: bool,
}

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    revision: i64,
    #[serde(default)]
    data: Value,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
}

impl Stored {
    /// The stored revisions of a primary, newest first.
    pub(super) fn all(input: &RevisionInput<'_>) -> Vec<Self> {
        let namespace = input.primary.key.namespace();
        let is_stored = |(object_ref, object): &&(ObjectRef, std::sync::Arc<Object>)| {
            object_ref.kind == *input.kind
                && object_ref.key.namespace() == namespace
                && input.owner.has_applied(object)
                && input.owner.ownership(object) == Ownership::Own
        };
        let mut stored: Vec<Self> = input
            .owned
            .iter()
            .filter(is_stored)
            .filter_map(|(object_ref, object)| Self::read(input, object_ref, object))
            .collect();
        stored.sort_by(|a, b| {
            (Reverse(a.number), &a.object_ref).cmp(&(Reverse(b.number), &b.object_ref))
        });
        stored
    }

    /// Reads a revision; `None` if the host has not made it as it is.
    fn read(input: &RevisionInput<'_>, object_ref: &ObjectRef, object: &Object) -> Option<Self> {
        let text: Text = serde_json::from_str(&object.text).ok()?;
        let annotations = text.metadata.annotations.unwrap_or_default();
        let paths = annotations.get(REVISION_FIELD_PATHS_ANNOTATION)?;
        let content = Content::new(content::separated(paths), text.data);
        let digest = content.digest(input);
        if object_ref.key.name() != content::name(input.primary.key.name(), &digest) {
            return None;
        }
        Some(Self {
            object_ref: object_ref.clone(),
            number: Some(text.revision).filter(|one| (1..=NUMBER_MAX).contains(one)).unwrap_or(0),
            is_signed: annotations.get(REVISION_DIGEST_ANNOTATION) == Some(&digest),
            content,
            digest,
        })
    }

    pub(super) fn revision(self) -> PrimaryRevision {
        PrimaryRevision {
            name: self.object_ref.key.name().to_owned(),
            number: self.number,
            field_paths: self.content.field_paths,
            data: self.content.data,
        }
    }
}

/// The number of the present revision: it keeps the number that it has if that is the highest.
pub(super) fn present_number(stored: &[Stored], name: &str) -> i64 {
    let is_present = |one: &&Stored| one.object_ref.key.name() == name;
    let others = stored.iter().filter(|one| !is_present(one)).map(|one| one.number).max();
    let highest = others.unwrap_or(0);
    let present = stored.iter().find(is_present).map(|one| one.number);
    present.filter(|number| *number > highest).unwrap_or(highest + 1)
}
