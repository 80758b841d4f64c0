//! Checks that what reconcilers apply and policies change never loops.
//!
//! The host runs all Modules on a simulated cluster. If the writes do not end, the command runs the
//! Modules again without policies, and with one policy each, to find which of them are the cause.

use std::fmt::Write as _;

use innkeeper_contract::PolicyKind;
use innkeeper_lab::Guests;
use innkeeper_sandbox::CodeCache;
use serde_json::Value;

use super::check_result::{CheckResult, Finding};
use super::field_values::FieldValues;
use super::policy_reviews::Given;
use super::set_member::SetMember;
use super::simulation::{Played, Simulation};
use crate::out;

/// The mode in which a policy changes and denies.
const ON: &str = "Enforce";

/// The mode in which a policy only records.
const OFF: &str = "Audit";

/// The most policies that are run alone.
const ALONE_MAX: usize = 16;

/// Runs the set, and reports whether the cluster becomes quiet.
///
/// # Errors
/// If the simulated cluster cannot be started.
pub(super) fn check(given: Given<'_>, cache: CodeCache, seed: u64) -> anyhow::Result<CheckResult> {
    let simulation = Simulation { given, guests: Guests::with_cache(cache)?, seed };
    let names: Vec<&str> = given.set.reconcilers().map(|one| one.name.as_str()).collect();
    let subject = match names.len() {
        1 => format!("reconciler {}", names[0]),
        _ => format!("reconcilers {}", names.join(", ")),
    };
    let played = match simulation.play(|_| ON) {
        Ok(played) => played,
        Err(error) => return Ok(CheckResult::failed(subject, out::error_chain(&error))),
    };
    note(&played);
    if let Some(quiet_after) = played.quiet_after.filter(|_| !played.is_loop()) {
        let seconds = quiet_after.as_secs();
        let message = format!("with the policies nobody writes any more after {seconds} s");
        return Ok(CheckResult::new(subject, message, Vec::new()));
    }
    let policies = match causes(&simulation) {
        Ok(policies) => policies,
        Err(error) => return Ok(CheckResult::failed(subject, out::error_chain(&error))),
    };
    let message = match played.quiet_after {
        None => "the writes do not end".to_owned(),
        Some(_) => "the host stops a fight".to_owned(),
    };
    let finding = finding(&played, policies, &names);
    Ok(CheckResult::new(subject, message, vec![finding]))
}

/// Prints what the cluster refused, and primaries that wait for something else.
fn note(played: &Played) {
    for refused in &played.refused {
        out::eprint(&format!("innkeeper: note: the simulated cluster refuses {refused}"));
    }
    for one in played.unsynced.iter().filter(|_| !played.is_loop()) {
        out::eprint(&format!(
            "innkeeper: note: {} is not synced: {}: {}",
            one.object, one.reason, one.message
        ));
    }
}

/// What causes a loop.
enum Causes {
    /// The reconcilers loop without a policy.
    Reconcilers,
    /// Each of these policies alone.
    Each(Vec<String>),
    /// Only several of these policies together.
    Together(Vec<String>),
}

fn causes(simulation: &Simulation<'_>) -> anyhow::Result<Causes> {
    if simulation.play(|_| OFF)?.is_loop() {
        return Ok(Causes::Reconcilers);
    }
    let members = &simulation.given.set.members;
    let mutating = members.iter().filter(|member| member.has_policy(PolicyKind::Mutate));
    let names: Vec<String> = mutating.map(|member| member.name.clone()).collect();
    let mut alone = Vec::new();
    for name in names.iter().take(ALONE_MAX) {
        let mode = |member: &SetMember| if member.name == *name { ON } else { OFF };
        if simulation.play(mode)?.is_loop() {
            alone.push(name.clone());
        }
    }
    Ok(if alone.is_empty() { Causes::Together(names) } else { Causes::Each(alone) })
}

fn finding(played: &Played, causes: Causes, reconcilers: &[&str]) -> Finding {
    let writers = played.changes.iter().flat_map(|change| change.modules.iter().cloned());
    let of_fights = played.fights().map(|fight| fight.module.clone());
    let mut involved: Vec<String> = writers.chain(of_fights).collect();
    if involved.is_empty() {
        involved = reconcilers.iter().map(|name| (*name).to_owned()).collect();
    }
    involved.sort();
    involved.dedup();
    let who = involved.join(", ");
    let (policies, mut message) = match causes {
        Causes::Reconcilers => {
            (Vec::new(), format!("the reconciler {who} never ends, also without the policies"))
        }
        Causes::Each(policies) => {
            let names = policies.join(", ");
            (policies, format!("the reconciler {who} and the policy {names} fight"))
        }
        Causes::Together(policies) => {
            let names = policies.join(", ");
            (policies, format!("the reconciler {who} and the policies {names} together fight"))
        }
    };
    for fight in played.fights() {
        // Writing into a String cannot fail.
        let _ = write!(message, "; {}: {}: {}", fight.object, fight.reason, fight.message);
    }
    let fields = played.changes.iter().map(|change| {
        let [before, after]: &[Value; 2] = &change.values;
        FieldValues {
            path: format!("{} of {}, changed {} times", change.field, change.object, change.times),
            values: vec![
                ("one value".to_owned(), before.clone()),
                ("another one".to_owned(), after.clone()),
            ],
        }
    });
    Finding {
        reason: "ReconcilerFights",
        message,
        policies,
        reconcilers: involved,
        fields: fields.collect(),
    }
}
