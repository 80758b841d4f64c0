//! The revisions that the host finds stored, and their numbers.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::content::{self, Content};
use super::input::RevisionInput;
use super::revision::PrimaryRevision;
use crate::ownership::Ownership;
use crate::well_known::{
    REVISION_API_VERSION_ANNOTATION, REVISION_DIGEST_ANNOTATION, REVISION_FIELD_PATHS_ANNOTATION,
};
use crate::{Object, ObjectKey, ObjectRef};

/// The highest number that the host takes from a stored revision. Others may write the number, so
/// a higher one counts as none, and the host counts from one again at this one.
const NUMBER_MAX: i64 = 1 << 53;

/// A `ControllerRevision` that the host made for the primary. Its name proves its content.
pub(super) struct Stored {
    pub(super) object_ref: ObjectRef,
    pub(super) number: i64,
    pub(super) content: Content,
    /// The keyed digest of the content.
    pub(super) digest: String,
    /// The API version in which the fields are; `None` if nothing proves it.
    pub(super) api_version: Option<String>,
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
        // No number would be left for the present state: count from one again.
        if stored.first().is_some_and(|newest| newest.number >= NUMBER_MAX) {
            for (number, one) in (1..).zip(stored.iter_mut().rev()) {
                one.number = number;
            }
        }
        stored
    }

    /// The revision of the present state. It keeps the number that it has if that is the highest.
    pub(super) fn present(input: &RevisionInput<'_>, content: Content, stored: &[Self]) -> Self {
        let digest = content.digest(input);
        let name = content::name(input.primary.key.name(), &digest);
        let key = ObjectKey::new(input.primary.key.namespace(), &name);
        let object_ref = ObjectRef::new(input.kind.clone(), key);
        let (present, others): (Vec<_>, Vec<_>) =
            stored.iter().partition(|one| one.object_ref == object_ref);
        let highest = others.iter().map(|one| one.number).max().unwrap_or(0);
        let number = present.first().map(|one| one.number).filter(|number| *number > highest);
        let api_version = Some(input.api_version().to_owned());
        Self { object_ref, number: number.unwrap_or(highest + 1), content, digest, api_version }
    }

    /// Reads a revision; `None` if the host has not made it as it is.
    fn read(input: &RevisionInput<'_>, object_ref: &ObjectRef, object: &Object) -> Option<Self> {
        let text: Text = serde_json::from_str(&object.text.read()).ok()?;
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
            api_version: proven_version(input, &annotations, &digest).map(str::to_owned),
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

/// The API version that the annotations of a revision prove, whose content has this digest.
///
/// A digest of the content alone counts for the present version: earlier hosts recorded none.
fn proven_version<'a>(
    input: &'a RevisionInput<'_>,
    annotations: &'a BTreeMap<String, String>,
    digest: &str,
) -> Option<&'a str> {
    let signed = annotations.get(REVISION_DIGEST_ANNOTATION)?;
    let recorded = annotations.get(REVISION_API_VERSION_ANNOTATION).map(String::as_str);
    let present = input.api_version();
    if signed == digest {
        return Some(present);
    }
    // Somebody may have changed the record alone.
    let mut versions = recorded.into_iter().chain([present]);
    versions.find(|version| *signed == content::digest_in(input, digest, version))
}
