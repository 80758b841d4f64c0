//! The report at the end of a reconcile: Events, and the primary's status.

use innkeeper_cluster::ApiError;
use innkeeper_cluster::client::Force;
use innkeeper_contract::Condition;
use innkeeper_core::{Manager, Object, ObjectRef, ResultRenewal, run_result, status};
use innkeeper_modules::module::RunResultRenewal;
use serde_json::Value;

use crate::modules::crds::StatusSchema;
use crate::reconcile::context::Context;
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::problem::{Problem, Retry};
use crate::reconcile::refusal::RefusalCause;
use crate::reconcile::status_input::StatusInput;
use crate::reconcile::{conditions, events};

/// Why the status of a primary could not be written.
pub struct StatusWriteError {
    /// The problem.
    pub problem: Problem,
    /// Whether it counts as a failure of the revision, which may roll it back.
    pub is_failure: bool,
}

/// What became of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    /// The live primary has the status, or needs none.
    UpToDate,
    /// The host has written the status.
    Written,
    /// The API server has another version of the primary, or none.
    Conflict,
}

/// Publishes the Events, and writes the status if it differs from the live one.
///
/// # Errors
/// The refusal, if the API server does not take the status.
pub async fn report(
    context: &Context<'_>,
    primary: &Object,
    status_input: &StatusInput,
    state: &mut PrimaryState,
) -> Result<StatusWrite, StatusWriteError> {
    events::publish(context, primary, status_input, state).await;
    let (active, shared) = (context.revision, context.shared);
    // The status of a decorated primary belongs to its own controller.
    if active.decorates {
        return Ok(StatusWrite::UpToDate);
    }
    let manage = active.spec().manage_status;
    let schema = shared.status_schema(&active.primary_kind);
    let run_result = run_result(context, primary, &schema);
    let conditions = visible_conditions(context, status_input, run_result.is_some());
    let object_ref = ObjectRef::new(active.primary_kind.clone(), primary.key.clone());

    let schema = match &*schema {
        StatusSchema::Absent
            if manage || status_input.status.is_some() || !conditions.is_empty() =>
        {
            return Err(StatusWriteError { problem: no_subresource(object_ref), is_failure: true });
        }
        StatusSchema::Absent => return Ok(StatusWrite::UpToDate),
        StatusSchema::Whole => None,
        StatusSchema::Pruned(schema) => Some(schema),
    };
    let Some(status) = status::status(&status::Input {
        object: primary,
        guest: status_input.status.as_ref(),
        conditions: &conditions,
        manage,
        schema,
        last_run: status_input.last_run(),
        run_result,
        now: shared.env.now(),
    }) else {
        return Ok(StatusWrite::UpToDate);
    };
    let mut body = object_ref.body();
    body["metadata"]["resourceVersion"] = (&*primary.resource_version).into();
    body["status"] = status;
    let written = write(context, status_input, object_ref, &body).await;
    if matches!(written, Ok(StatusWrite::Conflict)) {
        context.caches.mark_unknown_if_at(
            &active.primary_kind,
            &primary.key,
            &primary.resource_version,
        );
    }
    written
}

/// The conditions of the primary's status, with granted values masked.
fn visible_conditions(
    context: &Context<'_>,
    status_input: &StatusInput,
    shows_result: bool,
) -> Vec<Condition> {
    let active = context.revision;
    let mut conditions = if active.spec().manage_status {
        let has_optional = active.guest().manifest().owned.iter().any(|owned| owned.optional);
        conditions::all(status_input, has_optional, shows_result)
    } else {
        conditions::first_of_each_type(&status_input.conditions)
    };
    status_input.granted.mask_conditions(&mut conditions);
    conditions.into_iter().map(conditions::visible).collect()
}

/// Applies the status.
///
/// # Errors
/// The refusal, if the API server does not take the status.
async fn write(
    context: &Context<'_>,
    status_input: &StatusInput,
    object_ref: ObjectRef,
    body: &Value,
) -> Result<StatusWrite, StatusWriteError> {
    let active = context.revision;
    let client = &active.client;
    let _in_flight = context.begin_write(&object_ref);
    match client
        .apply_status(&object_ref.kind, &object_ref.key, &Manager::Host, body, Force::Yes)
        .await
    {
        Ok(applied) => {
            context.count_write("status");
            context.record_write(&object_ref, applied.object);
            Ok(StatusWrite::Written)
        }
        Err(
            ApiError::Conflict { .. } | ApiError::NotFound { .. } | ApiError::ObjectDeleted { .. },
        ) => Ok(StatusWrite::Conflict),
        Err(error) => {
            let message = status_input.granted.mask(&error.to_string());
            tracing::warn!(module = %active.name(), primary = %context.request.key, "the status cannot be written: {message}");
            // The host bounds what a guest adds to the status, so the primary's size is the cause.
            let is_failure = !matches!(error, ApiError::TooLarge { .. });
            let problem = Problem {
                refusal: RefusalCause::of(&error, &object_ref),
                object_ref: Some(object_ref),
                reason: error.reason().to_owned(),
                message: format!("the status cannot be written: {message}"),
                retry: Retry::Backoff,
            };
            Err(StatusWriteError { problem, is_failure })
        }
    }
}

/// How the status of the primary shows the result of the run; `None` if it does not.
fn run_result(
    context: &Context<'_>,
    primary: &Object,
    schema: &StatusSchema,
) -> Option<ResultRenewal> {
    let spec = context.revision.spec();
    let schema = match schema {
        StatusSchema::Pruned(schema) => Some(schema),
        StatusSchema::Whole => None,
        StatusSchema::Absent => return None,
    };
    let is_shown = spec.manage_status && run_result::is_shown(schema, spec.run_result.is_some());
    // An event may run a primary at any time: only its period renews a result without news.
    let is_renewal = spec.run_result == Some(RunResultRenewal::EachPeriod) && context.is_scheduled;
    let period = context.revision.resync(primary).filter(|_| is_renewal);
    let age_min = period.map(|period| period.max(run_result::RENEWAL_MIN));
    is_shown.then_some(ResultRenewal { age_min })
}

/// The problem of a kind without a status: no condition can say so on the primary, so the Module's
/// condition does.
fn no_subresource(object_ref: ObjectRef) -> Problem {
    let (resource, version) = (object_ref.kind.resource(), object_ref.kind.version().to_owned());
    Problem {
        refusal: None,
        object_ref: Some(object_ref),
        reason: "NoStatusSubresource".to_owned(),
        message: format!(
            "statuses cannot be written: version {version} of the CustomResourceDefinition {resource} has no status subresource; add `subresources: {{status: {{}}}}` to it, or set spec.manageStatus to false and give no status"
        ),
        retry: Retry::OnChange,
    }
}
