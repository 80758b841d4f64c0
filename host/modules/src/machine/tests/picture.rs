//! The picture in docs/modules.md is what the machine does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::*;

/// From and to a state of the candidate: the events that lead there.
type Transitions = BTreeMap<(&'static str, &'static str), BTreeSet<&'static str>>;

/// Every event with every outcome that makes a difference, again and again from wherever that led.
fn walk() -> Transitions {
    let later = || Err(verdict("Later", Again::Later));
    let never = || Err(verdict("Never", Again::Never));
    let mut dice: u64 = 1;
    let mut roll = move |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(dice >> 33).unwrap() % sides
    };
    let mut transitions = Transitions::new();
    for life in 0..10_000 {
        let mut machine = Machine::default();
        if life % 2 == 0 {
            machine.step(known("a", &["c"]));
        }
        for step in 1..40 {
            // Mostly what happens is about the candidate, else most of it would be dropped.
            let names = ["a", "b", "c"];
            let about =
                names.iter().find(|name| Some(digest(name)) == machine.candidate().digest());
            let name = about.filter(|_| roll(4) > 0).unwrap_or(&names[roll(3)]);
            let (event, told) = match if step == 1 { 0 } else { roll(22) } {
                0 | 1 => (guarded(step), "spec changes"),
                2 => (spec(step), "spec changes"),
                3 | 4 => (source(names[roll(3)]), "source changes"),
                5 => (missing(), "source is gone"),
                6 => (recalled(name, Ok(())), "copy is there"),
                7 => (recalled(name, never()), "copy is not there"),
                8 | 9 => (loaded(name, false), "loaded"),
                10 => (loaded(name, true), "loaded"),
                11 => (refused(name, Again::Never), "refused"),
                12 => (rehearsed(name, &[]), "rehearsed as harmless"),
                13 => (rehearsed(name, &[Deed::Delete]), "rehearsed as harmful"),
                14 => (
                    Event::Rehearsed {
                        digest: digest(name),
                        result: Err(verdict("Later", Again::Later)),
                    },
                    "not rehearsed",
                ),
                15 => (crds(name, Ok(())), "definitions are there"),
                16 => (crds(name, later()), "definitions are not there"),
                17 => (Event::Committed { digest: digest(name), result: Ok(()) }, "written down"),
                18 => (approve(name), "approved"),
                19 => (reject(name), "rejected"),
                20 => (too_many_fail(), "too many fail"),
                _ => (Event::Retry, "time to try again"),
            };
            let before = machine.candidate().state();
            machine.step(event);
            let after = machine.candidate().state();
            if before != after {
                transitions.entry((before, after)).or_default().insert(told);
            }
        }
    }
    transitions
}

fn drawn() -> String {
    let mut text = "```mermaid\nstateDiagram-v2\n    [*] --> Nothing\n".to_owned();
    for ((from, to), events) in walk() {
        let events: Vec<_> = events.into_iter().collect();
        writeln!(text, "    {from} --> {to}: {}", events.join(", ")).unwrap();
    }
    text + "```\n"
}

#[test]
fn the_picture_in_the_docs_is_what_the_machine_does() {
    const BEGIN: &str = "<!-- drawn by a test; UPDATE_EXPECT=1 draws it anew -->\n";
    const END: &str = "<!-- end -->";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/modules.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the place of the picture");
    let (picture, tail) = rest.split_once(END).expect("the end of the picture");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{}{END}{tail}", drawn())).unwrap();
    } else {
        assert_eq!(
            picture,
            drawn(),
            "draw it anew: UPDATE_EXPECT=1 cargo test -p innkeeper-modules"
        );
    }
}

/// What the module's docs promise of every state: what serves is never displaced but by a swap.
#[test]
fn every_state_is_reached_and_left() {
    let transitions = walk();
    let states = [
        "Nothing",
        "Recalling",
        "Loading",
        "Rehearsing",
        "Held",
        "InstallingCrds",
        "Committing",
        "Rejected",
    ];
    for state in states {
        assert!(transitions.keys().any(|(_, to)| *to == state), "{state} is never reached");
        assert!(transitions.keys().any(|(from, _)| *from == state), "{state} is never left");
    }
}
