//! What can go wrong on the way, on purpose.

use super::ProxiedRequest;

/// What happens to a request instead of a plain answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not forwarded; answered with this HTTP status and a Kubernetes `Status`, with
    /// `Retry-After` in seconds if given.
    Answer {
        /// As in 429 or 503.
        code: u16,
        /// Seconds.
        retry_after_s: Option<u32>,
    },
    /// Not forwarded; the connection is cut.
    LoseRequest,
    /// Forwarded and carried out; the connection is cut instead of an answer.
    LoseResponse,
    /// Forwarded only after a call of [`super::Proxy::let_go`].
    Delay,
}

/// When a callback at a write is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Before the write is forwarded; it is then dropped, and the connection cut: the
    /// server never sees it.
    Before,
    /// After the server has carried it out, before the answer; the connection is cut.
    After,
}

/// Which requests are meant: all that fit each given member.
#[derive(Clone, Debug, Default)]
pub struct Matching {
    writes: bool,
    method: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    path_prefix: Option<String>,
    watch: Option<bool>,
}

impl Matching {
    /// Every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// POST, PUT, PATCH and DELETE, reviews of rights left out (they change nothing).
    pub fn writes() -> Self {
        Self { writes: true, ..Self::default() }
    }

    /// Only this method, as in `PATCH`.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Only this resource, as in `deployments`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only this subresource, as in `status`; the empty text means none.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only this object.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only paths that begin so.
    #[must_use]
    pub fn path_prefix(mut self, prefix: &str) -> Self {
        self.path_prefix = Some(prefix.to_owned());
        self
    }

    /// Only watches, or only what is no watch.
    #[must_use]
    pub fn watch(mut self, watch: bool) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Whether `request` is meant.
    pub fn fits(&self, request: &ProxiedRequest) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        (!self.writes || request.is_write())
            && is(&self.method, &request.method)
            && is(&self.resource, &request.target.resource)
            && is(&self.subresource, &request.target.subresource)
            && is(&self.namespace, &request.target.namespace)
            && is(&self.name, &request.target.name)
            && self.path_prefix.as_deref().is_none_or(|prefix| request.uri.starts_with(prefix))
            && self.watch.is_none_or(|watch| watch == request.watch)
    }
}
