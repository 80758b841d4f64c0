use innkeeper_sdk::{Context, Observed, Resource, read};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::side::Side;
use crate::{MaintPage, page_name};

/// Whether the maintenance Pod shall have a readiness probe: it shall, but a probe cannot be
/// added to a Pod that is there without one, as the original operator made it.
///
/// One that is not ours is taken over as it is. One that is ours is deleted and made anew with a
/// probe, as soon as that loses no requests.
pub(crate) fn is_wanted(context: &Context, observed: &Observed<MaintPage>) -> bool {
    let name = page_name(observed.name());
    let lacks_it =
        context.get::<Page>(observed.namespace(), &name).is_ok_and(|pod| pod.object.lacks_probe());
    let is_ours = observed.owned::<Page>(&name).is_some();
    !lacks_it || (is_ours && Side::routed(observed) != Some(Side::Page))
}

/// A Pod's probes.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    readiness_probe: Option<IgnoredAny>,
}

impl Page {
    fn lacks_probe(&self) -> bool {
        self.spec.containers.iter().any(|container| container.readiness_probe.is_none())
    }
}

impl Resource for Page {
    const API_VERSION: &'static str = read::Pod::API_VERSION;
    const KIND: &'static str = read::Pod::KIND;
    const PLURAL: &'static str = read::Pod::PLURAL;
}
