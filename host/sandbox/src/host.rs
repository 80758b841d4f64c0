//! What a guest may ask of us during a call.

/// Answers a guest's imports during one call. The caller implements it over a frozen view
/// of the cluster, so that the same question has the same answer until the call ends.
///
/// `room` is how many bytes an answer may have. Count before you join the answer's text, and give
/// [`ReadError::TooLarge`] if it has more: that ends the call.
pub trait Host {
    /// One object, as the text of an `observed-object` document.
    ///
    /// Asked only for kinds that the guest's manifest declares. `namespace` is empty for
    /// cluster-scoped kinds.
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

    /// The objects that match, as the text of an `observed-list` document.
    ///
    /// Asked only for kinds that the guest's manifest declares. An empty `namespace` means all
    /// that the module reads, an empty `label_selector` (in Kubernetes' syntax) all objects.
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

    /// Milliseconds since 1970-01-01T00:00:00Z. Asked at most once in a call.
    fn now_ms(&mut self) -> u64;

    /// One line of the guest's log, already cut to the limit: then it ends with three dots.
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

/// Why a read has no answer. The texts are seen by the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// There is no object of that name.
    NotFound,
    /// The API server does not serve the kind now.
    NotServed,
    /// The module may not read it; the text names verb, resource and namespace.
    Forbidden(String),
    /// The manifest does not declare the kind. The sandbox itself answers so.
    Undeclared,
    /// The arguments cannot be understood; the text says how.
    Invalid(String),
    /// The answer has more bytes than there is room for. The guest does not see it: its call ends.
    TooLarge,
}

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever debugs the guest.
    Debug,
    /// What was done.
    Info,
    /// Something may be wrong.
    Warn,
    /// Something is wrong.
    Error,
}

/// Lends the caller's [`Host`] to a call. A store owns what it holds (`'static`), the
/// caller's host is borrowed: the thread that makes the call carries the loan, and it ends
/// with the call.
pub(crate) struct Loan<'a>(pub(crate) &'a mut (dyn Host + 'a));

impl<'a> scoped_tls_hkt::ReborrowMut<'a> for Loan<'_> {
    type Result = Loan<'a>;

    fn reborrow_mut(&'a mut self) -> Loan<'a> {
        Loan(&mut *self.0)
    }
}

scoped_tls_hkt::scoped_thread_local!(pub(crate) static mut LOAN: for<'a> Loan<'a>);

/// The host of `describe`: there is no cluster yet.
pub(crate) struct NoHost;

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
        tracing::debug!(?level, message, "a guest logs in describe");
    }
}
