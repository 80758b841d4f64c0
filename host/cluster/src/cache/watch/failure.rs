//! Errors of a watch: [`Failure`].

use kube::runtime::watcher;

use super::end::WatchEnd;
use crate::cache::cache_id::CacheId;
use crate::error::{Guard, RequestContext};
use crate::transport::NoAnswer;
use crate::{ApiClient, ApiError};

/// The reaction to an error of a watch.
pub(super) enum Failure {
    /// The client stops filling the cache.
    End(WatchEnd),
    /// The watcher lists again by itself.
    Retry,
    /// The watcher goes on after a backoff.
    Wait(ApiError),
}

/// The reaction to an error of a watch.
pub(super) fn classify(id: &CacheId, client: &ApiClient, error: &watcher::Error) -> Failure {
    let context = |verb| RequestContext {
        identity: client.identity(),
        verb,
        kind: &id.kind,
        subresource: "",
        namespace: id.namespace.as_deref().unwrap_or_default(),
        guard: Guard::None,
    };
    let read = |verb, error: &kube::Error| match error {
        kube::Error::Api(status) => context(verb).status(status),
        kube::Error::Service(error) => context(verb).unanswered(NoAnswer::of(&**error)),
        error => context(verb).unanswered(NoAnswer::of(error)),
    };
    let error = match error {
        // The watcher lists again by itself.
        watcher::Error::WatchError(status) if status.code == 410 => return Failure::Retry,
        // Here the watcher would request the same version for ever.
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410 => {
            return Failure::End(WatchEnd::Expired);
        }
        watcher::Error::InitialListFailed(error) => read("list", error),
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            read("watch", error)
        }
        watcher::Error::WatchError(status) => context("watch").status(status),
        watcher::Error::NoResourceVersion => ApiError::Other {
            code: 0,
            message: "the API server gives no versions of this kind: it cannot be watched".into(),
        },
    };
    match error {
        ApiError::NotServed { .. } | ApiError::NotFound { .. } => Failure::End(WatchEnd::NotServed),
        ApiError::Forbidden { denial, .. } => Failure::End(WatchEnd::Forbidden(*denial)),
        error => Failure::Wait(error),
    }
}
