use crate::parameters::Parameters;
use crate::problem::Problem;
use crate::volume_source::VolumeSource;
use crate::volume_spec::{VolumeSpec, is_claim_name};
use crate::{Names, PostgreSQL};

/// Returns where the data is to be.
///
/// # Errors
/// If the spec contradicts itself.
pub(crate) fn data(
    postgres: &PostgreSQL,
    names: &Names,
    parameters: &Parameters,
) -> Result<VolumeSource, Problem> {
    let storage = &postgres.spec.storage;
    let given = VolumeSpec {
        class_name: storage.class_name.clone(),
        claim_name: storage.claim_name.clone(),
        ephemeral: storage.ephemeral,
    };
    source("spec.storage", &names.data, given, parameters.storage.clone(), None)
}

/// Returns where the backups are to be.
///
/// # Errors
/// If the spec contradicts itself.
pub(crate) fn backups(
    postgres: &PostgreSQL,
    names: &Names,
    parameters: &Parameters,
) -> Result<VolumeSource, Problem> {
    let (storage, backup) = (&postgres.spec.storage, &postgres.spec.backup);
    let given = VolumeSpec {
        class_name: backup.class_name.clone(),
        claim_name: backup.claim_name.clone(),
        ephemeral: None,
    };
    let mut defaults = parameters.backup.clone();
    // The class of the data is that of the backups too. The spec's comes before the Module's.
    if storage.class_name.is_some() && defaults.claim_name.is_none() {
        defaults.class_name.clone_from(&storage.class_name);
    }
    let default_class = parameters.storage.class_name.clone();
    source("spec.backup", &names.backups, given, defaults, default_class)
}

/// `own`: the name of the claim that the guest creates.
fn source(
    field: &str,
    own: &str,
    given: VolumeSpec,
    defaults: VolumeSpec,
    default_class: Option<String>,
) -> Result<VolumeSource, Problem> {
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
        (Some(name), None) if is_claim_name(&name) => Ok(VolumeSource::Existing(name)),
        (Some(_), None) => Err(Problem::no_volume(
            "InvalidClaimName",
            format!(
                "{field}: claimName is not the name of a PersistentVolumeClaim: use lower-case letters, digits, `-` and `.`"
            ),
        )),
        (None, None) if is_ephemeral => Ok(VolumeSource::Ephemeral),
        (None, class) => Ok(VolumeSource::Own {
            name: own.to_owned(),
            class: class.or(defaults.class_name).or(default_class),
        }),
    }
}

fn contradiction(field: &str, fields: &str) -> Problem {
    Problem::no_volume("StorageContradicts", format!("{field} has {fields}: set only one of them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_of_the_backups_is_the_most_specific_one_and_the_spec_comes_first() {
        let class = |given: Option<&str>, defaults: Option<&str>, last: Option<&str>| {
            let of = |name: Option<&str>| VolumeSpec {
                class_name: name.map(str::to_owned),
                ..VolumeSpec::default()
            };
            let last = last.map(str::to_owned);
            match source("spec.backup", "foodb-backups", of(given), of(defaults), last) {
                Ok(VolumeSource::Own { class, .. }) => class,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(class(Some("a"), Some("b"), Some("c")).as_deref(), Some("a"));
        assert_eq!(class(None, Some("b"), Some("c")).as_deref(), Some("b"));
        assert_eq!(class(None, None, Some("c")).as_deref(), Some("c"));
        assert_eq!(class(None, None, None), None);
    }
}
