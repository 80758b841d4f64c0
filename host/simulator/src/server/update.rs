//! Replacing objects.

use serde_json::Value;

use super::owners::once;
use super::write::{Written, read};
use super::{Ask, Outcome, check_options};
use crate::admission::Operation;
use crate::cluster::Cluster;
use crate::kinds;
use crate::object::meta;
use crate::status_error::StatusError;

impl Cluster {
    /// `update`.
    pub(super) fn update(&mut self, ask: &Ask<'_>) -> Outcome {
        check_options(ask.query, "UpdateOptions")?;
        Ok(self.update_object(ask, read(ask)?)?.answer())
    }

    /// Replaces an object.
    pub(crate) fn update_object(
        &mut self,
        ask: &Ask<'_>,
        object: Value,
    ) -> Result<Written, StatusError> {
        let decoded = Self::decode(ask, object)?;
        let mut object = decoded.object;
        self.warned.extend(decoded.warnings);
        self.warned.extend(once(&mut object, false));
        let name = &ask.target.name;
        Self::check_namespace(ask, &mut object)?;
        if meta(&object, "name").is_empty() {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        if meta(&object, "name") != name {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                meta(&object, "name")
            )));
        }
        let Some(old) = self.present(ask) else {
            if !kinds::creates_on_update(&ask.kind) {
                return Err(StatusError::not_found(ask.named(name)));
            }
            let said = meta(&object, "uid");
            if !said.is_empty() {
                return Err(StatusError::conflict(ask.named(name), &uid_mismatch(ask, said, "")));
            }
            let mut object = self.track(ask, None, object);
            self.mutate(ask, Operation::Create, &mut object, None)?;
            let object = self.store_new(ask, object, decoded.shares_labels)?;
            return Ok(Written { code: 201, object });
        };
        let (said, present) = (meta(&object, "uid"), meta(&old, "uid"));
        if !said.is_empty() && said != present {
            let why = uid_mismatch(ask, said, present);
            return Err(StatusError::conflict(ask.named(name), &why));
        }
        let mut object = self.track(ask, Some(&old), object);
        self.mutate(ask, Operation::Update, &mut object, Some(&old))?;
        self.warned.extend(once(&mut object, true));
        let object = self.store_change(ask, &old, object)?;
        Ok(Written { code: 200, object })
    }
}

/// What the store says of another uid.
pub(super) fn uid_mismatch(ask: &Ask<'_>, said: &str, present: &str) -> String {
    format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {said}, UID in object meta: {present}",
        ask.storage_key()
    )
}
