//! Options of lists and watches, except selectors.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::api::http::query::Query;
use crate::api::request_context::RequestContext;
use crate::types::object_key::Key;
use crate::types::status_error::{FieldError, Named, StatusError};

const EXACT: &str = "Exact";
const NOT_OLDER: &str = "NotOlderThan";
const MATCH: &str = "resourceVersionMatch";
const INITIAL: &str = "sendInitialEvents";
/// The first member of a continue token.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";
/// The message for a version that was compacted.
const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const PAGE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// A number of the query, as Go reads it; `None` if it is not there.
pub(crate) fn number(query: &Query, name: &str) -> Result<Option<i64>, StatusError> {
    match query.get(name) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            StatusError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
        }),
    }
}

/// A version of the query, 0 if it is absent; or the server's error for an invalid one.
pub(crate) fn version(query: &Query) -> Result<u64, String> {
    match query.get("resourceVersion") {
        "" => Ok(0),
        text => text.parse().map_err(|_| {
            format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            )
        }),
    }
}

/// 504 for a version that is yet to come.
pub(crate) fn too_large(version: u64, present: u64) -> StatusError {
    let cause =
        json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    let message = format!("Timeout: Too large resource version: {version}, current: {present}");
    StatusError::new(504, "Timeout", message)
        .details(json!({"causes": [cause], "retryAfterSeconds": 1}))
}

/// Whether a watch begins with the existing objects.
pub(crate) fn begins_with_all(query: &Query) -> bool {
    if query.has(INITIAL) {
        return query.is(INITIAL);
    }
    matches!(query.get("resourceVersion"), "" | "0")
}

/// The errors in the options of a list.
pub(crate) fn check_list(query: &Query) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    let (matching, version) = (query.get(MATCH), query.get("resourceVersion"));
    if !matching.is_empty() {
        if version.is_empty() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            errors.push(FieldError::forbidden(MATCH, why));
        }
        no_continue(query, &mut errors);
        if !matches!(matching, EXACT | NOT_OLDER) {
            let known = [EXACT, NOT_OLDER, ""].map(str::to_owned);
            errors.push(FieldError::unsupported(MATCH, matching, &known));
        }
        if matching == EXACT && version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(MATCH, why));
        }
    }
    if query.has(INITIAL) {
        errors.push(FieldError::forbidden(INITIAL, "sendInitialEvents is forbidden for list"));
    }
    refused(&errors)
}

/// The errors in the options of a watch.
pub(crate) fn check_watch(query: &Query) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    let (matching, initial) = (query.get(MATCH), query.has(INITIAL));
    if initial && matching != NOT_OLDER {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    if !matching.is_empty() {
        if !initial {
            let why =
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(MATCH, why));
        }
        if matching != NOT_OLDER {
            errors.push(FieldError::unsupported(MATCH, matching, &[NOT_OLDER.to_owned()]));
        }
    }
    // A watch without a version begins with all objects and needs no option for it.
    if !matching.is_empty() || (!initial && begins_with_all(query)) {
        no_continue(query, &mut errors);
    }
    refused(&errors)
}

fn no_continue(query: &Query, errors: &mut Vec<FieldError>) {
    if !query.get("continue").is_empty() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(MATCH, why));
    }
}

fn refused(errors: &[FieldError]) -> Result<(), StatusError> {
    if errors.is_empty() {
        return Ok(());
    }
    let named = Named { group: "meta.k8s.io", what: "ListOptions", name: "" };
    Err(StatusError::invalid(named, errors))
}

/// The start and the version of a list.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// Absent: the current version.
    pub(crate) version: Option<u64>,
    /// The path to continue after, if the list continues.
    pub(crate) from: Option<String>,
}

impl Start {
    /// The start of a list whose options are valid. A list of one name has no pages.
    pub(crate) fn read(
        context: &RequestContext<'_>,
        present: u64,
        one: bool,
    ) -> Result<Self, StatusError> {
        let query = context.query;
        if !query.get("continue").is_empty() {
            let (start, from) = decode(query.get("continue")).map_err(|why| {
                StatusError::bad_request(format!("invalid continue token: {why}"))
            })?;
            if !matches!(query.get("resourceVersion"), "" | "0") {
                return Err(StatusError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            // A version below 0 continues at the current version.
            let version = u64::try_from(start).ok();
            if let Some(version) = version.filter(|version| *version > present) {
                return Err(too_large(version, present));
            }
            return Ok(Self { version, from: Some(from) });
        }
        let version = version(query)
            .map_err(|why| StatusError::bad_request(format!("invalid resource version: {why}")))?;
        // deletecollection lists in pages.
        let limited = context.request.method == "DELETE"
            || number(query, "limit")?.is_some_and(|limit| limit > 0);
        let exact = match query.get(MATCH) {
            EXACT => true,
            NOT_OLDER => false,
            // The meaning before `resourceVersionMatch` existed.
            _ => limited && !one && version > 0,
        };
        if version > present {
            return Err(too_large(version, present));
        }
        Ok(Self { version: exact.then_some(version), from: None })
    }

    /// 410: the version was compacted.
    pub(crate) fn expired(&self) -> StatusError {
        match &self.from {
            Some(from) => StatusError::new(410, "Expired", PAGE_TOO_OLD).going_on(encode(-1, from)),
            None => StatusError::new(410, "Expired", TOO_OLD),
        }
    }
}

/// The path of an object, by which the server sorts lists.
pub(crate) fn path(context: &RequestContext<'_>, key: &Key) -> String {
    if context.namespace().is_empty() && context.kind.namespaced {
        format!("{}/{}", key.0, key.1)
    } else {
        key.1.clone()
    }
}

/// The continue token after a path.
pub(crate) fn after(version: u64, path: &str) -> String {
    encode(i64::try_from(version).unwrap_or(i64::MAX), &format!("{path}\0"))
}

fn encode(version: i64, from: &str) -> String {
    let value = json!({"v": TOKEN_VERSION, "rv": version, "start": from});
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// The version and the path of a continue token, or the error.
fn decode(text: &str) -> Result<(i64, String), String> {
    let invalid = |why: String| format!("continue key is not valid: {why}");
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let place = text.bytes().position(|byte| !known(byte)).unwrap_or(text.len());
        invalid(format!("illegal base64 data at input byte {place}"))
    })?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| invalid(format!("json: {error}")))?;
    let version = value["v"].as_str().unwrap_or_default();
    if version != TOKEN_VERSION {
        return Err(invalid(format!("server does not recognize this encoded version {version}")));
    }
    let version = value["rv"].as_i64().unwrap_or(0);
    if version == 0 {
        return Err(invalid(format!(
            "incorrect encoded start resourceVersion (version {TOKEN_VERSION})"
        )));
    }
    let start = value["start"].as_str().unwrap_or_default();
    if start.is_empty() {
        return Err(invalid(format!("encoded start key empty (version {TOKEN_VERSION})")));
    }
    let path = start.strip_prefix('/').unwrap_or(start);
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(invalid(start.to_owned()));
    }
    Ok((version, path.to_owned()))
}
