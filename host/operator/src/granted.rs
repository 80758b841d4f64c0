//! Secrets that a Module grants to its guest whole (`spec.readSecrets`).
//!
//! They are read live, as the module's account, before each run, and dropped after it: the caches
//! never hold their bytes. Everybody else, and the same guest for any other Secret, sees digests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use innkeeper_cluster::ApiError;
use innkeeper_contract::Kind;
use innkeeper_core::{Key, Object};
use serde_json::value::RawValue;

use crate::problem::{Problem, Retry};
use crate::running::Running;

/// The kind of Secrets.
static SECRET: LazyLock<Kind> = LazyLock::new(|| Kind::namespaced("v1", "Secret", "secrets"));

/// Secrets with their bytes, for one run. Shows its names only.
#[derive(Default)]
pub struct Granted(BTreeMap<Key, Object>);

impl Granted {
    /// Reads what the Module grants, in the namespace of a primary.
    ///
    /// # Errors
    /// If one cannot be read. One that is not there is none.
    pub async fn read(running: &Running, primary: &Key) -> Result<Self, Problem> {
        let mut granted = Self::default();
        let names = &running.settings().read_secrets;
        if names.is_empty() || running.kind(&SECRET.api_version, &SECRET.kind).is_none() {
            return Ok(granted);
        }
        for name in names {
            let key = Key::new(primary.namespace(), name);
            let found: Box<RawValue> = match running.session.get_as(&SECRET, &key).await {
                Ok(found) => found,
                Err(ApiError::NotFound { .. } | ApiError::NamespaceMissing { .. }) => continue,
                Err(error) => return Err(refused(&key, &error)),
            };
            // What is wrong with a Secret's text is not told: it might tell of the Secret.
            if let Ok(object) = Object::decode(&SECRET, found.get(), None) {
                granted.0.insert(key, object);
            }
        }
        Ok(granted)
    }

    /// A Secret with its bytes, if it is granted.
    pub fn get(&self, kind: &Kind, key: &Key) -> Option<&Object> {
        if *kind == *SECRET { self.0.get(key) } else { None }
    }
}

fn refused(key: &Key, error: &ApiError) -> Problem {
    Problem {
        target: None,
        reason: error.reason().to_owned(),
        message: format!("Secret {key}, which the Module grants, cannot be read: {error}"),
        retry: Retry::Backoff,
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
