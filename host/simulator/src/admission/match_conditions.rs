//! The match conditions of a webhook, in CEL.

use kube_cel::cel::Value as Cel;
use serde_json::Value;

use crate::admission::webhook::Webhook;
use crate::api::request_context::RequestContext;
use crate::types::crd::cel::{plain, words};
use crate::types::crd::cel_expression::{self, CelExpression};
use crate::types::status_error::StatusError;

/// Whether all conditions hold. A false one decides, even if others cannot be evaluated.
pub(crate) fn all_hold(
    hook: &Webhook,
    context: &RequestContext<'_>,
    request: &Value,
) -> Result<bool, StatusError> {
    let expressions = hook.conditions.iter().map(|(_, expression)| expression.as_str());
    let named = || context.named(request["name"].as_str().unwrap_or_default());
    match conditions_hold(expressions, request) {
        Ok(hold) => Ok(hold),
        Err(_) if hook.ignored => Ok(false),
        Err(failures) => match failures.as_slice() {
            [one] => Err(StatusError::refused(named(), one)),
            many => Err(StatusError::refused(named(), &format!("[{}]", many.join(", ")))),
        },
    }
}

/// Whether all match conditions of a webhook, in CEL, hold for a request: the member `request` of
/// an AdmissionReview. A false one decides, even if others cannot be evaluated.
///
/// # Errors
/// Why expressions cannot be evaluated, a text for each.
pub fn conditions_hold<'e>(
    expressions: impl IntoIterator<Item = &'e str>,
    request: &Value,
) -> Result<bool, Vec<String>> {
    let mut expressions = expressions.into_iter().peekable();
    if expressions.peek().is_none() {
        return Ok(true);
    }
    let mut scope = cel_expression::context();
    scope.add_variable_from_value("object", plain(&request["object"]));
    scope.add_variable_from_value("oldObject", plain(&request["oldObject"]));
    let mut bare = request.clone();
    if let Some(bare) = bare.as_object_mut() {
        bare.retain(|name, _| !matches!(name.as_str(), "object" | "oldObject" | "uid"));
    }
    scope.add_variable_from_value("request", plain(&bare));
    let mut failures = Vec::new();
    for expression in expressions {
        let result = CelExpression::compile(expression)
            .and_then(|program| program.execute(&scope).map_err(|error| words(&error)));
        match result {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => return Ok(false),
            Ok(_) => failures.push(format!("expression '{expression}' gives no truth")),
            Err(why) => {
                failures.push(format!("expression '{expression}' resulted in error: {why}"));
            }
        }
    }
    if failures.is_empty() { Ok(true) } else { Err(failures) }
}
