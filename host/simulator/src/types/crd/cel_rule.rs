//! One rule in CEL of a schema, and the error of a value that breaks it.

use std::fmt;
use std::sync::Arc;

use kube_cel::cel::{Context, Value as Cel};
use serde_json::Value;

use crate::types::crd::cel_expression::CelExpression;
use crate::types::status_error::FieldError;

/// One entry of `x-kubernetes-validations`.
#[derive(Clone)]
pub(crate) struct Rule {
    text: String,
    /// Absent if it cannot be read.
    pub(crate) program: Option<Arc<CelExpression>>,
    message: String,
    message_expression: Option<Arc<CelExpression>>,
    reason: String,
    field: String,
    /// Whether it is a transition rule: it uses `oldSelf`.
    pub(crate) transition: bool,
    /// Whether it also runs without an old value (`optionalOldSelf`).
    pub(crate) optional_old: bool,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Rule {
    /// Reads one.
    pub(crate) fn parse(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or_default().trim().to_owned();
        let compile = |text: &str| CelExpression::compile(text).ok().map(Arc::new);
        let rule = text("rule");
        let program = compile(&rule);
        let transition = program.as_ref().is_some_and(|program| program.uses_old_self());
        Self {
            message_expression: Some(text("messageExpression"))
                .filter(|text| !text.is_empty())
                .and_then(|text| compile(&text)),
            message: text("message"),
            reason: text("reason"),
            field: text("fieldPath"),
            optional_old: value["optionalOldSelf"] == true,
            program,
            transition,
            text: rule,
        }
    }

    pub(crate) fn error(&self, path: &str, value: &Value, scope: &Context<'_>) -> FieldError {
        let evaluated =
            self.message_expression.as_ref().and_then(|program| match program.execute(scope) {
                Ok(Cel::String(text)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
                _ => None,
            });
        let why = evaluated.unwrap_or_else(|| match self.message.as_str() {
            "" => format!("failed rule: {}", self.text),
            message => message.to_owned(),
        });
        let field = match (path, self.field.as_str()) {
            ("", "") => "<nil>".to_owned(),
            ("", field) => field.trim_start_matches('.').to_owned(),
            (path, field) => format!("{path}{field}"),
        };
        match self.reason.as_str() {
            "FieldValueForbidden" => FieldError::forbidden(field, why),
            "FieldValueRequired" => FieldError::required(field, why),
            "FieldValueDuplicate" => FieldError::duplicate(field, value.clone()),
            // Of lists and maps the value is not shown.
            _ if value.is_object() || value.is_array() => FieldError::without_value(field, why),
            _ => FieldError::invalid(field, value.clone(), why),
        }
    }

    /// The error if the rule cannot be evaluated.
    pub(crate) fn failure(&self, path: &str, value: &Value, why: &str) -> FieldError {
        let rule = if self.message.is_empty() { &self.text } else { &self.message };
        let field = if path.is_empty() { "<nil>" } else { path };
        let kind = match value {
            Value::Object(_) => "object",
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Bool(_) => "boolean",
            _ => "integer",
        };
        FieldError::invalid(field, kind, format!("{why} evaluating rule: {rule}"))
    }
}
