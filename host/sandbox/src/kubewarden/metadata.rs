//! The metadata of a Kubewarden policy, from a custom section of its module.

use std::collections::BTreeMap;

use serde::Deserialize;
use wasmparser::{Parser, Payload};

use crate::error::{LoadError, text};
use crate::format::{METADATA_SECTION, plain_module};

/// Size of the metadata, in bytes: annotations may hold a whole page of documentation.
const BYTES_MAX: usize = 256 << 10;

/// The most annotations, rules and kinds.
const ITEMS_MAX: usize = 256;

/// The version of the protocol between policies and hosts.
pub(crate) const PROTOCOL: &str = "v1";

/// The way in which the host runs policies.
const EXECUTION_MODE: &str = "kubewarden-wapc";

/// The metadata of a Kubewarden policy, as far as the host uses it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KubewardenMetadata {
    /// Version of the protocol: `v1`.
    pub protocol_version: String,
    /// Texts for people, by name. They have any characters.
    #[serde(default, deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    /// Whether the policy changes objects.
    pub mutating: bool,
    /// Whether the policy is fit to review existing objects.
    #[serde(default = "yes")]
    pub background_audit: bool,
    /// What the policy reads from the cluster.
    #[serde(default, deserialize_with = "or_default")]
    pub context_aware_resources: Vec<ContextAwareResource>,
    /// The host calls that the policy makes, as `kubernetes/get_resource`. Older metadata has none.
    #[serde(default, deserialize_with = "or_default")]
    pub host_capabilities: Vec<String>,
    pub(crate) rules: Vec<Rule>,
    #[serde(default = "execution_mode")]
    execution_mode: String,
    #[serde(default = "policy_type")]
    policy_type: String,
}

/// A kind that a policy reads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextAwareResource {
    /// Group and version; the version alone for the core group.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// The requests that a policy reviews.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rule {
    pub(crate) api_groups: Vec<String>,
    pub(crate) api_versions: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) operations: Vec<String>,
}

fn yes() -> bool {
    true
}

fn execution_mode() -> String {
    EXECUTION_MODE.to_owned()
}

fn policy_type() -> String {
    "kubernetes".to_owned()
}

/// The default for `null`.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl KubewardenMetadata {
    /// Reads the metadata of a core module, without running or compiling it.
    ///
    /// # Errors
    /// [`LoadError::NotAComponent`] if the module has none, and [`LoadError::InvalidMetadata`] if
    /// the host cannot run a policy with such metadata.
    pub(crate) fn of_module(module: &[u8]) -> Result<Self, LoadError> {
        let section = section(module)?.ok_or_else(plain_module)?;
        if section.len() > BYTES_MAX {
            return Err(invalid(format!(
                "it has {} bytes, the limit is {BYTES_MAX}",
                section.len()
            )));
        }
        let mut json = serde_json::Deserializer::from_slice(section);
        let metadata: Self = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| invalid(format!("{} (at {})", error.inner(), error.path())))?;
        json.end().map_err(|error| invalid(error.to_string()))?;
        metadata.check()?;
        Ok(metadata)
    }

    /// An annotation by its last part, as in `title` of `io.kubewarden.policy.title`.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(&format!("io.kubewarden.policy.{name}")).map(String::as_str)
    }

    fn check(&self) -> Result<(), LoadError> {
        match self.execution_mode.as_str() {
            EXECUTION_MODE => {}
            mode @ ("opa" | "gatekeeper") => {
                return Err(invalid(format!(
                    "its executionMode is {mode}: policies in Rego do not run here; write the \
                     policy in another language, or as a ValidatingAdmissionPolicy"
                )));
            }
            "wasi" => {
                return Err(invalid(format!(
                    "its executionMode is wasi: programs of WASI do not run here; build the \
                     policy as {EXECUTION_MODE}"
                )));
            }
            other => {
                return Err(invalid(format!(
                    "its executionMode is {other:?}; only {EXECUTION_MODE} runs here"
                )));
            }
        }
        if self.policy_type != policy_type() {
            return Err(invalid(format!(
                "its policyType is {:?}; only policies of the type kubernetes review requests of \
                 an API server",
                self.policy_type
            )));
        }
        if self.protocol_version != PROTOCOL {
            return Err(wrong_protocol(&self.protocol_version));
        }
        for (member, count) in [
            ("annotations", self.annotations.len()),
            ("rules", self.rules.len()),
            ("contextAwareResources", self.context_aware_resources.len()),
            ("hostCapabilities", self.host_capabilities.len()),
        ] {
            if count > ITEMS_MAX {
                return Err(invalid(format!("its {member} are {count}, the limit is {ITEMS_MAX}")));
            }
        }
        Ok(())
    }
}

/// The error of a policy with another version of the protocol.
pub(crate) fn wrong_protocol(found: &str) -> LoadError {
    LoadError::WrongProtocol { found: text(found), wanted: PROTOCOL }
}

fn invalid(what: impl Into<String>) -> LoadError {
    LoadError::InvalidMetadata { what: text(what) }
}

/// The bytes of the custom section with the metadata; `None` if the module has no such section.
fn section(module: &[u8]) -> Result<Option<&[u8]>, LoadError> {
    let mut found = None;
    for payload in Parser::new(0).parse_all(module) {
        let payload =
            payload.map_err(|error| LoadError::CompileFailed { what: text(error.to_string()) })?;
        if let Payload::CustomSection(section) = payload
            && section.name() == METADATA_SECTION
            && found.replace(section.data()).is_some()
        {
            return Err(invalid(format!("the module has two sections {METADATA_SECTION}")));
        }
    }
    Ok(found)
}
