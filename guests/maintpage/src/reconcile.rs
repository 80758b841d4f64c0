use innkeeper_sdk::kinds::{Deployment, Pod, Service};
use innkeeper_sdk::{
    Condition, Context, Describe, Desired, Manifest, Observed, Outcome, Policy, Reconciler,
    condition, event, names, read,
};

use crate::side::{Side, route};
use crate::{
    MaintPage, MaintPageStatus, Parameters, PublishStatus, Switch, clash, objects, page_name,
    probe, wait,
};

/// The reconcile logic of maintpage.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = MaintPage;

    fn describe() -> Manifest {
        Describe::reconciler_of::<MaintPage>("maintpage", env!("CARGO_PKG_VERSION"))
            .owns::<Pod>()
            .owns::<Deployment>()
            .owns::<Service>()
            .installs(include_str!("../crd.json"))
            .parameters(Parameters::schema())
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<MaintPage>) -> Outcome {
        let parameters: Parameters = match observed.parameters() {
            Ok(parameters) => parameters,
            Err(error) => {
                let message = format!("the Module's spec.parameters are invalid: {error}");
                return Outcome::refused("BadParameters", message);
            }
        };
        if let Some((reason, message)) = unusable(observed.primary()) {
            return Outcome::refused(reason, message);
        }
        match clash::find(context, observed) {
            Ok(None) => {}
            Ok(Some(clash)) => return Outcome::refused("NameClash", clash),
            Err(error) => {
                let message = format!("cannot check for name clashes: {error}");
                return Outcome::failed("Unreadable", message);
            }
        }
        let switch = observed.primary().spec.maintpageconfig.switch;
        desired(context, observed, switch.unwrap_or(parameters.switch))
    }
}

/// Returns the reason and the message if the primary is invalid. The CRD's rules reject the same,
/// except for objects that are older than the rules.
fn unusable(page: &MaintPage) -> Option<(&'static str, String)> {
    let (name, appname) = (&page.metadata.name, &page.spec.appconfig.appname);
    if name == appname {
        return Some((
            "AppnameIsOwnName",
            format!(
                "spec.appconfig.appname is `{appname}`, the MaintPage's own name: the Service would select both the application and the maintenance page; give one of them another name"
            ),
        ));
    }
    if !names::is_label_value(name) {
        return Some((
            "NameTooLong",
            format!(
                "the name of the MaintPage is the value of a label: use at most {} characters",
                names::LABEL_MAX
            ),
        ));
    }
    if !names::is_service_name(appname) {
        return Some((
            "UnusableAppname",
            format!(
                "spec.appconfig.appname is not a valid Service name: use at most {} lower-case letters, digits and `-`, beginning with a letter and not ending with `-`",
                names::LABEL_MAX
            ),
        ));
    }
    None
}

fn desired(context: &Context, observed: &Observed<MaintPage>, switch: Switch) -> Outcome {
    let page = observed.primary();
    let side = route(observed, switch);
    let wait = (side != Side::wanted(page)).then(|| wait::message(context, observed, side));
    let mut desired =
        Desired::new().object(objects::app(page)).object(objects::service(page, side));

    let pod = observed.owned::<read::Pod>(&page_name(observed.name()));
    if pod.is_some_and(|pod| pod.object.has_ended() && !pod.object.is_terminating()) {
        // Nothing restarts a Pod that has ended, for example by eviction. Not desired, the host
        // deletes it; the next run desires it again.
        let message = format!("Pod {} has ended and is recreated", page_name(observed.name()));
        desired = desired.event(event::normal("PageReplaced", message));
    } else {
        desired = desired.object_with(
            objects::page(page, probe::is_wanted(context, observed)),
            [Policy::RecreateWhenImmutable],
        );
    }

    // After a change of appname the former application serves until the new one is available.
    if !Side::App.answers(observed) {
        desired = keep_former(desired, observed, &page.spec.appconfig.appname);
    }

    let desired = desired
        .status(&MaintPageStatus { maintpublishstatus: publish_status(observed) })
        .condition(published(observed, wait.as_deref()));
    with_ready(desired, context, observed, wait).complete()
}

/// Keeps the Deployments and Services of former values of `appname`.
fn keep_former(mut desired: Desired, observed: &Observed<MaintPage>, appname: &str) -> Desired {
    for deployment in observed.all_owned::<read::Deployment>() {
        let name = &deployment.object.metadata.name;
        if name != appname {
            desired = desired.keep::<Deployment>("", name);
        }
    }
    for service in observed.all_owned::<read::Service>() {
        let name = &service.object.metadata.name;
        if name != appname {
            desired = desired.keep::<Service>("", name);
        }
    }
    desired
}

/// Returns the status from the side that the Service routes to, not from the toggle.
fn publish_status(observed: &Observed<MaintPage>) -> PublishStatus {
    if Side::routed(observed) == Some(Side::Page) {
        PublishStatus::Published
    } else {
        PublishStatus::NotPublished
    }
}

/// Returns the condition `Published`: the status, and what the switch waits for.
fn published(observed: &Observed<MaintPage>, wait: Option<&str>) -> Condition {
    const TYPE: &str = "Published";
    let (wanted, routed) = (Side::wanted(observed.primary()), Side::routed(observed));
    match (routed, wanted) {
        (Some(Side::Page), Side::Page) => {
            condition::is_true(TYPE, "Toggled", "the Service routes to the maintenance page")
        }
        (Some(Side::Page), Side::App) => condition::is_true(
            TYPE,
            "WaitsForApplication",
            wait.unwrap_or("the Service is about to switch to the application"),
        ),
        (Some(Side::App), Side::Page) => condition::is_false(
            TYPE,
            "WaitsForPage",
            wait.unwrap_or("the Service is about to switch to the maintenance page"),
        ),
        (Some(Side::App), Side::App) => {
            condition::is_false(TYPE, "NotToggled", "the Service routes to the application")
        }
        (None, _) => condition::is_false(
            TYPE,
            "NotRouted",
            "the Service does not exist, or routes to neither side",
        ),
    }
}

/// Adds the condition `Ready`, which is `False` while the Service cannot switch to the desired
/// side, and while the maintenance Pod is not the `MaintPage`'s.
fn with_ready(
    desired: Desired,
    context: &Context,
    observed: &Observed<MaintPage>,
    wait: Option<String>,
) -> Desired {
    if let Some(message) = wait::foreign_page(context, observed) {
        return desired.condition(condition::not_ready("PageNotAdopted", message));
    }
    match wait {
        Some(message) if observed.unapplied().is_empty() => {
            desired.condition(condition::not_ready("SwitchWaits", message))
        }
        _ => desired.ready_condition(observed),
    }
}
