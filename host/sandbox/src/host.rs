//! The imports that a guest may call: [`Host`].

/// Answers a guest's imports during one call. The caller implements it over a snapshot of the
/// cluster, so the same read has the same answer until the call ends.
///
/// `room` is the largest answer in bytes. An implementation counts the bytes before it joins the
/// answer's text, and gives [`ReadError::TooLarge`] if there are more, which ends the call.
pub trait Host {
    /// Reads one object, as the text of an `observed-object` document.
    ///
    /// The sandbox calls it only for kinds that the guest's manifest declares. `namespace` is empty
    /// for cluster-scoped kinds.
    ///
    /// # Errors
    /// [`ReadError`]; the guest sees it and may go on.
    fn get(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
        room: usize,
    ) -> Result<String, ReadError>;

    /// Lists the objects that match, as the text of an `observed-list` document.
    ///
    /// The sandbox calls it only for kinds that the guest's manifest declares. An empty `namespace`
    /// means all namespaces of the module, an empty `label_selector` (in Kubernetes' syntax) all
    /// objects.
    ///
    /// # Errors
    /// [`ReadError`]; the guest sees it and may go on.
    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        room: usize,
    ) -> Result<String, ReadError>;

    /// Milliseconds since 1970-01-01T00:00:00Z. The sandbox calls it at most once in a call.
    fn now_ms(&mut self) -> u64;

    /// Takes one line of the guest's log. A line that the sandbox cut to the limit ends with three
    /// dots.
    fn log(&mut self, level: Level, message: &str);
}

/// A kind of resource, as a guest names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKind {
    /// Group and version (`apps/v1`); the version alone for the core group.
    pub api_version: String,
    /// CamelCase and singular (`Deployment`).
    pub kind: String,
}

/// The reason why a read has no answer. The guest sees the texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is no object of that name.
    NotFound,
    /// The API server does not serve the kind now.
    NotServed,
    /// The module may not read the kind; the text names verb, resource and namespace.
    Forbidden(String),
    /// The manifest does not declare the kind. The sandbox itself gives this answer.
    Undeclared,
    /// The arguments are invalid; the text has the reason.
    Invalid(String),
    /// The answer has more bytes than `room`. The call ends, so the guest does not see this error.
    TooLarge,
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author of the guest.
    Debug,
    /// A report of work.
    Info,
    /// A possible problem.
    Warn,
    /// A problem.
    Error,
}

/// Lends the caller's [`Host`] to a call. A store owns its data (`'static`), but the caller's host
/// is borrowed: the thread of the call carries the loan, which ends with the call.
pub(crate) struct Loan<'a>(pub(crate) &'a mut (dyn Host + 'a));

impl<'a> scoped_tls_hkt::ReborrowMut<'a> for Loan<'_> {
    type Result = Loan<'a>;

    fn reborrow_mut(&'a mut self) -> Loan<'a> {
        Loan(&mut *self.0)
    }
}

scoped_tls_hkt::scoped_thread_local!(pub(crate) static mut LOAN: for<'a> Loan<'a>);

/// The most warnings of one `describe` that the host keeps.
const WARNINGS_MAX: usize = 20;

/// The host of `describe`, without a cluster. It keeps the guest's warnings.
#[derive(Default)]
pub(crate) struct NoHost {
    pub(crate) warnings: Vec<String>,
}

impl Host for NoHost {
    fn get(&mut self, _: &ResourceKind, _: &str, _: &str, _: usize) -> Result<String, ReadError> {
        Err(ReadError::Undeclared)
    }

    fn list(&mut self, _: &ResourceKind, _: &str, _: &str, _: usize) -> Result<String, ReadError> {
        Err(ReadError::Undeclared)
    }

    fn now_ms(&mut self) -> u64 {
        0
    }

    fn log(&mut self, level: Level, message: &str) {
        tracing::debug!(?level, message, "guest logged in describe");
        // A component with two exports warns twice of the same.
        let is_known = self.warnings.iter().any(|one| one == message);
        if level >= Level::Warn && !is_known && self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(message.to_owned());
        }
    }
}
