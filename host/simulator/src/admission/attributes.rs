//! The attributes of a write, as webhooks get them.

use std::sync::Arc;

use serde_json::Value;

use crate::api::request_context::RequestContext;
use crate::apply::managed_object::ManagedObject;
use crate::state::cluster::Cluster;

/// The operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    /// The operation in AdmissionReviews.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// The kind of a request's options.
    pub(crate) fn options(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

/// A request, as webhooks get it.
pub(crate) struct Attributes<'a> {
    pub(crate) context: &'a RequestContext<'a>,
    pub(crate) operation: Operation,
    pub(crate) object: Option<&'a Value>,
    pub(crate) old: Option<&'a Value>,
}

impl Attributes<'_> {
    /// Group and plural of the written resource: a scale is of another kind than its object.
    pub(crate) fn resource(&self) -> (&str, &str) {
        let RequestContext { kind, target, .. } = self.context;
        if kind.plural.is_empty() {
            (&target.group, &target.resource)
        } else {
            (&kind.group, &kind.plural)
        }
    }

    /// The namespace as rules select it, if the object is in one or is one.
    pub(crate) fn namespace(&self, cluster: &Cluster) -> Option<Arc<ManagedObject>> {
        if self.context.kind.is("", "Namespace") {
            return self.object.or(self.old).cloned().map(ManagedObject::new).map(Arc::new);
        }
        let name = self.context.namespace();
        if name.is_empty() {
            return None;
        }
        let kind = (String::new(), "namespaces".to_owned());
        cluster.object(&kind, &(String::new(), name.to_owned()))
    }

    /// The version of the object.
    pub(crate) fn version(&self) -> &str {
        let RequestContext { kind, target, .. } = self.context;
        if kind.plural.is_empty() { &target.version } else { &kind.version }
    }
}
