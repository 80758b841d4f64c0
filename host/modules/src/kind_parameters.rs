//! The parameters of a Module that name kinds: their checks in the manifest.

use innkeeper_contract::Manifest;

/// Checks the kind parameters of a manifest, and adds what is wrong to `errors`.
pub(crate) fn check(manifest: &Manifest, errors: &mut Vec<String>) {
    if !manifest.kind_parameters.is_empty() {
        errors.push("kindParameters: not supported yet; leave them out".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{KindParameter, KindRole};

    use crate::manifest;
    use crate::testing;

    #[test]
    fn kind_parameters_are_refused_when_a_manifest_has_them() {
        let mut manifest = testing::manifest("g");
        manifest.kind_parameters = vec![KindParameter {
            parameter: "target".to_owned(),
            role: KindRole::Reads,
            merges: false,
            optional: false,
        }];
        let errors = manifest::check(&manifest).unwrap_err();
        assert_eq!(errors, ["kindParameters: not supported yet; leave them out"]);
    }
}
