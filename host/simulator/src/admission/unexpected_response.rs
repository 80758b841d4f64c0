//! The message for a webhook that answers with an HTTP status that is no success.
//!
//! Source: `newUnstructuredResponseError` and `NewGenericServerResponse` of client-go 0.35 and
//! apimachinery 0.35, with which the API server calls webhooks.

/// The longest body that the message repeats, in bytes.
const BODY_BYTES_MAX: usize = 2_048;

/// The message for an HTTP status and a body.
pub(crate) fn message(code: u16, body: &str) -> String {
    let body = body.get(..body.floor_char_boundary(BODY_BYTES_MAX)).unwrap_or(body).trim();
    let text = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => body,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            return format!(
                "an error on the server ({body:?}) has prevented the request from succeeding"
            );
        }
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::message;

    #[test]
    fn body_is_in_the_message_of_an_internal_error_only_up_to_its_limit() {
        assert_eq!(
            message(500, " it \"broke\"\n"),
            r#"an error on the server ("it \"broke\"") has prevented the request from succeeding"#
        );
        assert!(message(500, &"é".repeat(5_000)).len() < 2_200);
        assert_eq!(message(404, "x"), "the server could not find the requested resource");
        assert_eq!(message(503, "x"), "the server is currently unable to handle the request");
        assert_eq!(message(403, "no"), "no");
        assert!(message(302, "x").contains("the status code 302 but"));
    }
}
