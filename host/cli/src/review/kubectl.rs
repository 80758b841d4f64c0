//! What kubectl shows of a denial.

use innkeeper_core::review::CheckedDenial;

/// The error that kubectl prints if this webhook denies a request, in lines. It follows
/// `ToStatusErr` of the API server and `checkErr` of kubectl, without the prefix that names a file.
pub(super) fn error(webhook: &str, denial: &CheckedDenial) -> Vec<String> {
    let message = format!("admission webhook \"{webhook}\" denied the request: {}", denial.message);
    match denial.reason.as_str() {
        "Invalid" => invalid(&message, denial),
        "Unauthorized" => {
            vec![format!("error: You must be logged in to the server ({message})")]
        }
        reason => vec![format!("Error from server ({reason}): {message}")],
    }
}

/// Of an invalid object, kubectl shows the causes in place of the message.
fn invalid(message: &str, denial: &CheckedDenial) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    for cause in &denial.causes {
        let cause = format!("{}: {}", cause.field, cause.message);
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    match causes.as_slice() {
        [] => vec![format!("The request is invalid: {message}")],
        [only] => vec![format!("The request is invalid: {only}")],
        several => {
            let several = several.iter().map(|cause| format!("* {cause}"));
            ["The request is invalid:".to_owned()].into_iter().chain(several).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Cause;

    use super::*;

    fn shown(reason: &str, causes: &[(&str, &str)]) -> String {
        let causes = causes.iter().map(|(field, message)| Cause {
            field: (*field).to_owned(),
            message: (*message).to_owned(),
            reason: String::new(),
        });
        let denial = CheckedDenial {
            message: "no".to_owned(),
            reason: reason.to_owned(),
            code: 403,
            causes: causes.collect(),
        };
        error("w", &denial).join("\n")
    }

    #[test]
    fn denial_is_shown_with_its_reason_and_an_invalid_object_with_its_causes() {
        let denied = "admission webhook \"w\" denied the request: no";
        let causes = [("spec.a", "is 1"), ("spec.b", "is 2"), ("spec.a", "is 1")];
        assert_eq!(shown("Forbidden", &causes), format!("Error from server (Forbidden): {denied}"));
        assert_eq!(
            shown("Unauthorized", &[]),
            format!("error: You must be logged in to the server ({denied})")
        );
        assert_eq!(shown("Invalid", &[]), format!("The request is invalid: {denied}"));
        assert_eq!(shown("Invalid", &causes[..1]), "The request is invalid: spec.a: is 1");
        assert_eq!(
            shown("Invalid", &causes),
            "The request is invalid:\n* spec.a: is 1\n* spec.b: is 2"
        );
    }
}
