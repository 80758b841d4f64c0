//! Error responses, in the words of the API server.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// A `Status` with its code.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusError {
    pub(crate) code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    /// The whole body, if it comes from a webhook.
    whole: Option<Box<Value>>,
    /// The continue token with which a list may go on.
    next: Option<String>,
}

/// A group and the plural or kind in it, as messages name them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) group: &'a str,
    /// A plural, or a kind.
    pub(crate) what: &'a str,
    pub(crate) name: &'a str,
}

impl Named<'_> {
    fn qualified(&self) -> String {
        match self.group {
            "" => self.what.to_owned(),
            group => format!("{}.{group}", self.what),
        }
    }

    fn details(&self) -> Map<String, Value> {
        let mut details = Map::new();
        for (member, value) in [("name", self.name), ("group", self.group), ("kind", self.what)] {
            if !value.is_empty() {
                details.insert(member.to_owned(), value.into());
            }
        }
        details
    }
}

impl StatusError {
    /// One with this code, reason and message.
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, whole: None, next: None }
    }

    /// An error with a body that comes from a webhook.
    pub(crate) fn with_body(code: u16, body: Value) -> Self {
        Self { whole: Some(Box::new(body)), ..Self::new(code, "", "") }
    }

    /// 500: something that the server relies on has failed.
    pub(crate) fn internal(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
            .details(json!({"causes": [{"message": why}]}))
    }

    /// 403 by other rules than those of roles.
    pub(crate) fn refused(named: Named<'_>, why: &str) -> Self {
        let head = match named.name {
            "" => format!("{} is forbidden", named.qualified()),
            name => format!("{} {name:?} is forbidden", named.qualified()),
        };
        Self::new(403, "Forbidden", format!("{head}: {why}"))
            .details(Value::Object(named.details()))
    }

    /// A refusal by a policy of admission, with the code and reason that it gives.
    pub(crate) fn denied_by_policy(
        named: Named<'_>,
        why: &str,
        code: u16,
        reason: &'static str,
    ) -> Self {
        let refused = Self::refused(named, why);
        let mut details = named.details();
        details.insert("causes".to_owned(), json!([{ "message": why }]));
        Self { code, reason, ..refused }.details(Value::Object(details))
    }

    /// The message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// With these details.
    pub(crate) fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// With where a list may go on all the same.
    pub(crate) fn going_on(mut self, next: String) -> Self {
        self.next = Some(next);
        self
    }

    /// Adds the message for a collision of a generated name.
    pub(crate) fn not_generated(mut self) -> Self {
        self.message.push_str(", the server was not able to generate a unique name for the object");
        if let Some(details) = &mut self.details {
            details["retryAfterSeconds"] = 1.into();
        }
        self
    }

    /// With a text before the message.
    pub(crate) fn prefixed(mut self, text: &str) -> Self {
        self.message.insert_str(0, text);
        self
    }

    /// 400.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 406.
    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// Whether the error is that a document does not have the shape of its kind.
    pub(crate) fn is_shape(&self) -> bool {
        self.code == 400 && self.message.contains("cannot be handled as a")
    }

    /// What is wrong, of one that says that a document has not the shape of its kind.
    pub(crate) fn problem(&self) -> &str {
        self.message
            .split_once("cannot be handled as a ")
            .and_then(|(_, rest)| rest.split_once(": "))
            .map_or(&*self.message, |(_, problem)| problem)
    }

    /// 500 without a reason, as an error that nobody foresaw.
    pub(crate) fn unforeseen(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 404 for an object.
    pub(crate) fn not_found(named: Named<'_>) -> Self {
        let message = format!("{} {:?} not found", named.qualified(), named.name);
        Self::new(404, "NotFound", message).details(Value::Object(named.details()))
    }

    /// The same of a plural that was asked for in another group than the core's.
    #[must_use]
    pub(crate) fn in_group(mut self, plural: &str, group: &str) -> Self {
        let named = format!("{plural} ");
        if self.message.starts_with(&named) {
            self.message.insert_str(plural.len(), &format!(".{group}"));
        }
        if let Some(Value::Object(details)) = &mut self.details {
            details.insert("group".to_owned(), group.into());
        }
        self
    }

    /// 404 for a path.
    pub(crate) fn no_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
            .details(json!({}))
    }

    /// 405 for a verb that a custom resource does not know.
    pub(crate) fn not_supported(named: Named<'_>, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {:?}", named.qualified());
        Self::new(405, "MethodNotAllowed", message).details(Value::Object(named.details()))
    }

    /// 409 for a name that is taken.
    pub(crate) fn already_exists(named: Named<'_>) -> Self {
        let message = format!("{} {:?} already exists", named.qualified(), named.name);
        Self::new(409, "AlreadyExists", message).details(Value::Object(named.details()))
    }

    /// 409 for a version or uid that is another.
    pub(crate) fn conflict(named: Named<'_>, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {:?}: {why}",
            named.qualified(),
            named.name
        );
        Self::new(409, "Conflict", message).details(Value::Object(named.details()))
    }

    /// 422 for fields.
    pub(crate) fn invalid(named: Named<'_>, errors: &[FieldError]) -> Self {
        let mut seen = BTreeSet::new();
        let texts: Vec<String> =
            errors.iter().map(FieldError::text).filter(|text| seen.insert(text.clone())).collect();
        let all = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| {
                json!({"reason": error.kind.reason(), "message": error.body(), "field": error.field})
            })
            .collect();
        let mut details = named.details();
        details.insert("causes".to_owned(), causes.into());
        let message = format!("{} {:?} is invalid: {all}", named.qualified(), named.name);
        Self::new(422, "Invalid", message).details(Value::Object(details))
    }

    /// The body.
    pub(crate) fn body(&self) -> Value {
        if let Some(whole) = &self.whole {
            return Value::clone(whole);
        }
        let mut status = Map::new();
        status.insert("kind".to_owned(), "Status".into());
        status.insert("apiVersion".to_owned(), "v1".into());
        let metadata = self.next.as_ref().map_or(json!({}), |next| json!({ "continue": next }));
        status.insert("metadata".to_owned(), metadata);
        status.insert("status".to_owned(), "Failure".into());
        status.insert("message".to_owned(), self.message.as_str().into());
        if !self.reason.is_empty() {
            status.insert("reason".to_owned(), self.reason.into());
        }
        if let Some(details) = &self.details {
            status.insert("details".to_owned(), details.clone());
        }
        status.insert("code".to_owned(), self.code.into());
        Value::Object(status)
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Required,
    Invalid,
    Unsupported,
    Duplicate,
    Forbidden,
    Type,
    TooLong,
    TooMany,
    NotFound,
}

impl Wrong {
    fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Unsupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::Type => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
        }
    }
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    pub(crate) kind: Wrong,
    value: Option<Value>,
    detail: String,
}

impl FieldError {
    fn of(
        kind: Wrong,
        field: impl Into<String>,
        value: impl Into<Value>,
        why: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), kind, value: Some(value.into()), detail: why.into() }
    }

    /// A value that is not valid, and why.
    pub(crate) fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        why: impl Into<String>,
    ) -> Self {
        Self::of(Wrong::Invalid, field, value, why)
    }

    /// The same, of a value that is not shown.
    pub(crate) fn without_value(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { field: field.into(), kind: Wrong::Invalid, value: None, detail: why.into() }
    }

    /// Whether the server does not look at rules in CEL because of it.
    pub(crate) fn hides_rules(&self) -> bool {
        matches!(
            self.kind,
            Wrong::Unsupported | Wrong::Required | Wrong::TooLong | Wrong::TooMany | Wrong::Type
        )
    }

    /// A value of the wrong type.
    pub(crate) fn wrong_type(
        field: impl Into<String>,
        value: impl Into<Value>,
        why: impl Into<String>,
    ) -> Self {
        Self::of(Wrong::Type, field, value, why)
    }

    /// A value that is missing; `why` may be empty.
    pub(crate) fn required(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { field: field.into(), kind: Wrong::Required, value: None, detail: why.into() }
    }

    /// A value that is there twice.
    pub(crate) fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        let value = Some(value.into());
        Self { field: field.into(), kind: Wrong::Duplicate, value, detail: String::new() }
    }

    /// A value that names nothing.
    pub(crate) fn not_found(field: impl Into<String>, value: impl Into<Value>) -> Self {
        let value = Some(value.into());
        Self { field: field.into(), kind: Wrong::NotFound, value, detail: String::new() }
    }

    /// A value that may not be there.
    pub(crate) fn forbidden(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self { field: field.into(), kind: Wrong::Forbidden, value: None, detail: why.into() }
    }

    /// One of these was expected.
    pub(crate) fn unsupported(
        field: impl Into<String>,
        value: impl Into<Value>,
        known: &[String],
    ) -> Self {
        let known: Vec<String> = known.iter().map(|one| format!("{one:?}")).collect();
        Self {
            field: field.into(),
            kind: Wrong::Unsupported,
            value: Some(value.into()),
            detail: format!("supported values: {}", known.join(", ")),
        }
    }

    /// Text that is too long.
    pub(crate) fn too_long(field: impl Into<String>, most: u64) -> Self {
        Self {
            field: field.into(),
            kind: Wrong::TooLong,
            value: None,
            detail: format!("may not be more than {most} bytes"),
        }
    }

    /// A list that is too long.
    pub(crate) fn too_many(field: impl Into<String>, count: usize, most: u64) -> Self {
        Self {
            field: field.into(),
            kind: Wrong::TooMany,
            value: Some(count.into()),
            detail: format!("must have at most {most} items"),
        }
    }

    /// Why it is wrong.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    fn body(&self) -> String {
        let value = self.value.as_ref().map(shown).unwrap_or_default();
        let head = match self.kind {
            Wrong::Required => "Required value".to_owned(),
            Wrong::Invalid | Wrong::Type if self.value.is_none() => "Invalid value".to_owned(),
            Wrong::Invalid | Wrong::Type => format!("Invalid value: {value}"),
            Wrong::Unsupported => format!("Unsupported value: {value}"),
            Wrong::Duplicate => format!("Duplicate value: {value}"),
            Wrong::Forbidden => "Forbidden".to_owned(),
            Wrong::TooLong => "Too long".to_owned(),
            Wrong::TooMany => format!("Too many: {value}"),
            Wrong::NotFound => format!("Not found: {value}"),
        };
        match self.detail.as_str() {
            "" => head,
            detail => format!("{head}: {detail}"),
        }
    }

    /// Field and reason, as in the message of the server.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.field, self.body())
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}
