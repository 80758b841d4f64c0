use imo::Imo;
use innkeeper_sdk::{Desired, Observed, Outcome, Resource, condition, read};
use kuri::Kuri;

use crate::{ChildStatus, Kabocha, KabochaPhase, KabochaStatus};

/// Takes the children down, one kind after the other: the smaller Kabochas with all that is in
/// them, then the Kuris with their clean-up, which may need what still runs, then the Imos.
///
/// The kinds whose turn has not come are kept and not desired: a child that somebody deletes
/// meanwhile is not made anew. When no child is there any more, the Kabocha may go.
pub(crate) fn teardown(observed: &Observed<Kabocha>) -> Outcome {
    let stages = [
        Stage::of::<Kabocha>(observed, Desired::keep::<Kabocha>),
        Stage::of::<Kuri>(observed, Desired::keep::<Kuri>),
        Stage::of::<Imo>(observed, Desired::keep::<Imo>),
    ];
    let children: Vec<ChildStatus> = stages.iter().flat_map(Stage::statuses).collect();
    let mut stages = stages.into_iter().filter(|stage| !stage.names.is_empty());

    let Some(now) = stages.next() else {
        return said(children, "all children are gone").finalized().complete();
    };
    let message = format!("waits for {} {} to go", now.kind, now.names.join(", "));
    let desired = said(children, &message);
    stages
        .fold(desired, |desired, stage| {
            stage.names.iter().fold(desired, |desired, name| (stage.keep)(desired, "", name))
        })
        .complete()
}

/// The children of one kind that are still there.
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
            message: "it has to go".to_owned(),
        })
    }
}

fn said(children: Vec<ChildStatus>, message: &str) -> Desired {
    let status = KabochaStatus {
        phase: KabochaPhase::Teardown,
        ready: format!("0/{}", children.len()),
        children,
    };
    Desired::new().status(&status).condition(condition::not_ready("Teardown", message))
}
