//! The path of a policy: `/v1/policies/<module>/<index>`.

use super::refusal::Refusal;
use crate::reviewer::{PATH_PREFIX, WebhookRef};

/// The longest name of an object of Kubernetes, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// Returns the webhook that a path names.
pub(super) fn webhook(path: &str) -> Result<WebhookRef, Refusal> {
    let (module, number) = path
        .strip_prefix(PATH_PREFIX)
        .and_then(|rest| rest.split_once('/'))
        .ok_or(Refusal::Path)?;
    let is_of_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let is_name = (1..=NAME_BYTES_MAX).contains(&module.len())
        && module.bytes().all(is_of_name)
        && !module.starts_with(['-', '.'])
        && !module.ends_with(['-', '.']);
    // One path for each webhook: neither +1 nor 01.
    let index: usize = number.parse().map_err(|_| Refusal::Path)?;
    if !is_name || index.to_string() != number {
        return Err(Refusal::Path);
    }
    Ok(WebhookRef { module: module.to_owned(), index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_names_a_module_and_a_webhook() {
        let named = webhook("/v1/policies/required-labels.v2/12").unwrap();
        assert_eq!(named, WebhookRef { module: "required-labels.v2".to_owned(), index: 12 });
        assert!(webhook(&format!("/v1/policies/{}/0", "a".repeat(253))).is_ok());
    }

    #[test]
    fn other_paths_name_no_policy() {
        let long = format!("/v1/policies/{}/0", "a".repeat(254));
        for path in [
            "",
            "/",
            "/v1/policies",
            "/v1/policies/",
            "/v1/policies/x",
            "/v1/policies/x/",
            "/v1/policies//0",
            "/v1/policies/x/0/",
            "/v1/policies/x/01",
            "/v1/policies/x/+1",
            "/v1/policies/x/-1",
            "/v1/policies/x/99999999999999999999999",
            "/v1/policies/../0",
            "/v1/policies/%78/0",
            "/v1/policies/X/0",
            "//v1/policies/x/0",
            "/v2/policies/x/0",
            &long,
        ] {
            assert!(webhook(path).is_err(), "{path}");
        }
    }
}
