use imo::Imo;
use innkeeper_sdk::{Condition, Observed, Resource, condition, read};
use kuri::Kuri;

use crate::children::Child;
use crate::{ChildStatus, Kabocha, KabochaPhase, KabochaStatus, Parameters};

/// Returns the status with the readiness of the desired children.
pub(crate) fn of_children(
    observed: &Observed<Kabocha>,
    children: &[Child],
    parameters: &Parameters,
) -> KabochaStatus {
    let children: Vec<ChildStatus> = children
        .iter()
        .map(|child| {
            let unready = match child {
                Child::Imo(_) => unready::<Imo>(observed, child.name()),
                Child::Kuri(_) => unready::<Kuri>(observed, child.name()),
                // The status of such a child is its phase alone: it has nothing to wait for.
                Child::Kabocha(kabocha)
                    if kabocha.spec.has_no_children()
                        && parameters.last_phase().is_some()
                        && exists(observed, child.name()) =>
                {
                    None
                }
                Child::Kabocha(_) => unready::<Kabocha>(observed, child.name()),
            };
            ChildStatus {
                kind: child.kind().to_owned(),
                name: child.name().to_owned(),
                ready: unready.is_none(),
                message: unready.unwrap_or_default(),
            }
        })
        .collect();
    let all_ready = children.iter().all(|child| child.ready);
    let phase = if all_ready { KabochaPhase::Ready } else { KabochaPhase::Setup };
    KabochaStatus::of_children(phase, children)
}

/// Returns whether a smaller Kabocha exists and is not being deleted.
fn exists(observed: &Observed<Kabocha>, name: &str) -> bool {
    let child = observed.owned::<read::Custom<Kabocha>>(name);
    child.is_some_and(|child| !child.object.is_terminating())
}

/// Returns why a child is not ready; `None` if it is ready.
fn unready<K: Resource>(observed: &Observed<Kabocha>, name: &str) -> Option<String> {
    match observed.owned::<read::Custom<K>>(name) {
        Some(child) if child.object.is_terminating() => Some("it is being deleted".to_owned()),
        Some(child) => child.object.unready().map(str::to_owned),
        None if observed.is_served::<K>() => Some("it does not exist yet".to_owned()),
        None => Some(format!(
            "the cluster does not serve {}; load the module that installs it",
            K::KIND
        )),
    }
}

/// Returns the condition `Ready` from the readiness of the children.
pub(crate) fn ready(observed: &Observed<Kabocha>, status: &KabochaStatus) -> Condition {
    if let Some(unapplied) = observed.unapplied().first() {
        let message = format!("{}: {}", unapplied.reference, unapplied.message);
        return condition::not_ready(&unapplied.reason, message);
    }
    match status.children.iter().flatten().find(|child| !child.ready) {
        None => condition::ready("AllReady", "all children are ready"),
        Some(child) => {
            let message = format!("{} {}: {}", child.kind, child.name, child.message);
            condition::not_ready("ChildNotReady", message)
        }
    }
}
