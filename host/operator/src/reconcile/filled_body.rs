//! The bytes of value sources, for one request: [`FilledBody`].
//!
//! A desired object has placeholders where the host copies values. Only here does the host read the
//! values: live, as the module's account, for a step that writes. They are in no cache, and in no
//! type that can be printed or cloned.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_core::desired::{CopiedSource, DesiredObject, MissingValues, MissingValuesProblem};
use innkeeper_core::value_source::VALUES_BYTES_MAX;
use innkeeper_core::{ObjectRef, object};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::reconcile::problem::{Problem, Retry};
use crate::reconcile::refusal::RefusalCause;
use crate::reconcile::write_error::WriteErrorClass;

/// The most bytes of the values of an object as a source has them, in base64.
const BASE64_BYTES_MAX: usize = VALUES_BYTES_MAX.div_ceil(3) * 4;

/// A body with the values of its sources. It has neither `Debug` nor `Clone`.
pub struct FilledBody {
    body: Value,
    is_secret: bool,
}

impl FilledBody {
    /// The body, for a request.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The error of the request, without texts that may quote copied values of a Secret.
    pub fn error(&self, error: ApiError) -> ApiError {
        if self.is_secret { error.without_message() } else { error }
    }
}

/// Why a body cannot be filled.
pub enum NotFilled {
    /// The source is not as it was in the snapshot: read it live, and plan again.
    Outdated(ObjectRef),
    /// The source cannot be copied.
    Problem {
        /// Why.
        problem: Box<Problem>,
        /// The API server is overloaded or away, so the round ends.
        ends_round: bool,
    },
}

/// The value sources that a round has read. It reads each at most once.
#[derive(Default)]
pub struct SourceReads(Mutex<BTreeMap<ObjectRef, Arc<Source>>>);

/// A source as the API server sends it. It has neither `Debug` nor `Clone`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    metadata: Metadata,
    #[serde(rename = "type", default)]
    type_: Option<String>,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
    #[serde(default)]
    binary_data: Option<BTreeMap<String, String>>,
}

/// The members of a source's metadata that name its version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: Box<str>,
    resource_version: Box<str>,
}

impl Source {
    /// The member that has a key, and the value.
    fn value(&self, key: &str) -> Option<(&'static str, &str)> {
        let members = [("data", &self.data), ("binaryData", &self.binary_data)];
        members
            .into_iter()
            .find_map(|(member, values)| Some((member, values.as_ref()?.get(key)?.as_str())))
    }
}

impl SourceReads {
    /// Puts the values of its sources into the body of a desired object.
    ///
    /// # Errors
    /// If a source cannot be read, or is not the version from which the plan was made.
    pub async fn fill(
        &self,
        client: &ApiClient,
        desired: &DesiredObject,
        mut body: Value,
    ) -> Result<FilledBody, NotFilled> {
        let target = &desired.object_ref;
        let mut bytes = 0;
        for copied in &desired.copied {
            let source = self.read(client, copied, target).await?;
            for (key, key_here) in &copied.keys {
                let Some((member, value)) = source.value(key) else {
                    return Err(NotFilled::Outdated(copied.object_ref.clone()));
                };
                bytes += value.len();
                if bytes > BASE64_BYTES_MAX {
                    return Err(too_large(copied, target));
                }
                body[member][key_here] = value.into();
            }
        }
        let is_secret =
            !desired.copied.is_empty() && object::holds_secrets(&desired.object_ref.kind);
        Ok(FilledBody { body, is_secret })
    }

    /// Reads a source, unless this round has read it, and checks its version.
    async fn read(
        &self,
        client: &ApiClient,
        copied: &CopiedSource,
        target: &ObjectRef,
    ) -> Result<Arc<Source>, NotFilled> {
        let source_ref = &copied.object_ref;
        let reads = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = reads().get(source_ref).cloned();
        let source = if let Some(source) = known {
            source
        } else {
            let source = Arc::new(fetch(client, copied, target).await?);
            reads().insert(source_ref.clone(), source.clone());
            source
        };
        // The planner copies from no token: if the source is one now, it is another version.
        let is_token = source.type_.as_deref().is_some_and(object::is_token_type);
        if is_token
            || source.metadata.uid != copied.uid
            || source.metadata.resource_version != copied.resource_version
        {
            return Err(NotFilled::Outdated(source_ref.clone()));
        }
        Ok(source)
    }
}

/// Reads a source live.
async fn fetch(
    client: &ApiClient,
    copied: &CopiedSource,
    target: &ObjectRef,
) -> Result<Source, NotFilled> {
    let ObjectRef { kind, key } = &copied.object_ref;
    let outdated = || NotFilled::Outdated(copied.object_ref.clone());
    let found: Box<RawValue> = match client.get_as(kind, key).await {
        Ok(found) => found,
        Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => {
            return Err(outdated());
        }
        Err(error) => return Err(unread(copied, target, &error)),
    };
    // The error is dropped: it might quote the source.
    serde_json::from_str(found.get()).map_err(|_| outdated())
}

/// The problem of a source that the module's account may not read, or that cannot be read now.
fn unread(copied: &CopiedSource, target: &ObjectRef, error: &ApiError) -> NotFilled {
    let source = &copied.object_ref;
    let advice = match error {
        ApiError::Forbidden { .. } => format!(
            "; the ServiceAccount needs the verb get on it, for example by resourceNames: [{}]",
            source.key.name()
        ),
        _ => String::new(),
    };
    let problem = Problem {
        refusal: RefusalCause::of(error, source),
        object_ref: Some(target.clone()),
        reason: error.reason().to_owned(),
        message: format!("its value source {source} cannot be read: {error}{advice}"),
        retry: Retry::Backoff,
    };
    let ends_round = WriteErrorClass::of(error).ends_round();
    NotFilled::Problem { problem: Box::new(problem), ends_round }
}

/// The problem of sources that together are too large for the object.
fn too_large(copied: &CopiedSource, target: &ObjectRef) -> NotFilled {
    let missing = MissingValues {
        source: copied.object_ref.clone(),
        problem: MissingValuesProblem::TooLarge,
    };
    let problem = Problem {
        refusal: Some(RefusalCause::Data),
        object_ref: Some(target.clone()),
        reason: missing.reason().to_owned(),
        message: missing.to_string(),
        retry: Retry::OnChange,
    };
    NotFilled::Problem { problem: Box::new(problem), ends_round: false }
}
