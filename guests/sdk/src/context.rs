use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::read_fields::ReadFieldsRecord;
use crate::{KindName, Owned, Resource, Time};
use innkeeper_contract::{ObservedList, ObservedObject};

/// The severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For debugging this guest.
    Debug,
    /// Of interest to the administrator of the cluster.
    Info,
    /// Needs attention.
    Warn,
    /// An error.
    Error,
}

/// Why a read has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// No object has this name. The host runs the guest again when one is created.
    NotFound,
    /// The API server does not serve the kind. The host runs the guest again when it does.
    NotServed,
    /// RBAC does not let the module's ServiceAccount read it; the text names verb, resource and
    /// namespace.
    Forbidden(String),
    /// The manifest declares the kind neither as the primary nor as owned nor as read.
    Undeclared,
    /// An argument is malformed, for example the label selector; the text says how.
    Invalid(String),
    /// The object exists, but cannot be deserialized into the requested type; the text says why.
    Unreadable(String),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound => f.write_str("the object does not exist"),
            Self::NotServed => f.write_str("the API server does not serve this kind"),
            Self::Forbidden(what) => {
                write!(f, "the module's ServiceAccount may not read this: {what}")
            }
            Self::Undeclared => {
                f.write_str("the manifest does not declare this kind: add it with Describe::reads")
            }
            Self::Invalid(why) => write!(f, "an argument of the read is invalid: {why}"),
            Self::Unreadable(why) => write!(f, "the object does not have the expected type: {why}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// The imports of a guest, with documents as JSON text. The host implements it in a component,
/// `testing::FakeReader` in tests. Guests use [`Context`].
pub trait ClusterReader {
    /// Reads one object. Returns an `observed-object` document.
    ///
    /// `namespace` is empty for cluster-scoped kinds.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<String, ReadError>;
    /// Lists objects. Returns an `observed-list` document, ordered by namespace and name.
    ///
    /// An empty `namespace` means all namespaces that the module reads; an empty `selector`
    /// (label selector) matches all objects.
    ///
    /// # Errors
    /// See [`ReadError`].
    fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        selector: &str,
    ) -> Result<String, ReadError>;
    /// Returns the time in milliseconds since 1970-01-01T00:00:00Z, the same during one run.
    fn now_ms(&self) -> f64;
    /// Writes one line to the host's log.
    fn log(&self, level: LogLevel, message: &str);
}

/// What a run can use in addition to [`Observed`](crate::Observed): reads, the time, the log.
pub struct Context<'a> {
    reader: &'a dyn ClusterReader,
    fields: Option<&'a ReadFieldsRecord>,
}

impl<'a> Context<'a> {
    /// Creates a context that reads through `reader`.
    pub fn new(reader: &'a dyn ClusterReader) -> Self {
        Self { reader, fields: None }
    }

    /// Creates a context that records which fields are read, if there is a record.
    pub(crate) fn recording(
        reader: &'a dyn ClusterReader,
        fields: Option<&'a ReadFieldsRecord>,
    ) -> Self {
        Self { reader, fields }
    }

    /// Reads one object of a declared kind. `namespace` is empty for cluster-scoped kinds.
    ///
    /// ```ignore
    /// let secret = context.get::<Secret>(observed.namespace(), "database-password")?;
    /// ```
    ///
    /// # Errors
    /// See [`ReadError`]. The host records failed reads too, and runs the guest again when the
    /// answer changes.
    pub fn get<R: Resource + DeserializeOwned>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Owned<R>, ReadError> {
        self.get_as((R::API_VERSION, R::KIND), namespace, name)
    }

    /// Reads one object of a kind that a parameter of the Module names
    /// ([`Describe::reads_parameter`](crate::Describe::reads_parameter)). See [`get`](Self::get).
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn get_of(
        &self,
        kind: &KindName,
        namespace: &str,
        name: &str,
    ) -> Result<Owned<Value>, ReadError> {
        self.get_as((&kind.api_version, &kind.kind), namespace, name)
    }

    fn reads<R: DeserializeOwned>(&self, api_version: &str, kind: &str) {
        if let Some(fields) = &self.fields {
            fields.add::<R>(api_version, kind);
        }
    }

    fn get_as<R: DeserializeOwned>(
        &self,
        (api_version, kind): (&str, &str),
        namespace: &str,
        name: &str,
    ) -> Result<Owned<R>, ReadError> {
        self.reads::<R>(api_version, kind);
        let text = self.reader.get(api_version, kind, namespace, name)?;
        let unreadable = |error| ReadError::Unreadable(format!("{kind} {name}: {error}"));
        // In two steps, so that the code that reads documents is compiled once and not per type.
        let found: ObservedObject<&RawValue> = serde_json::from_str(&text).map_err(unreadable)?;
        let object = serde_json::from_str(found.object.get()).map_err(unreadable)?;
        Ok(Owned { object, readiness: found.readiness })
    }

    /// Reads one object of a declared kind that may be missing: `None` if it does not exist. See
    /// [`get`](Self::get).
    ///
    /// # Errors
    /// See [`ReadError`], without [`ReadError::NotFound`].
    pub fn find<R: Resource + DeserializeOwned>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Owned<R>>, ReadError> {
        match self.get(namespace, name) {
            Err(ReadError::NotFound) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Lists the objects of a declared kind, ordered by namespace and name.
    ///
    /// An empty `namespace` means all namespaces that the module reads. `selector` is a
    /// Kubernetes label selector (`app=web,tier!=test`); an empty one matches all objects.
    ///
    /// # Errors
    /// See [`ReadError`]. One object that cannot be deserialized into `R` fails the whole list.
    pub fn list<R: Resource + DeserializeOwned>(
        &self,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Owned<R>>, ReadError> {
        self.list_as((R::API_VERSION, R::KIND), namespace, selector)
    }

    /// Lists the objects of a kind that a parameter of the Module names. See [`list`](Self::list).
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn list_of(
        &self,
        kind: &KindName,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Owned<Value>>, ReadError> {
        self.list_as((&kind.api_version, &kind.kind), namespace, selector)
    }

    fn list_as<R: DeserializeOwned>(
        &self,
        (api_version, kind): (&str, &str),
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Owned<R>>, ReadError> {
        self.reads::<R>(api_version, kind);
        let text = self.reader.list(api_version, kind, namespace, selector)?;
        // One pass over the text: a list can have thousands of objects.
        let list: ObservedList<R> = serde_json::from_str(&text)
            .map_err(|error| ReadError::Unreadable(format!("list of {kind}: {error}")))?;
        let owned =
            |item: ObservedObject<R>| Owned { object: item.object, readiness: item.readiness };
        Ok(list.items.into_iter().map(owned).collect())
    }

    /// Returns the time in milliseconds since 1970-01-01T00:00:00Z, the same at every call of
    /// one run.
    ///
    /// The passing of time does not run the guest: a guest that uses the time sets
    /// [`Desired::requeue_after`](crate::Desired::requeue_after) or a resync period.
    pub fn now_ms(&self) -> f64 {
        self.reader.now_ms()
    }

    /// Returns the time in whole seconds; see [`now_ms`](Self::now_ms).
    pub fn now(&self) -> Time {
        Time::from_ms(self.now_ms())
    }

    /// Logs a line for debugging this guest.
    pub fn debug(&self, message: &str) {
        self.reader.log(LogLevel::Debug, message);
    }

    /// Logs a line for the administrator of the cluster.
    pub fn info(&self, message: &str) {
        self.reader.log(LogLevel::Info, message);
    }

    /// Logs a line about something that needs attention.
    pub fn warn(&self, message: &str) {
        self.reader.log(LogLevel::Warn, message);
    }

    /// Logs a line about an error.
    pub fn error(&self, message: &str) {
        self.reader.log(LogLevel::Error, message);
    }
}
