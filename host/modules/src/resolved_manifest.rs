//! A manifest with the kinds that the parameters of a Module name.

use innkeeper_contract::{Kind, KindParameter, KindRole, Manifest, OwnedKind};
use innkeeper_core::kind_masks::declares;
use serde_json::Value;

use crate::kind_parameters::RequestedKind;
use crate::manifest;

/// Returns the described manifest with the kinds of the parameters, and without kind parameters.
///
/// # Errors
/// What is wrong with the manifest that results, each with its place.
pub fn resolve(
    described: &Manifest,
    kinds: Vec<(RequestedKind, Kind)>,
) -> Result<Manifest, Vec<String>> {
    let mut resolved = described.clone();
    resolved.kind_parameters.clear();
    for (RequestedKind { place, parameter, .. }, kind) in kinds {
        match parameter.role {
            KindRole::Primary => {
                if described.definitions().any(|crd| defines(&crd, &kind)) {
                    return Err(vec![format!(
                        "{place}: the guest installs the definition of {kind}, so {kind} is no kind that it decorates; name another kind"
                    )]);
                }
                resolved.primary = Some(kind);
            }
            KindRole::Owned => {
                let KindParameter { merges, optional, .. } = parameter;
                match resolved.owned.iter_mut().find(|owned| owned.kind == kind) {
                    // It is one kind: it has the rights that both need.
                    Some(owned) => {
                        owned.merges &= merges;
                        owned.optional &= optional;
                    }
                    None => resolved.owned.push(OwnedKind { kind, optional, merges }),
                }
            }
            KindRole::Reads if resolved.reads.contains(&kind) => {}
            KindRole::Reads => resolved.reads.push(kind),
        }
    }
    // The fields of a primary kind that a parameter has replaced.
    let named = resolved.clone();
    resolved.read_fields.retain(|one| declares(&named, &one.api_version, &one.kind));
    manifest::check(&resolved)?;
    Ok(resolved)
}

/// Whether a CustomResourceDefinition defines a kind.
fn defines(crd: &Value, kind: &Kind) -> bool {
    crd["spec"]["group"] == kind.group() && crd["spec"]["names"]["kind"] == kind.kind.as_str()
}
