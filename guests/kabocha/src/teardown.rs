use imo::Imo;
use innkeeper_sdk::{Desired, Observed, Outcome, Resource, condition, read};
use kuri::Kuri;

use crate::{ChildStatus, Kabocha, KabochaPhase, KabochaStatus};

/// Deletes the children, one kind after the other: first the smaller Kabochas with their children,
/// then the Kuris, whose clean-up may need pods of the Imos, then the Imos. Ends the finalization
/// when no child exists.
///
/// Keeps the children of later kinds without desiring them, so that the host does not recreate a
/// child that another client deletes.
pub(crate) fn teardown(observed: &Observed<Kabocha>) -> Outcome {
    let stages = [
        Stage::of::<Kabocha>(observed, Desired::keep::<Kabocha>),
        Stage::of::<Kuri>(observed, Desired::keep::<Kuri>),
        Stage::of::<Imo>(observed, Desired::keep::<Imo>),
    ];
    let children: Vec<ChildStatus> = stages.iter().flat_map(Stage::statuses).collect();
    let mut stages = stages.into_iter().filter(|stage| !stage.names.is_empty());

    let Some(now) = stages.next() else {
        return with_status(children, "all children are deleted").finalized().complete();
    };
    let message = format!("waiting for the deletion of {} {}", now.kind, now.names.join(", "));
    let desired = with_status(children, &message);
    stages
        .fold(desired, |desired, stage| {
            stage.names.iter().fold(desired, |desired, name| (stage.keep)(desired, "", name))
        })
        .complete()
}

/// The children of one kind that still exist.
struct Stage {
    kind: &'static str,
    names: Vec<String>,
    keep: fn(Desired, &str, &str) -> Desired,
}

impl Stage {
    fn of<K: Resource>(
        observed: &Observed<Kabocha>,
        keep: fn(Desired, &str, &str) -> Desired,
    ) -> Self {
        let children = observed.all_owned::<read::Custom<K>>();
        let names = children.into_iter().map(|child| child.object.metadata.name).collect();
        Self { kind: K::KIND, names, keep }
    }

    fn statuses(&self) -> impl Iterator<Item = ChildStatus> {
        self.names.iter().map(|name| ChildStatus {
            kind: self.kind.to_owned(),
            name: name.clone(),
            ready: false,
            message: "waiting for its deletion".to_owned(),
        })
    }
}

fn with_status(children: Vec<ChildStatus>, message: &str) -> Desired {
    let status = KabochaStatus::of_children(KabochaPhase::Teardown, children);
    Desired::new().status(&status).condition(condition::not_ready("Teardown", message))
}
