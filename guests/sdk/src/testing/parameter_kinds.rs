#![allow(clippy::panic, reason = "for tests, which fail by a panic")]

use innkeeper_contract::{KindName, KindRole};
use serde::Deserialize as _;
use serde_json::Value;

use crate::{Kind, Manifest, OwnedKind};

/// Returns a manifest with the kinds that the parameters name, as the host resolves it. Plurals
/// are unknown without an API server, and no test depends on them.
pub(super) fn with_kinds(mut manifest: Manifest, parameters: &Value) -> Manifest {
    for parameter in std::mem::take(&mut manifest.kind_parameters) {
        let value = parameters.get(&parameter.parameter);
        let values = match value {
            None | Some(Value::Null) => continue,
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
        };
        for value in values {
            let name = KindName::deserialize(value).unwrap_or_else(|error| {
                panic!("the host would refuse the parameter {}: {error}", parameter.parameter)
            });
            let kind = Kind::namespaced(name.api_version, &*name.kind, name.kind.to_lowercase());
            let (merges, optional) = (parameter.merges, parameter.optional);
            match parameter.role {
                KindRole::Primary => manifest.primary = Some(kind),
                KindRole::Owned => manifest.owned.push(OwnedKind { kind, optional, merges }),
                KindRole::Reads => manifest.reads.push(kind),
            }
        }
    }
    manifest
}
