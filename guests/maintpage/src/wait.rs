use innkeeper_sdk::kinds::{Deployment, Pod};
use innkeeper_sdk::{Context, Observed, ReadinessState, read};

use crate::MaintPage;
use crate::names::page_name;
use crate::observed::{ObservedDeployment, ObservedPod};
use crate::side::Side;

/// Returns, for people, why the Service does not switch to the desired side yet, since when, and
/// how to switch at once.
pub(crate) fn message(context: &Context, observed: &Observed<MaintPage>, now: Side) -> String {
    let obstacle = match Side::wanted(observed.primary()) {
        Side::Page => page(context, observed),
        Side::App => application(context, observed),
    };
    format!(
        "the Service still routes to {} because {obstacle}; to switch at once: {}, or set the Module's spec.parameters.switch to Immediately",
        now.name(),
        switch_command(observed)
    )
}

/// Returns why the Pod that has the name of the maintenance Pod is not the `MaintPage`'s, and how
/// to change that; `None` if it is, or does not exist.
pub(crate) fn foreign_page(context: &Context, observed: &Observed<MaintPage>) -> Option<String> {
    let (namespace, name) = (observed.namespace(), observed.name());
    let page = page_name(name);
    if observed.owned::<read::Pod>(&page).is_some() {
        return None;
    }
    let pod = context.get::<ObservedPod>(namespace, &page).ok()?.object.metadata;
    if pod.deletion_timestamp.is_some() {
        return None;
    }
    if let Some(owner) = pod.owner_references.iter().find(|owner| owner.controller == Some(true)) {
        let (kind, owner) = (&owner.kind, &owner.name);
        return Some(format!(
            "Pod {page} is controlled by {kind} {owner}; delete it there, or give the MaintPage another name"
        ));
    }
    let label = match pod.labels.get("app") {
        Some(app) if app == name => String::new(),
        // The host adopts only objects that have all desired labels.
        _ => format!("kubectl -n {namespace} label pod {page} --overwrite app={name} && "),
    };
    Some(format!(
        "Pod {page} exists and has no owner, as the original operator created it; to adopt it: {label}kubectl -n {namespace} annotate maintpage {name} innkeeper.dev/adopt=true"
    ))
}

fn page(context: &Context, observed: &Observed<MaintPage>) -> String {
    if let Some(foreign) = foreign_page(context, observed) {
        return foreign;
    }
    let page = page_name(observed.name());
    let readiness = observed.readiness::<Pod>(&page);
    let Some(pod) = observed.owned::<ObservedPod>(&page) else { return readiness.message };
    if pod.object.metadata.deletion_timestamp.is_some() {
        return format!("Pod {page} is being deleted");
    }
    if readiness.state == ReadinessState::Ready {
        let image = &observed.primary().spec.maintpageconfig.maintpageimage;
        return format!("Pod {page} restarts with the image {image}");
    }
    let why = pod.object.obstacle().unwrap_or(readiness.message);
    not_ready("Pod", &page, &pod.object.since(), &why)
}

fn application(context: &Context, observed: &Observed<MaintPage>) -> String {
    let appname = &observed.primary().spec.appconfig.appname;
    let readiness = observed.readiness::<Deployment>(appname);
    let Some(deployment) = observed.owned::<ObservedDeployment>(appname) else {
        return readiness.message;
    };
    let pods = context.list::<ObservedPod>(observed.namespace(), &format!("app={appname}"));
    let pod = pods.unwrap_or_default().into_iter().find_map(|pod| {
        let obstacle = pod.object.obstacle()?;
        Some(format!("; Pod {}: {obstacle}", pod.object.metadata.name))
    });
    let why = format!("{}{}", readiness.message, pod.unwrap_or_default());
    not_ready("Deployment", appname, &deployment.object.since(), &why)
}

fn not_ready(kind: &str, name: &str, since: &str, why: &str) -> String {
    let why = if why.is_empty() { "it accepts no connections" } else { why };
    format!("{kind} {name} is not ready{since}: {why}")
}

/// Returns the command that makes the Service switch without waiting.
fn switch_command(observed: &Observed<MaintPage>) -> String {
    let (namespace, name) = (observed.namespace(), observed.name());
    format!(
        r#"kubectl -n {namespace} patch maintpage {name} --type merge -p '{{"spec":{{"maintpageconfig":{{"switch":"Immediately"}}}}}}'"#
    )
}
