use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::{Owned, Resource};
use innkeeper_contract::{ObservedList, ObservedObject};

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For whoever debugs this guest.
    Debug,
    /// What an operator of the cluster may want to know.
    Info,
    /// Something should be looked at.
    Warn,
    /// Something is wrong.
    Error,
}

/// Why a read has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// No object of that name. Its creation runs the guest again.
    NotFound,
    /// The API server does not serve the kind now. The guest runs again when it does.
    NotServed,
    /// The module's ServiceAccount may not read it; the text names verb, resource and namespace.
    Forbidden(String),
    /// The manifest declares the kind neither as primary, nor owned, nor read.
    Undeclared,
    /// The arguments cannot be understood, for example a malformed selector.
    Invalid(String),
    /// There is an object, and it is not shaped as the type that it is read as.
    Unreadable(String),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is no such object"),
            Self::NotServed => f.write_str("the API server does not serve this kind"),
            Self::Forbidden(what) => write!(f, "the module may not read this: {what}"),
            Self::Undeclared => {
                f.write_str("the manifest does not declare this kind: add it with Describe::reads")
            }
            Self::Invalid(why) => write!(f, "the read cannot be understood: {why}"),
            Self::Unreadable(why) => write!(f, "the object is not shaped as expected: {why}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// What a guest can ask of its surroundings, as texts: the host in a component, an
/// in-memory world in tests. Guests use [`Context`].
pub trait ClusterReader {
    /// An `observed-object` document.
    fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<String, ReadError>;
    /// An `observed-list` document.
    fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        selector: &str,
    ) -> Result<String, ReadError>;
    /// Milliseconds since 1970, the same in all of one run.
    fn now_ms(&self) -> f64;
    /// One line for the host's log.
    fn log(&self, level: LogLevel, message: &str);
}

/// What a run can ask beyond what it is given: reads, the time, the log.
pub struct Context<'a> {
    reader: &'a dyn ClusterReader,
}

impl<'a> Context<'a> {
    /// A context on a world.
    pub fn new(reader: &'a dyn ClusterReader) -> Self {
        Self { reader }
    }

    /// One object of a declared kind. `namespace` is empty for cluster-scoped kinds.
    ///
    /// ```ignore
    /// let secret = context.get::<Secret>(observed.namespace(), "database-password")?;
    /// ```
    pub fn get<R: Resource + DeserializeOwned>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Owned<R>, ReadError> {
        let text = self.reader.get(R::API_VERSION, R::KIND, namespace, name)?;
        let unreadable = |error| ReadError::Unreadable(format!("{} {name}: {error}", R::KIND));
        // The document first and the object then: the code that reads documents is there once,
        // not once for each type.
        let found: ObservedObject<&RawValue> = serde_json::from_str(&text).map_err(unreadable)?;
        let object = serde_json::from_str(found.object.get()).map_err(unreadable)?;
        Ok(Owned { object, readiness: found.readiness })
    }

    /// The objects of a declared kind that match, ordered by namespace and name.
    ///
    /// `namespace` empty: of all namespaces that the module reads. `selector`: Kubernetes'
    /// label selector (`app=web,tier!=test`), empty for all.
    pub fn list<R: Resource + DeserializeOwned>(
        &self,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Owned<R>>, ReadError> {
        let text = self.reader.list(R::API_VERSION, R::KIND, namespace, selector)?;
        let list: ObservedList<&RawValue> = serde_json::from_str(&text)
            .map_err(|error| ReadError::Unreadable(format!("list of {}: {error}", R::KIND)))?;
        list.items
            .into_iter()
            .map(|item| {
                let object = serde_json::from_str(item.object.get()).map_err(|error| {
                    ReadError::Unreadable(format!("a {} in a list: {error}", R::KIND))
                })?;
                Ok(Owned { object, readiness: item.readiness })
            })
            .collect()
    }

    /// The time, in milliseconds since 1970-01-01T00:00:00Z, the same at every call in one run.
    ///
    /// Time alone wakes nobody: a guest that reads it asks to be run again
    /// ([`Desired::requeue_after`](crate::Desired::requeue_after)) or has a resync period.
    pub fn now_ms(&self) -> f64 {
        self.reader.now_ms()
    }

    /// A line for whoever debugs this guest.
    pub fn debug(&self, message: &str) {
        self.reader.log(LogLevel::Debug, message);
    }

    /// A line that an operator of the cluster may want to know.
    pub fn info(&self, message: &str) {
        self.reader.log(LogLevel::Info, message);
    }

    /// A line about something that should be looked at.
    pub fn warn(&self, message: &str) {
        self.reader.log(LogLevel::Warn, message);
    }

    /// A line about something that is wrong.
    pub fn error(&self, message: &str) {
        self.reader.log(LogLevel::Error, message);
    }
}
