use innkeeper_sdk::{Context, Observed, read};

use crate::MaintPage;
use crate::names::{PAGE, page_name};
use crate::side::Side;

/// Returns whether to desire the maintenance Pod with a readiness probe.
///
/// An existing Pod cannot get a probe, and the original operator made its Pod without one. The
/// guest adopts such a Pod without a probe, and recreates it with one while the Service does not
/// route to it.
pub(crate) fn is_wanted(context: &Context, observed: &Observed<MaintPage>) -> bool {
    let name = page_name(observed.name());
    let pod = context.get::<read::Pod>(observed.namespace(), &name).ok();
    let container = pod.as_ref().and_then(|pod| pod.object.container(PAGE));
    let lacks_it = container.is_some_and(|container| container.readiness_probe.is_none());
    let is_ours = observed.owned::<read::Pod>(&name).is_some();
    !lacks_it || (is_ours && Side::routed(observed) != Some(Side::Page))
}
