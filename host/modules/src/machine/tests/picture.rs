//! Compares the diagram in docs/modules.md with what the machine does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;

/// From and to a state of the candidate: the events that lead there.
type Transitions = BTreeMap<(&'static str, &'static str), BTreeSet<&'static str>>;

/// All events about one component, with every result that makes a difference.
fn possible_events(generation: i64, name: &str) -> Vec<(Event, &'static str)> {
    let digest = digest(name);
    let refusal = |again| rejection("Refused", again);
    vec![
        (guarded(generation), "spec changes"),
        (spec(generation), "spec changes"),
        (source(name), "source changes"),
        (missing(), "source is gone"),
        (restored(name, Ok(())), "snapshot is there"),
        (restored(name, Err(refusal(RetryPolicy::Never))), "snapshot is not there"),
        (loaded(name, false), "loaded"),
        (loaded(name, true), "loaded"),
        (refused(name, RetryPolicy::Never), "refused"),
        (refused(name, RetryPolicy::Later), "refused"),
        (previewed(name, &[]), "preview shows no harm"),
        (previewed(name, &[PlannedChange::Delete]), "preview shows harm"),
        (previewed_without_rights(name), "preview shows harm"),
        (Event::Previewed { digest, result: Err(refusal(RetryPolicy::Later)) }, "preview failed"),
        (Event::ParametersChecked(Ok(())), "parameters fit"),
        (Event::ParametersChecked(Err(refusal(RetryPolicy::Later))), "parameters do not fit"),
        (crds(name, Ok(())), "definitions are installed"),
        (crds(name, Err(refusal(RetryPolicy::Later))), "definitions are not installed"),
        (Event::CrdsDeleted(vec!["xs.quay.io".to_owned()]), "a definition is deleted"),
        (Event::CrdFound("xs.quay.io".to_owned()), "a definition is found"),
        (Event::ReinstallCrds, "time to install definitions again"),
        (Event::CrdsReinstalled { digest, result: Ok(()) }, "definitions are installed again"),
        (Event::Committed { digest, result: Ok(()) }, "decision is written"),
        (
            Event::Committed { digest, result: Err(refusal(RetryPolicy::Later)) },
            "decision is not written",
        ),
        (approve(name), "approved"),
        (reject(name), "rejected"),
        (too_many_failures(name), "too many failures"),
        (Event::RollbackCommitted { digest, result: Ok(()) }, "rollback is written"),
        (
            Event::RollbackCommitted { digest, result: Err(refusal(RetryPolicy::Later)) },
            "rollback is not written",
        ),
        (Event::RollbackWindowOver(digest), "rollback window is over"),
        (Event::Retry, "time to try again"),
        (Event::Deleting, "Module is deleted"),
        (Event::TornDown(Ok("done".to_owned())), "torn down"),
    ]
}

/// All transitions of two components, from a new Module and from one that had an active revision
/// before a restart: every event is tried in every state that is reached.
fn walk() -> Transitions {
    let names = ["a", "b"];
    // The fields that make a difference for the next transitions.
    let identity = |machine: &Machine| {
        let revisions = &machine.revisions;
        let digest = |active: &Option<ActiveRevision>| active.as_ref().map(|active| active.digest);
        let rejected: BTreeSet<_> = machine
            .rejections
            .iter()
            .map(|(digest, rejection)| (*digest, format!("{:?}", rejection.retry)))
            .collect();
        (
            (machine.candidate.state(), machine.candidate.digest()),
            (digest(&revisions.active), digest(&revisions.rollback_target), revisions.restored),
            (machine.source_digest(), machine.source == Source::Unknown),
            (revisions.is_restored_lost, machine.spec.rollout.strategy == Strategy::Guarded),
            (machine.progress.is_outdated, machine.progress.reusable.is_some()),
            // These count for a held candidate only.
            match &machine.candidate {
                Candidate::Held(loaded, held) => {
                    (held.may_end_by_itself(loaded.digest), machine.progress.is_previewed_again)
                }
                _ => (false, false),
            },
            (machine.approvals.approved, rejected, machine.is_tearing_down()),
            machine.rollback.is_some(),
        )
    };
    let mut transitions = Transitions::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![Machine::default(), Machine::default()];
    waiting[1].step(status_loaded("a", &[]));
    while let Some(machine) = waiting.pop() {
        let before = machine.candidate().state();
        for (event, label) in names.iter().flat_map(|name| possible_events(1, name)) {
            let mut next = machine.clone();
            next.step(event);
            let after = next.candidate().state();
            if before != after {
                transitions.entry((before, after)).or_default().insert(label);
            }
            if seen.insert(identity(&next)) {
                waiting.push(next);
            }
        }
    }
    transitions
}

fn drawn() -> String {
    let mut text = "```mermaid\nstateDiagram-v2\n    [*] --> NoCandidate\n".to_owned();
    for ((from, to), events) in walk() {
        let events: Vec<_> = events.into_iter().collect();
        writeln!(text, "    {from} --> {to}: {}", events.join(", ")).unwrap();
    }
    text + "    Finalizing --> [*]: Module is deleted\n```\n"
}

#[test]
fn the_diagram_in_the_docs_matches_the_state_machine() {
    const BEGIN: &str = "<!-- drawn by a test; UPDATE_EXPECT=1 draws it again -->\n";
    const END: &str = "<!-- end -->";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/modules.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the start of the diagram");
    let (picture, tail) = rest.split_once(END).expect("the end of the diagram");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{}{END}{tail}", drawn())).unwrap();
    } else {
        assert_eq!(
            picture,
            drawn(),
            "draw it again: UPDATE_EXPECT=1 cargo test -p innkeeper-modules"
        );
    }
}

/// Every state is part of the diagram.
#[test]
fn every_state_is_reached_and_left() {
    let transitions = walk();
    let states = [
        "NoCandidate",
        "RestoringSnapshot",
        "Loading",
        "Previewing",
        "Held",
        "InstallingCRDs",
        "Committing",
        "Rejected",
        "Finalizing",
    ];
    for state in states {
        assert!(transitions.keys().any(|(_, to)| *to == state), "{state} is never reached");
        let is_left = transitions.keys().any(|(from, _)| *from == state);
        assert_eq!(
            is_left,
            state != "Finalizing",
            "{state} is left, except by a Module that is deleted"
        );
    }
}
