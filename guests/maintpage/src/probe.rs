use innkeeper_sdk::{Context, Observed, read};

use crate::objects::PAGE;
use crate::side::Side;
use crate::{MaintPage, page_name};

/// Whether the maintenance Pod shall have a readiness probe: it shall, but a probe cannot be
/// added to a Pod that is there without one, as the original operator made it.
///
/// One that is not ours is taken over as it is. One that is ours is deleted and made anew with a
/// probe, as soon as that loses no requests.
pub(crate) fn is_wanted(context: &Context, observed: &Observed<MaintPage>) -> bool {
    let name = page_name(observed.name());
    let pod = context.get::<read::Pod>(observed.namespace(), &name).ok();
    let container = pod.as_ref().and_then(|pod| pod.object.container(PAGE));
    let lacks_it = container.is_some_and(|container| container.readiness_probe.is_none());
    let is_ours = observed.owned::<read::Pod>(&name).is_some();
    !lacks_it || (is_ours && Side::routed(observed) != Some(Side::Page))
}
