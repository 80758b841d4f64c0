//! The audit log of the API server: who did what, counted at the server.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Error;

/// Everything at level Metadata, once a request has been answered (and, for watches,
/// when the answer began).
pub(crate) const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [{ "level": "Metadata" }]
}
"#;

/// A reader of the audit log. Cheap to clone; each reading starts from the file.
///
/// An event may be written a moment after the client has its answer, so wait for what
/// should be there; a test can assert that something is *not* there only after the wait.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
}

/// One request, as the API server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// `ResponseStarted` (long-running requests), `ResponseComplete` or `Panic`.
    pub stage: String,
    /// When the stage was reached: RFC 3339 with microseconds, UTC, so that text order is
    /// time order.
    pub time: String,
    /// When the API server received the request, in the same form.
    pub received: String,
    /// The authenticated user.
    pub user: String,
    /// The user that was acted as, if the request impersonated one.
    pub impersonated: Option<String>,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`;
    /// for other paths the method in lower case.
    pub verb: String,
    /// API group; empty for the core group and for other paths.
    pub group: String,
    /// Plural of the kind; empty for other paths, like /readyz.
    pub resource: String,
    /// `status`, `scale` and so on; else empty.
    pub subresource: String,
    /// Namespace; else empty.
    pub namespace: String,
    /// Name; empty for lists, and for creates whose name the server makes.
    pub name: String,
    /// Path and query.
    pub uri: String,
    /// User agent.
    pub agent: String,
    /// HTTP status; 0 where none was sent.
    pub code: u16,
}

impl AuditEvent {
    /// Whether the request was one that writes, whatever the server answered.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Whether the server did what was asked (2xx).
    pub fn succeeded(&self) -> bool {
        (200..300).contains(&self.code)
    }

    fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| {
            value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let code = value.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or(0);
        Some(Self {
            stage: text("/stage"),
            time: text("/stageTimestamp"),
            received: text("/requestReceivedTimestamp"),
            user: text("/user/username"),
            impersonated: Some(text("/impersonatedUser/username")).filter(|user| !user.is_empty()),
            verb: text("/verb"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            uri: text("/requestURI"),
            agent: text("/userAgent"),
            code: u16::try_from(code).ok()?,
        })
    }
}

/// Which events are meant: all that fit each given member.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    user: Option<String>,
    impersonated: Option<String>,
    verbs: Vec<String>,
    resource: Option<String>,
    not_resources: Vec<String>,
    namespace: Option<String>,
    writes_only: bool,
}

impl AuditFilter {
    /// Every answered request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only requests that write.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.writes_only = true;
        self
    }

    /// Only requests authenticated as `user`.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// Only requests that acted as `user`, as in `system:serviceaccount:NAMESPACE:NAME`.
    #[must_use]
    pub fn impersonated(mut self, user: &str) -> Self {
        self.impersonated = Some(user.to_owned());
        self
    }

    /// Only this verb; may be given several times.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verbs.push(verb.to_owned());
        self
    }

    /// Only this resource, as in `deployments`, or `deployments/status`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Not this resource, as in `leases`; may be given several times.
    #[must_use]
    pub fn not_resource(mut self, resource: &str) -> Self {
        self.not_resources.push(resource.to_owned());
        self
    }

    /// Only in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Whether `event` is meant.
    pub fn fits(&self, event: &AuditEvent) -> bool {
        let resource = if event.subresource.is_empty() {
            event.resource.clone()
        } else {
            format!("{}/{}", event.resource, event.subresource)
        };
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        (!self.writes_only || event.is_write())
            && is(&self.user, &event.user)
            && is(&self.impersonated, event.impersonated.as_deref().unwrap_or_default())
            && (self.verbs.is_empty() || self.verbs.contains(&event.verb))
            && is(&self.resource, &resource)
            && !self.not_resources.contains(&resource)
            && is(&self.namespace, &event.namespace)
    }
}

impl AuditLog {
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The place in the log up to which it is written now, for [`Self::since`].
    ///
    /// # Errors
    /// If the log exists and cannot be read.
    pub fn mark(&self) -> Result<u64, Error> {
        match fs::metadata(&self.path) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(Error::file(&self.path)(error)),
        }
    }

    fn read_from(&self, offset: u64) -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(&self.path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// All answered requests that `filter` means, in the order of the log.
    ///
    /// # Errors
    /// If the log cannot be read, or a line of it is no event.
    pub fn events(&self, filter: &AuditFilter) -> Result<Vec<AuditEvent>, Error> {
        self.since(0, filter)
    }

    /// The same, of what was logged after `mark`. A request counts once: when it began to
    /// be answered if it is a watch, else when it was answered.
    ///
    /// # Errors
    /// If the log cannot be read, or a line of it is no event.
    pub fn since(&self, mark: u64, filter: &AuditFilter) -> Result<Vec<AuditEvent>, Error> {
        // From the byte before the mark on: a mark may lie within a line that was being written,
        // and that line was before it.
        let bytes = match self.read_from(mark.saturating_sub(1)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::file(&self.path)(error)),
        };
        let start = match mark {
            0 => 0,
            _ => bytes
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(bytes.len(), |newline| newline + 1),
        };
        // What follows the last newline is still being written.
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(start, |last| last + 1);
        let text = String::from_utf8_lossy(&bytes[start..end.max(start)]);
        let mut events = Vec::new();
        for line in text.lines() {
            let event = AuditEvent::parse(line).ok_or_else(|| Error::Unreadable {
                path: self.path.clone(),
                what: format!("not an audit event: {line}"),
            })?;
            let once = (event.verb == "watch") == (event.stage == "ResponseStarted");
            if once && filter.fits(&event) {
                events.push(event);
            }
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APPLY: &str = r#"{"kind":"Event","level":"Metadata","auditID":"1","stage":"ResponseComplete","requestURI":"/apis/apps/v1/namespaces/a/deployments/b/status?fieldManager=x","verb":"patch","user":{"username":"host"},"impersonatedUser":{"username":"system:serviceaccount:innkeeper-modules:podroute"},"userAgent":"innkeeper","objectRef":{"resource":"deployments","namespace":"a","name":"b","apiGroup":"apps","apiVersion":"v1","subresource":"status"},"responseStatus":{"metadata":{},"code":200},"stageTimestamp":"2026-11-21T03:00:00.000001Z"}"#;
    const WATCH: &str = r#"{"stage":"ResponseStarted","requestURI":"/api/v1/pods?watch=true","verb":"watch","user":{"username":"host"},"objectRef":{"resource":"pods","apiVersion":"v1"},"responseStatus":{"code":200},"stageTimestamp":"2026-11-21T03:00:01.000001Z"}"#;

    #[test]
    fn a_mark_within_a_line_leaves_that_line_out() {
        let (_folder, log) = log(&[APPLY, WATCH], "");
        let within = u64::try_from(APPLY.len() - 7).unwrap();
        let events = log.since(within, &AuditFilter::new()).unwrap();
        assert_eq!(events.iter().map(|event| &*event.verb).collect::<Vec<_>>(), ["watch"]);
        let at_line = u64::try_from(APPLY.len() + 1).unwrap();
        assert_eq!(log.since(at_line, &AuditFilter::new()).unwrap().len(), 1);
    }

    fn log(lines: &[&str], unfinished: &str) -> (tempfile::TempDir, AuditLog) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut text = lines.join("\n");
        text.push('\n');
        fs::write(&path, text + unfinished).unwrap();
        (folder, AuditLog::at(&path))
    }

    #[test]
    fn a_watch_counts_when_it_begins_and_the_rest_when_answered() {
        let ended = WATCH.replace("ResponseStarted", "ResponseComplete");
        let (_folder, log) = log(&[APPLY, WATCH, &ended], "");
        let verbs: Vec<_> =
            log.events(&AuditFilter::new()).unwrap().into_iter().map(|event| event.verb).collect();
        assert_eq!(verbs, ["patch", "watch"]);
    }

    #[test]
    fn filters_choose_by_user_verb_resource_and_writing() {
        let (_folder, log) = log(&[APPLY, WATCH], "");
        let count = |filter: AuditFilter| log.events(&filter).unwrap().len();
        assert_eq!(count(AuditFilter::new().user("host")), 2);
        assert_eq!(count(AuditFilter::new().user("other")), 0);
        assert_eq!(count(AuditFilter::new().writes()), 1);
        assert_eq!(count(AuditFilter::new().verb("watch").verb("list")), 1);
        assert_eq!(count(AuditFilter::new().resource("deployments")), 0);
        assert_eq!(count(AuditFilter::new().resource("deployments/status")), 1);
        assert_eq!(count(AuditFilter::new().not_resource("pods")), 1);
        assert_eq!(count(AuditFilter::new().namespace("a")), 1);
        let module = "system:serviceaccount:innkeeper-modules:podroute";
        assert_eq!(count(AuditFilter::new().impersonated(module)), 1);
    }

    #[test]
    fn events_before_the_mark_and_half_written_lines_are_left_out() {
        let (_folder, log) = log(&[APPLY, WATCH], &APPLY[..50]);
        let after_first = APPLY.len() as u64 + 1;
        let events = log.since(after_first, &AuditFilter::new()).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].resource, "pods");
    }

    #[test]
    fn a_line_that_is_not_an_event_is_an_error() {
        let (_folder, log) = log(&["panic: oh"], "");
        let error = log.events(&AuditFilter::new()).unwrap_err().to_string();
        assert!(error.contains("not an audit event: panic: oh"), "{error}");
    }
}
