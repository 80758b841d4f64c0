//! Making objects.

use serde_json::Value;

use super::owners::once;
use super::write::{Written, read};
use super::{Ask, Outcome, check_options};
use crate::admission::Operation;
use crate::cluster::Cluster;
use crate::object::meta;
use crate::status_error::{FieldError, StatusError};
use crate::switch::{Bug, planted};

impl Cluster {
    /// `create`.
    pub(super) fn create(&mut self, ask: &Ask<'_>) -> Outcome {
        check_options(ask.query, "CreateOptions")?;
        Ok(self.create_object(ask, read(ask)?)?.answer())
    }

    /// Makes an object.
    pub(crate) fn create_object(
        &mut self,
        ask: &Ask<'_>,
        object: Value,
    ) -> Result<Written, StatusError> {
        let decoded = Self::decode(ask, object)?;
        let mut object = decoded.object;
        self.warned.extend(decoded.warnings);
        Self::check_namespace(ask, &mut object)?;
        self.warned.extend(once(&mut object, false));
        if meta(&object, "name").is_empty() && !meta(&object, "generateName").is_empty() {
            let base: String = meta(&object, "generateName").chars().take(58).collect();
            object["metadata"]["name"] = format!("{base}{}", self.suffix()).into();
        }
        if !meta(&object, "resourceVersion").is_empty() && meta(&object, "resourceVersion") != "0" {
            return Err(StatusError::unforeseen(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        if meta(&object, "name").is_empty() {
            let error = FieldError::required("metadata.name", "name or generateName is required");
            return Err(StatusError::invalid(ask.named_kind(""), &[error]));
        }
        let mut object = self.track(ask, None, object);
        self.mutate(ask, Operation::Create, &mut object, None)?;
        self.warned.extend(once(&mut object, true));
        if planted(Bug::GenerateNameIsKept) {
            crate::object::unset(&mut object, "generateName");
        }
        let object = self.store_new(ask, object, decoded.shares_labels)?;
        Ok(Written { code: 201, object })
    }
}
