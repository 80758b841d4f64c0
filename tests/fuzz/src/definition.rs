//! The comparison of CustomResourceDefinitions.

use std::collections::BTreeSet;

use innkeeper_core::crd_compat::incompatible_changes;
use serde_json::Value;

/// Reads up to three definitions (a JSON list). None breaks itself; two steps that only add make
/// one that only adds.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(definitions) = serde_json::from_slice::<Vec<Value>>(data) else { return };
    if !definitions.iter().all(is_served) {
        return;
    }
    for one in definitions.iter().take(3) {
        assert_eq!(
            incompatible_changes(one, one),
            Vec::<String>::new(),
            "a definition breaks itself"
        );
    }
    let [first, second, third, ..] = definitions.as_slice() else { return };
    if incompatible_changes(first, second).is_empty()
        && incompatible_changes(second, third).is_empty()
    {
        let found = incompatible_changes(first, third);
        assert!(found.is_empty(), "two steps that only add: {found:?}");
    }
}

/// Whether each version has a name of its own and one is the storage version, which the API server
/// sees to.
fn is_served(definition: &Value) -> bool {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let Some(versions) = versions else { return false };
    let names: BTreeSet<_> =
        versions.iter().filter_map(|version| version["name"].as_str()).collect();
    let stored = versions.iter().filter(|version| version["storage"] == true).count();
    names.len() == versions.len() && stored == 1
}
