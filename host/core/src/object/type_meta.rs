//! The type of an object, as the object names it.

use std::borrow::Cow;

use innkeeper_contract::Kind;

use super::error::DecodeError;
use super::raw_json::Members;
use crate::foreign;

/// The kind of objects without spec and status, as the API server names it in responses to requests
/// for metadata only.
const METADATA_KIND: &str = "PartialObjectMetadata";

/// The longest kind that an error quotes, in bytes.
const RECEIVED_BYTES_MAX: usize = 256;

/// `apiVersion` and `kind` as an object names them; the server omits them in lists.
pub(super) struct TypeMeta<'a> {
    api_version: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
}

impl<'a> TypeMeta<'a> {
    /// Reads both members; escapes in them are resolved.
    ///
    /// # Errors
    /// Returns an error if a member is no string.
    pub(super) fn of(members: &Members<'a>) -> Result<Self, DecodeError> {
        let text = |name: &str| -> Result<Option<Cow<'a, str>>, DecodeError> {
            let Some(raw) = members.get(name) else { return Ok(None) };
            let raw: &'a str = raw.get();
            let plain = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
            Ok(match plain.filter(|plain| !plain.contains('\\')) {
                Some(plain) => Some(Cow::Borrowed(plain)),
                None => serde_json::from_str::<Option<String>>(raw)?.map(Cow::Owned),
            })
        };
        Ok(Self { api_version: text("apiVersion")?, kind: text("kind")? })
    }

    /// Whether the object names itself a Secret of the core group.
    pub(super) fn is_secret(&self) -> bool {
        self.kind.as_deref() == Some("Secret")
            && self.api_version.as_deref().is_none_or(|version| !version.contains('/'))
    }

    /// Checks that the object is of the requested kind, or names none (in a list), or is
    /// `PartialObjectMetadata` (in a request for metadata only).
    ///
    /// # Errors
    /// Returns [`DecodeError::OtherKind`] if it is of another kind.
    pub(super) fn check(&self, requested: &Kind) -> Result<(), DecodeError> {
        let is_metadata = self.kind.as_deref() == Some(METADATA_KIND)
            && self.api_version.as_deref().is_some_and(|one| one.starts_with("meta.k8s.io/"));
        let differs = |named: &Option<Cow<'_, str>>, requested: &str| {
            named.as_deref().is_some_and(|named| !named.is_empty() && named != requested)
        };
        if is_metadata
            || !(differs(&self.kind, &requested.kind)
                || differs(&self.api_version, &requested.api_version))
        {
            return Ok(());
        }
        let part = |part: &Option<Cow<'_, str>>| part.as_deref().unwrap_or("-").to_owned();
        let received = format!("{} {}", part(&self.api_version), part(&self.kind));
        Err(DecodeError::OtherKind {
            received: foreign::one_line(&received, RECEIVED_BYTES_MAX).into(),
            requested: requested.to_string().into(),
        })
    }
}
