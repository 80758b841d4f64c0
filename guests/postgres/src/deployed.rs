use innkeeper_sdk::{Context, Labels, Observed, Resource, read};
use serde::Deserialize;

use crate::PostgreSQL;
use crate::password::DIGEST_ANNOTATION;

/// The digest of the password that our Deployment's pods have now; `None` if there is none.
pub(crate) fn password_digest(observed: &Observed<PostgreSQL>) -> Option<String> {
    let deployed = observed.owned::<Deployed>(observed.name())?;
    deployed.object.spec.template.metadata.annotations.get(DIGEST_ANNOTATION).cloned()
}

/// Whether there is a Deployment that replaces its pods by a rolling update: one that is to be
/// adopted, or was. It cannot be changed to another strategy.
pub(crate) fn is_rolling(context: &Context, observed: &Observed<PostgreSQL>) -> bool {
    context
        .get::<Deployed>(observed.namespace(), observed.name())
        .is_ok_and(|deployed| deployed.object.spec.strategy.type_ == "RollingUpdate")
}

/// The Deployment as it is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Deployed {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    strategy: Strategy,
    template: Template,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Strategy {
    #[serde(rename = "type")]
    type_: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template {
    metadata: Annotated,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotated {
    annotations: Labels,
}

impl Resource for Deployed {
    const API_VERSION: &'static str = read::Deployment::API_VERSION;
    const KIND: &'static str = read::Deployment::KIND;
    const PLURAL: &'static str = read::Deployment::PLURAL;
}
