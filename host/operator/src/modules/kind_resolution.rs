//! The kinds that a module's parameters name, as the API server serves them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{ApiClient, FoundKind};
use innkeeper_contract::{Kind, Manifest};
use innkeeper_modules::kind_parameters::{self, RequestedKind};
use innkeeper_modules::machine::reason;
use innkeeper_modules::{ParametersJob, Rejection, RetryPolicy, resolved_manifest};

use super::declared::{self, KindRejection};

/// The maximum age of the answer of discovery that has the kinds.
const AGE_MAX: Duration = Duration::from_secs(5);

/// Finds the kinds that checked parameters name; `None` if the guest has no kind parameters.
///
/// # Errors
/// If a kind cannot be used, or discovery does not answer.
pub(super) async fn resolve(
    host: &ApiClient,
    job: &ParametersJob,
) -> Result<Option<Arc<Manifest>>, KindRejection> {
    let described = job.guest.described();
    if described.kind_parameters.is_empty() {
        return Ok(None);
    }
    let requested = kind_parameters::requested(described, &job.parameters)
        .map_err(|errors| invalid(&errors))?;
    let mut kinds = Vec::with_capacity(requested.len());
    for one in requested {
        let kind = find(host, &one, &job.known_kinds).await?;
        kinds.push((one, kind));
    }
    let resolved =
        resolved_manifest::resolve(described, kinds).map_err(|errors| invalid(&errors))?;
    let resolved = Arc::new(resolved);
    // A revision that was active stays decided: its kinds are compared one by one as they are read.
    if job.known_kinds.is_empty() {
        declared::check(host, &job.guest.with_manifest(Arc::clone(&resolved))).await?;
    }
    Ok(Some(resolved))
}

/// Finds one kind. A kind that was used before is used again if the API server does not serve it
/// now: its caches open when it is served.
async fn find(
    host: &ApiClient,
    one: &RequestedKind,
    known: &[Kind],
) -> Result<Kind, KindRejection> {
    let RequestedKind { place, name, .. } = one;
    let group = name.api_version.split_once('/').map_or("", |(group, _)| group);
    let later = |reason: &str, message: String| KindRejection {
        rejection: Rejection::new(reason, message, RetryPolicy::Later),
        groups: BTreeSet::from([group.to_owned()]),
    };
    match host.discovery().find(name, AGE_MAX).await {
        Ok(FoundKind::Served(kind)) => Ok(kind),
        Ok(FoundKind::NotServed) => known
            .iter()
            .find(|kind| kind.api_version == name.api_version && kind.kind == name.kind)
            .cloned()
            .ok_or_else(|| {
                later(
                    reason::KIND_NOT_SERVED,
                    format!("{place}: the API server does not serve {name}; install it or correct {place}"),
                )
            }),
        Ok(FoundKind::Ambiguous(plurals)) => Err(later(
            reason::KIND_AMBIGUOUS,
            format!(
                "{place}: the API server serves {name} as {}, and a kind parameter needs one resource of the kind; name another kind",
                plurals.join(" and as ")
            ),
        )),
        Err(error) => Err(later(
            error.reason(),
            format!("{place}: {name} cannot be looked up in discovery: {error}; the host tries again"),
        )),
    }
}

fn invalid(errors: &[String]) -> KindRejection {
    let message =
        format!("the guest cannot use the kinds of the parameters: {}", errors.join("; "));
    let rejection =
        Rejection::new(reason::INVALID_KIND_PARAMETER, message, RetryPolicy::WhenSpecChanges);
    KindRejection { rejection, groups: BTreeSet::new() }
}
