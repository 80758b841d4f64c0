//! Placeholders in the body of a desired object, for the values that the host copies into it.
//!
//! A placeholder is a digest of the value, as the cache has it for a Secret. So a plan, a preview
//! and the applied digest depend on the value, and hold no byte of it. The host puts the bytes into
//! one request only, when it applies the object.

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_contract::ValueSource;
use serde_json::Value;

use super::copied_values::{CachedSource, CopiedSource, MissingValues, MissingValuesProblem};
use super::object::DesiredObject;
use super::values::keys_of;
use crate::value_source::{self, KEYS_MAX};
use crate::well_known::COPIED_KEYS_ANNOTATION;
use crate::{ObjectKey, ObjectRef, in_sync, object};

/// The object that a value source names.
pub(crate) fn source_ref(source: &ValueSource) -> ObjectRef {
    let kind = Arc::new(value_source::kind_of(source.kind));
    ObjectRef::new(kind, ObjectKey::new(&source.namespace, &source.name))
}

impl DesiredObject {
    /// Puts the placeholders of its sources into the body, or notes why it has none. `read` gives a
    /// source as the cache has it.
    pub(crate) fn place_values(
        &mut self,
        read: &mut dyn FnMut(&ValueSource) -> Result<Arc<CachedSource>, MissingValuesProblem>,
    ) {
        let placed = self.placed(read);
        match placed {
            Ok(Some((body, copied))) => {
                self.body = body;
                self.digest = in_sync::set_digest(&mut self.body);
                self.copied = copied;
            }
            Ok(None) => {}
            Err(missing) => self.missing_values = Some(missing),
        }
    }

    fn placed(
        &self,
        read: &mut dyn FnMut(&ValueSource) -> Result<Arc<CachedSource>, MissingValuesProblem>,
    ) -> Result<Option<(Value, Vec<CopiedSource>)>, MissingValues> {
        if self.values.is_empty() {
            return Ok(None);
        }
        let mut body = self.body.clone();
        let mut taken = keys_of(&body);
        let mut copied_keys = BTreeSet::new();
        let mut copied = Vec::with_capacity(self.values.len());
        for source in &self.values {
            let object_ref = source_ref(source);
            let missing = |problem| MissingValues { source: object_ref.clone(), problem };
            let cached = read(source).map_err(missing)?;
            let keys = source.keys.clone().unwrap_or_else(|| {
                cached.values.keys().map(|key| (key.clone(), key.clone())).collect()
            });
            if copied_keys.len() + keys.len() > KEYS_MAX {
                return Err(missing(MissingValuesProblem::TooLarge));
            }
            for (key, key_here) in &keys {
                let Some((member, placeholder)) = cached.values.get(key) else {
                    return Err(missing(MissingValuesProblem::NoKey(key.clone())));
                };
                if !taken.insert(key_here.clone()) {
                    return Err(missing(MissingValuesProblem::KeyTaken(key_here.clone())));
                }
                copied_keys.insert(key_here.clone());
                body[*member][key_here] = placeholder.as_str().into();
            }
            // A type cannot change later, so the copy gets it with its first values.
            if body.get("type").is_none_or(Value::is_null) && !cached.type_.is_empty() {
                body["type"] = cached.type_.as_str().into();
            }
            copied.push(CopiedSource {
                object_ref: object_ref.clone(),
                uid: cached.uid.clone(),
                resource_version: cached.resource_version.clone(),
                keys,
            });
        }
        if object::holds_secrets(&self.object_ref.kind) {
            let keys = Value::from(Vec::from_iter(copied_keys)).to_string();
            body["metadata"]["annotations"][COPIED_KEYS_ANNOTATION] = keys.into();
        }
        Ok(Some((body, copied)))
    }
}
