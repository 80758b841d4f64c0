use innkeeper_sdk::{Context, Observed, read};

use crate::PostgreSQL;
use crate::password::DIGEST_ANNOTATION;

/// The digest of the password that our Deployment's pods have now; `None` if there is none.
pub(crate) fn password_digest(observed: &Observed<PostgreSQL>) -> Option<String> {
    let deployed = observed.owned::<read::Deployment>(observed.name())?;
    deployed.object.spec.template.metadata.annotations.get(DIGEST_ANNOTATION).cloned()
}

/// Whether there is a Deployment that replaces its pods by a rolling update: one that is to be
/// adopted, or was. It cannot be changed to another strategy.
pub(crate) fn is_rolling(context: &Context, observed: &Observed<PostgreSQL>) -> bool {
    context
        .get::<read::Deployment>(observed.namespace(), observed.name())
        .is_ok_and(|deployed| deployed.object.spec.strategy.type_ == "RollingUpdate")
}
