//! The policy record: which revision of a policy reviews, as all replicas read it.
//!
//! It is a ConfigMap in the namespace of the host, which no module and no editor of Modules may
//! write. It has what a replica needs without the leader: the digest of the component, whose bytes
//! are in its snapshot, the manifest with the kinds of the parameters, and the accepted settings.

use std::collections::BTreeMap;

use innkeeper_contract::Manifest;
use innkeeper_core::host_objects::policy_object_name;
use innkeeper_core::well_known::POLICY_LABEL;
use innkeeper_core::{Object, foreign};
use innkeeper_modules::{Digest, Revision, ValidatedSpec, check_manifest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::policy_settings::PolicySettings;

/// The version of the form of a record. A host reads no other one.
pub const FORMAT: u32 = 1;

/// The largest record, in bytes. A ConfigMap has room for about twice as much.
pub const RECORD_BYTES_MAX: usize = 512 << 10;

/// The key of the record in its ConfigMap.
const MEMBER: &str = "record";

/// The longest problem of a record in a message, in bytes.
const PROBLEM_BYTES_MAX: usize = 1_000;

/// Which revision of a policy reviews.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyRecord {
    /// [`FORMAT`].
    pub format: u32,
    /// The name of the Module.
    pub module: String,
    /// The uid of the Module.
    pub module_uid: String,
    /// The digest of the component.
    pub digest: Digest,
    /// The manifest in use, without the members that only the leader needs.
    pub manifest: Manifest,
    /// The settings with which the revision reviews.
    pub settings: PolicySettings,
}

/// Why a record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is larger than [`RECORD_BYTES_MAX`].
    #[error(
        "it has {bytes} bytes, and a host takes {RECORD_BYTES_MAX}; make spec.parameters or the rules of the policy shorter"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The ConfigMap has no record.
    #[error(
        "it has no key {MEMBER:?}; delete the ConfigMap, and the leader writes the record again"
    )]
    Missing,
    /// Another version of the host has written it.
    #[error(
        "it has the format {format}, and this host reads format {FORMAT}; run the same version of the host in all replicas"
    )]
    Format {
        /// Its format.
        format: u32,
    },
    /// It names another Module than the ConfigMap.
    #[error(
        "it is of the Module {module}, and the name and the label {POLICY_LABEL} of its ConfigMap are of another one; delete the ConfigMap, and the leader writes the record again"
    )]
    ForeignName {
        /// The Module in the record.
        module: String,
    },
    /// It has values that no leader writes.
    #[error("{0}; delete the ConfigMap, and the leader writes the record again")]
    Invalid(String),
}

impl PolicyRecord {
    /// The record of a revision whose Module has this uid; `None` if it has no policy that the
    /// Module lets review.
    pub fn of(revision: &Revision, module_uid: &str) -> Option<Self> {
        let digest = revision.guest.digest().parse().ok()?;
        let manifest = revision.guest.manifest();
        Self::new(&revision.module, module_uid, digest, manifest, &revision.spec)
    }

    /// The same from its parts.
    pub fn new(
        module: &str,
        module_uid: &str,
        digest: Digest,
        manifest: &Manifest,
        spec: &ValidatedSpec,
    ) -> Option<Self> {
        manifest.policy.as_ref()?;
        Some(Self {
            format: FORMAT,
            module: module.to_owned(),
            module_uid: module_uid.to_owned(),
            digest,
            manifest: of_replicas(manifest),
            settings: PolicySettings::of(spec)?,
        })
    }

    /// The digest of the component and the settings together: an approval of settings names it.
    pub fn digest_of_all(&self) -> Digest {
        Digest::of(self.text().as_bytes())
    }

    /// The id of the record, which replicas report: the first 16 hex digits of its digest.
    pub fn id(&self) -> String {
        let mut id = self.digest_of_all().to_string();
        id.truncate(16);
        id
    }

    /// Whether a component that describes itself so is the one of the record. The kinds of
    /// parameters are in the record only.
    pub fn describes(&self, described: &Manifest) -> bool {
        let mut described = described.clone();
        if !described.kind_parameters.is_empty() {
            described.primary.clone_from(&self.manifest.primary);
            described.owned.clone_from(&self.manifest.owned);
            described.reads.clone_from(&self.manifest.reads);
        }
        of_replicas(&described) == self.manifest
    }

    /// Its ConfigMap. It has no owner: the host deletes it after the webhook, and the garbage
    /// collector could delete it before.
    ///
    /// # Errors
    /// [`RecordError::TooLarge`].
    pub fn config_map(&self, namespace: &str) -> Result<Value, RecordError> {
        let text = self.text();
        if text.len() > RECORD_BYTES_MAX {
            return Err(RecordError::TooLarge { bytes: text.len() });
        }
        Ok(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": policy_object_name(&self.module),
                "namespace": namespace,
                "labels": { POLICY_LABEL: self.module },
            },
            "data": { MEMBER: text },
        }))
    }

    /// Reads the record in a ConfigMap.
    ///
    /// # Errors
    /// If it is too large, of another format or of another Module, or has values that no leader
    /// writes.
    pub fn read(object: &Object) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct ConfigMap {
            #[serde(default)]
            data: BTreeMap<String, String>,
        }
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let invalid = |error: serde_json::Error| {
            RecordError::Invalid(foreign::one_line(error, PROBLEM_BYTES_MAX))
        };
        let mut config_map: ConfigMap =
            serde_json::from_str(&object.text.read()).map_err(invalid)?;
        let text = config_map.data.remove(MEMBER).ok_or(RecordError::Missing)?;
        if text.len() > RECORD_BYTES_MAX {
            return Err(RecordError::TooLarge { bytes: text.len() });
        }
        // First, since another format may have other members.
        let Head { format } = serde_json::from_str(&text).map_err(invalid)?;
        if format != FORMAT {
            return Err(RecordError::Format { format });
        }
        let record: Self = serde_json::from_str(&text).map_err(invalid)?;
        let label = object.labels.get(POLICY_LABEL);
        if *object.key.name() != policy_object_name(&record.module)
            || label != Some(&*record.module)
        {
            let module = foreign::one_line(&record.module, PROBLEM_BYTES_MAX);
            return Err(RecordError::ForeignName { module });
        }
        record.check()?;
        Ok(record)
    }

    /// Repeats the checks of the leader before it writes a record.
    ///
    /// # Errors
    /// [`RecordError::Invalid`].
    fn check(&self) -> Result<(), RecordError> {
        let mut problems = Vec::new();
        if self.manifest.policy.is_none() {
            problems.push("manifest: has no policy".to_owned());
        }
        if let Err(errors) = check_manifest(&self.manifest) {
            problems.extend(errors);
        }
        self.settings.limits.check(&mut problems);
        self.settings.policy.check("settings.policy", &mut |field, problem| {
            problems.push(format!("{field}: {problem}"));
        });
        if problems.is_empty() {
            return Ok(());
        }
        Err(RecordError::Invalid(foreign::one_line(problems.join("; "), PROBLEM_BYTES_MAX)))
    }

    fn text(&self) -> String {
        // A struct of texts, numbers and maps by text is always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The part of a manifest that a replica needs: not the definitions and the schema of the
/// parameters, which can be large, and which the leader has installed and evaluated.
fn of_replicas(manifest: &Manifest) -> Manifest {
    Manifest {
        crds: Vec::new(),
        parameters_schema: None,
        kind_parameters: Vec::new(),
        ..manifest.clone()
    }
}

#[cfg(test)]
mod tests;
