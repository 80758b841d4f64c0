use crate::PostgreSQL;
use crate::parameters::{Parameters, Placement};
use crate::problem::Problem;

/// Where a volume is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a claim that the guest creates, with this storage class.
    New(Option<String>),
    /// On the existing claim of this name.
    Claim(String),
    /// In the pod.
    Ephemeral,
}

/// Returns where the data is to be.
///
/// # Errors
/// If the spec contradicts itself.
pub(crate) fn of_data(postgres: &PostgreSQL, parameters: &Parameters) -> Result<Place, Problem> {
    let storage = &postgres.spec.storage;
    let given = Placement {
        class_name: storage.class_name.clone(),
        claim_name: storage.claim_name.clone(),
        ephemeral: storage.ephemeral,
    };
    place("spec.storage", given, parameters.storage.clone(), None)
}

/// Returns where the backups are to be.
///
/// # Errors
/// If the spec contradicts itself.
pub(crate) fn of_backups(postgres: &PostgreSQL, parameters: &Parameters) -> Result<Place, Problem> {
    let (storage, backup) = (&postgres.spec.storage, &postgres.spec.backup);
    let given = Placement {
        class_name: backup.class_name.clone(),
        claim_name: backup.claim_name.clone(),
        ephemeral: None,
    };
    let of_spec = storage.class_name.clone();
    let mut defaults = parameters.backup.clone();
    // The class of the data is that of the backups too. The spec's comes before the Module's.
    if of_spec.is_some() && defaults.claim_name.is_none() {
        defaults.class_name = of_spec;
    }
    place("spec.backup", given, defaults, parameters.storage.class_name.clone())
}

fn place(
    field: &str,
    given: Placement,
    defaults: Placement,
    default_class: Option<String>,
) -> Result<Place, Problem> {
    let is_given =
        given.claim_name.is_some() || given.class_name.is_some() || given.ephemeral.is_some();
    // A spec that says nothing leaves the choice to the Module.
    let (field, chosen) =
        if is_given { (field, given) } else { ("the Module's spec.parameters", defaults.clone()) };
    let is_ephemeral = chosen.ephemeral == Some(true);
    match (chosen.claim_name, chosen.class_name) {
        (Some(_), _) if is_ephemeral => Err(contradiction(field, "claimName and ephemeral")),
        (Some(_), Some(_)) => Err(contradiction(field, "claimName and className")),
        (None, Some(_)) if is_ephemeral => Err(contradiction(field, "className and ephemeral")),
        (Some(name), None) if is_claim_name(&name) => Ok(Place::Claim(name)),
        (Some(_), None) => Err(Problem::stops(
            "InvalidClaimName",
            format!(
                "{field}: claimName is not the name of a PersistentVolumeClaim: use lower-case letters, digits, `-` and `.`"
            ),
        )),
        (None, None) if is_ephemeral => Ok(Place::Ephemeral),
        (None, class) => Ok(Place::New(class.or(defaults.class_name).or(default_class))),
    }
}

fn contradiction(field: &str, fields: &str) -> Problem {
    Problem::stops("StorageContradicts", format!("{field} has {fields}: set only one of them"))
}

/// Returns whether the text is a DNS subdomain (RFC 1123), as the name of a claim must be.
fn is_claim_name(text: &str) -> bool {
    let is_part = |part: &str| {
        let inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        !part.is_empty()
            && part.bytes().all(inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_name_is_valid_when_it_is_a_dns_subdomain() {
        for good in ["a", "foodb-data", "a.b-1.c", &"a".repeat(253)] {
            assert!(is_claim_name(good), "{good:?}");
        }
        let long = "a".repeat(254);
        for bad in ["", ".", "..", "a..b", "../a", "a/b", "A", "a_b", "-a", "a-", "a\n", &long] {
            assert!(!is_claim_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn class_of_the_backups_is_the_most_specific_one_and_the_spec_comes_first() {
        let place = |given: Option<&str>, defaults: Option<&str>, last: Option<&str>| {
            let of = |class: Option<&str>| Placement {
                class_name: class.map(str::to_owned),
                ..Placement::default()
            };
            place("spec.backup", of(given), of(defaults), last.map(str::to_owned)).ok()
        };
        let class = |name: &str| Some(Place::New(Some(name.to_owned())));
        assert_eq!(place(Some("a"), Some("b"), Some("c")), class("a"));
        assert_eq!(place(None, Some("b"), Some("c")), class("b"));
        assert_eq!(place(None, None, Some("c")), class("c"));
        assert_eq!(place(None, None, None), Some(Place::New(None)));
    }
}
