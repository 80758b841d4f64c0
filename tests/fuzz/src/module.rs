//! Modules, as users apply them.

use innkeeper_modules::{Module, SourceKind, ValidatedSpec};
use innkeeper_sandbox::Limits;

/// Reads a Module. What is read is printed as it was. The check names fields, in few and short
/// texts, and what it accepts stays within its bounds.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(module) = serde_json::from_slice::<Module>(data) else { return };
    let text = serde_json::to_string(&module).expect("a Module is printed");
    let again: Module = serde_json::from_str(&text).expect("a printed Module is read");
    assert_eq!(module, again, "a Module changes when it is printed and read");
    for source in [SourceKind::Cluster, SourceKind::Directory] {
        let checked = ValidatedSpec::new(&module, source, Limits::default(), Some("home"));
        match checked {
            Ok(spec) => accepted(&spec, source),
            Err(errors) => {
                assert!(!errors.0.is_empty());
                for error in &errors.0 {
                    let is_field =
                        ["spec", "metadata"].iter().any(|one| error.field.starts_with(one));
                    assert!(is_field, "{error:?}");
                }
            }
        }
    }
}

fn accepted(spec: &ValidatedSpec, source: SourceKind) {
    if source == SourceKind::Cluster {
        assert!(spec.service_account.is_some(), "a Module of the cluster without an account");
    }
    assert!(!spec.namespaces.contains("home"), "the namespace of the host is reconciled");
    let limits = spec.limits;
    assert!(limits.memory_bytes <= 4 << 30 && limits.time.as_secs() <= 300, "{limits:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_of_the_corpus_is_accepted() {
        let text = include_str!("../corpus/module/reconciler");
        let module: Module = serde_json::from_str(text).expect("it is read");
        let limits = Limits::default();
        let checked = ValidatedSpec::new(&module, SourceKind::Cluster, limits, Some("home"));
        assert_eq!(checked.map(|_| ()), Ok(()));
    }
}
