//! Why a text is not an object.

/// Why a text is not an object of the requested kind.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON, or a member of `metadata` has another type than Kubernetes gives it.
    #[error("not a Kubernetes object: {0}")]
    Json(#[from] serde_json::Error),
    /// It is a Secret whose `data` or `stringData` does not map names to strings. The error quotes
    /// nothing, since it might quote a secret value.
    #[error("a Secret whose data is not a map of texts")]
    Secret,
    /// The object names another kind than the requested one.
    #[error("the object says that it is {received}, but {requested} was asked for")]
    OtherKind {
        /// The group, version and kind that the object names.
        received: Box<str>,
        /// The requested kind.
        requested: Box<str>,
    },
    /// The object has a namespace although its kind is cluster-scoped, or none although its kind is
    /// namespaced.
    #[error("the object lies in namespace {namespace:?}, but {requested} has scope {scope}")]
    OtherScope {
        /// The namespace of the object.
        namespace: Box<str>,
        /// The requested kind.
        requested: Box<str>,
        /// The scope of the requested kind.
        scope: &'static str,
    },
}
