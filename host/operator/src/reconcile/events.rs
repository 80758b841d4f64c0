//! The Events of a primary.

use innkeeper_cluster::events::{Published, Regarding};
use innkeeper_contract::{ConditionStatus, Event, EventType};
use innkeeper_core::{Object, status};

use crate::reconcile::conditions;
use crate::reconcile::context::Context;
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::status_input::StatusInput;

/// Publishes Events: on adoptions, when the reason of `Synced` changes, and the guest's own.
pub async fn publish(
    context: &Context<'_>,
    primary: &Object,
    status_input: &StatusInput,
    state: &mut PrimaryState,
) {
    let mut events: Vec<Event> = status_input
        .adopted
        .iter()
        .map(|object_ref| Event {
            type_: EventType::Normal,
            reason: "Adopted".to_owned(),
            message: format!("Adopted {object_ref}, which had no owner."),
        })
        .collect();
    let updates = status_input.update_condition();
    let of_updates = updates.as_ref().map(|updates| updates.reason);
    let reason = status_input.problems.reason().or(of_updates).unwrap_or_default();
    if state.reported.is_none() {
        // A host that has just started repeats no Event: the live condition has the last reason.
        state.reported = reported_reason(primary);
    }
    match state.reported.as_deref() {
        Some(before) if before == reason => {}
        None if reason.is_empty() => {}
        Some(_) if reason.is_empty() => events.push(Event {
            type_: EventType::Normal,
            reason: "Applied".to_owned(),
            message: "Every desired object is applied.".to_owned(),
        }),
        _ => events.push(match &updates {
            Some(updates) => Event {
                type_: if updates.is_failure() { EventType::Warning } else { EventType::Normal },
                reason: reason.to_owned(),
                message: updates.message.clone(),
            },
            None => Event {
                type_: EventType::Warning,
                reason: reason.to_owned(),
                message: status_input.problems.message(),
            },
        }),
    }
    state.reported = Some(reason.to_owned());
    events.extend(status_input.events.iter().cloned());
    for mut event in events {
        status_input.granted.mask_event(&mut event);
        let regarding = Regarding::object(&context.revision.primary_kind, primary);
        let (client, module) = (&context.revision.client, context.revision.name());
        let published =
            context.shared.events.publish(client, module, &regarding, "Reconcile", &event);
        match published.await {
            Ok(Published::Written) => context.count_write("event"),
            Ok(Published::Counted(_) | Published::TooMany) => {}
            // The conditions say the same, so a lost Event is no failure.
            Err(error) => tracing::warn!(
                %module, primary = %primary.key, "an Event cannot be written: {}",
                status_input.granted.mask(&error.to_string())
            ),
        }
    }
}

/// The reason of the live `Synced` condition, if it is not True; empty if it is.
fn reported_reason(primary: &Object) -> Option<String> {
    let synced =
        status::live_conditions(primary).into_iter().find(|one| one.type_ == conditions::SYNCED)?;
    Some(if synced.status == ConditionStatus::True { String::new() } else { synced.reason })
}
