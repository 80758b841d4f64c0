use innkeeper_sdk::{Context, Observed, read};

use crate::PostgreSQL;
use crate::password::DIGEST_ANNOTATION;

/// Returns the digest of the password that the Deployment's pods have; `None` without Deployment.
pub(crate) fn password_digest(observed: &Observed<PostgreSQL>) -> Option<String> {
    let deployed = observed.owned::<read::Deployment>(observed.name())?;
    deployed.object.spec.template.metadata.annotations.get(DIGEST_ANNOTATION).cloned()
}

/// Returns whether an existing Deployment has the strategy `RollingUpdate`, because the original
/// operator created it. Its strategy cannot change to `Recreate`.
pub(crate) fn is_rolling(context: &Context, observed: &Observed<PostgreSQL>) -> bool {
    context
        .get::<read::Deployment>(observed.namespace(), observed.name())
        .is_ok_and(|deployed| deployed.object.spec.strategy.type_ == "RollingUpdate")
}
