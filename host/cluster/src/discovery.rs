//! Discovery: the kinds that the API server serves. The host asks once per group and version.
//!
//! A guest chooses the kind, plural and scope in its manifest. URLs and rights go by plural, so a
//! manifest with the plural `secrets` under another kind would read Secrets. The API server is the
//! authority on the kind behind a path.

mod find;
mod listable;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use innkeeper_contract::{Kind, Scope};
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::error::{Guard, RequestContext};
use crate::resource_path::group_path;
use crate::transport::Transport;
use crate::{ApiError, Env, Identity};

pub use self::find::FoundKind;
pub use crate::served_kind::{Mismatch, ServedKind};

/// The longest answer of discovery for one group and version, in bytes: the core group has 10 KB.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// The most groups and versions in memory; with more, the host asks for all of them again.
const ANSWERS_MAX: usize = 1_024;

/// How long the answers "not served" and "mismatched" and an error are valid: the answer may change
/// any second.
const RECHECK_PERIOD: Duration = Duration::from_secs(1);

/// The longest name of a kind or of a resource in a message, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// A resource in the answer of discovery.
#[derive(Clone, Debug, Deserialize)]
struct Resource {
    #[serde(default)]
    name: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    namespaced: bool,
    /// The group of its objects, if it differs from the group of the path.
    #[serde(default)]
    group: String,
    #[serde(default)]
    verbs: Vec<String>,
}

/// The resources of one group and version.
#[derive(Debug, Default)]
struct Entry {
    /// The number of calls of [`Discovery::forget`].
    changes: AtomicU64,
    answer: tokio::sync::Mutex<Option<Answer>>,
}

#[derive(Debug)]
struct Answer {
    asked: Instant,
    /// [`Entry::changes`] at the time of the request.
    changes: u64,
    /// `None` if the server does not serve the group and version.
    result: Result<Option<Vec<Resource>>, ApiError>,
}

/// The discovery documents of one API server.
pub struct Discovery {
    transport: Transport,
    env: Env,
    entries: Mutex<BTreeMap<String, Arc<Entry>>>,
}

impl Discovery {
    /// Uses the host's own client: all modules use the answer, so it must not depend on the account
    /// of one of them.
    pub(crate) fn new(transport: Transport, env: Env) -> Self {
        Self { transport, env, entries: Mutex::default() }
    }

    /// Compares a kind with an answer of discovery that is at most `age` old.
    ///
    /// # Errors
    /// If discovery does not answer. The caller must not use the kind then.
    pub async fn check(&self, kind: &Kind, age: Duration) -> Result<ServedKind, ApiError> {
        let is_final = |served: &ServedKind| matches!(served, ServedKind::AsDeclared);
        self.answer(kind, age, is_final, |resources| {
            resources.map_or(ServedKind::NotServed, |resources| compare(kind, resources))
        })
        .await
    }

    /// Reads the resources of a kind's group and version, `None` if it is not served, from an
    /// answer that is at most `age` old. A result that is not final is valid for a shorter time.
    async fn answer<R>(
        &self,
        kind: &Kind,
        age: Duration,
        is_final: impl Fn(&R) -> bool,
        read: impl Fn(Option<&[Resource]>) -> R,
    ) -> Result<R, ApiError> {
        let read = |answer: &Answer| match &answer.result {
            Ok(resources) => Ok(read(resources.as_deref())),
            Err(error) => Err(error.clone()),
        };
        let entry = self.entry(&kind.api_version);
        let mut answer = entry.answer.lock().await;
        let now = self.env.instant();
        let known = answer.as_ref().filter(|answer| {
            answer.changes == entry.changes.load(Ordering::Acquire)
                && now.duration_since(answer.asked) <= age
        });
        if let Some(known) = known {
            let result = read(known);
            let is_new = now.duration_since(known.asked) < RECHECK_PERIOD;
            if is_new || result.as_ref().is_ok_and(&is_final) {
                return result;
            }
        }
        let changes = entry.changes.load(Ordering::Acquire);
        let result = self.ask(kind).await;
        // A failure counts from its end: the request may have taken long.
        let asked = if result.is_ok() { now } else { self.env.instant() };
        read(answer.insert(Answer { asked, changes, result }))
    }

    /// Whether the group of a kind may have changed since the last answer.
    pub(crate) async fn may_have_changed(&self, kind: &Kind) -> bool {
        let entry = self.entry(&kind.api_version);
        let answer = entry.answer.lock().await;
        let changes = entry.changes.load(Ordering::Acquire);
        answer.as_ref().is_none_or(|answer| answer.changes != changes)
    }

    /// Drops the answers of a group, because its kinds may have changed.
    pub fn forget(&self, group: &str) {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for (api_version, entry) in &*entries {
            if api_version.split_once('/').map_or("", |(group, _)| group) == group {
                entry.changes.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    fn entry(&self, api_version: &str) -> Arc<Entry> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(api_version) {
            return entry.clone();
        }
        if entries.len() >= ANSWERS_MAX {
            entries.clear();
        }
        entries.entry(api_version.to_owned()).or_default().clone()
    }

    async fn ask(&self, kind: &Kind) -> Result<Option<Vec<Resource>>, ApiError> {
        #[derive(Deserialize)]
        struct Resources {
            #[serde(default)]
            resources: Option<Vec<Resource>>,
        }
        let path = group_path(kind);
        let read: Option<Resources> = self.read_path(&path, kind).await?;
        Ok(read.map(|read| read.resources.unwrap_or_default()))
    }

    /// Reads the document at a path of discovery; `None` if the server has none there.
    async fn read_path<D: DeserializeOwned>(
        &self,
        path: &str,
        kind: &Kind,
    ) -> Result<Option<D>, ApiError> {
        let asked = RequestContext {
            identity: &Identity::Host,
            verb: "get",
            kind,
            subresource: "",
            namespace: "",
            guard: Guard::None,
        };
        let other = |code: u16, message: String| ApiError::Other {
            code,
            message: format!("discovery at {path}: {message}"),
        };
        let request = Request::builder()
            .method(Method::GET)
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .body(Body::empty())
            .map_err(|error| other(0, error.to_string()))?;
        let response = self.transport.send(request).await;
        let response = response.map_err(|error| asked.unanswered(error))?;
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let bytes = body.map_err(|error| other(0, error.to_string()))?.to_bytes();
        match parts.status {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::FORBIDDEN => Err(other(
                403,
                "the host may not read it; bind the ClusterRole system:discovery to its account"
                    .to_owned(),
            )),
            status if !status.is_success() => Err(asked.refused(status.as_u16(), &bytes)),
            _ => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| other(0, format!("the answer cannot be read: {error}"))),
        }
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Discovery(..)")
    }
}

/// Compares a declared kind with the resources of its group and version.
fn compare(kind: &Kind, resources: &[Resource]) -> ServedKind {
    let same = |one: &Resource| {
        one.kind == kind.kind
            && one.name == kind.plural
            && one.namespaced == kind.is_namespaced()
            && (one.group.is_empty() || one.group == kind.group())
    };
    // A subresource is no resource of its own.
    let is_whole = |one: &&Resource| !one.name.contains('/');
    let find =
        |is: &dyn Fn(&Resource) -> bool| resources.iter().find(|one| is(one) && is_whole(one));
    let found = find(&|one| one.name == kind.plural).or_else(|| find(&|one| one.kind == kind.kind));
    match found {
        None => ServedKind::NotServed,
        Some(one) if same(one) => ServedKind::AsDeclared,
        Some(one) => ServedKind::Mismatched(Mismatch {
            declared: described(
                &kind.api_version,
                &kind.kind,
                &kind.plural,
                kind.scope == Scope::Namespaced,
            ),
            served: described(&served_as(one, kind), &one.kind, &one.name, one.namespaced),
        }),
    }
}

/// Group and version of a resource, which names its group only if it differs from the path's.
fn served_as(resource: &Resource, kind: &Kind) -> String {
    if resource.group.is_empty() {
        kind.api_version.clone()
    } else {
        format!("{}/{}", resource.group, kind.version())
    }
}

fn described(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Box<str> {
    let scope = if namespaced { "Namespaced" } else { "Cluster" };
    let [api_version, kind, plural] = [api_version, kind, plural].map(quotable);
    format!("{api_version} {kind} (plural {plural}, scope {scope})").into()
}

/// A name in printable ASCII for a condition: an aggregated API server may send any text.
fn quotable(name: &str) -> String {
    let plain: String = name
        .chars()
        .take(NAME_BYTES_MAX)
        .map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .collect();
    if plain.is_empty() { "?".to_owned() } else { plain }
}

#[cfg(test)]
mod tests;
