//! The guest that is checked, and the objects with which it is checked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use innkeeper_contract::{Kind, Manifest};
use serde_json::Value;

/// The shortest value of a Secret that is searched for.
const SECRET_BYTES_MIN: usize = 8;

/// A guest that reconciles, and what a cluster needs to run it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name of its Module.
    pub name: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// Its Module, with the absolute path of the component in `spec.source.file`.
    pub module: Value,
    /// The same with an earlier component of the guest, if there is one.
    pub earlier_module: Option<Value>,
    /// Objects that exist before the host starts: the rights of the Module's account, definitions
    /// that the manifest does not bring, namespaces, and what the primaries refer to.
    pub preexisting: Vec<Value>,
    /// Primaries, as users write them.
    pub samples: Vec<Value>,
    /// Fields of the objects that hold a history, as paths such as `.status.lastRun`: they may
    /// differ.
    pub history: Vec<String>,
}

impl Subject {
    /// The kinds whose objects the guest makes or changes, its primary's first.
    pub fn kinds(&self) -> Vec<&Kind> {
        let owned = self.manifest.owned.iter().map(|owned| &owned.kind);
        let mut kinds: Vec<&Kind> = self.manifest.primary.iter().collect();
        for kind in owned {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The values of the Secrets that exist before the host starts, as text and in base64. Short
    /// values are left out: they can be anywhere by chance.
    pub(crate) fn secret_values(&self) -> Vec<String> {
        let is_secret = |one: &&Value| one["apiVersion"] == "v1" && one["kind"] == "Secret";
        let mut values = Vec::new();
        for secret in self.preexisting.iter().filter(is_secret) {
            let texts = |member: &str| {
                let members = secret[member].as_object().into_iter().flatten();
                members.filter_map(|(_, value)| value.as_str().map(str::to_owned))
            };
            for encoded in texts("data") {
                let decoded =
                    BASE64.decode(&encoded).ok().and_then(|all| String::from_utf8(all).ok());
                values.extend(decoded);
                values.push(encoded);
            }
            for text in texts("stringData") {
                values.push(BASE64.encode(&text));
                values.push(text);
            }
        }
        values.retain(|value| value.len() >= SECRET_BYTES_MIN);
        values
    }

    /// Whether an object is a primary of the guest.
    pub fn is_primary(&self, object: &Value) -> bool {
        self.manifest.primary.as_ref().is_some_and(|kind| is_of(kind, object))
    }

    /// Whether an object is of a kind that the guest only reads.
    pub(crate) fn is_read(&self, object: &Value) -> bool {
        self.manifest.reads.iter().any(|kind| is_of(kind, object))
    }
}

fn is_of(kind: &Kind, object: &Value) -> bool {
    object["apiVersion"] == kind.api_version.as_str() && object["kind"] == kind.kind.as_str()
}

#[cfg(test)]
pub(crate) mod tests {
    use innkeeper_contract::{Kind, Manifest};
    use serde_json::json;

    use super::Subject;

    /// A guest of the kind `Shop` without samples.
    #[allow(clippy::unwrap_used, reason = "a test may fail by it")]
    pub(crate) fn shops() -> Subject {
        let primary = Kind::namespaced("example.com/v1", "Shop", "shops");
        let manifest: Manifest =
            serde_json::from_value(json!({"name": "shops", "primary": primary})).unwrap();
        Subject {
            name: "shops".to_owned(),
            manifest,
            module: json!({}),
            earlier_module: None,
            preexisting: Vec::new(),
            samples: Vec::new(),
            history: Vec::new(),
        }
    }
}
