//! The kinds that a revision watches, each with the fields that the caches keep for it.

use std::sync::Arc;

use innkeeper_cluster::ViewedKind;
use innkeeper_contract::{Kind, Manifest};
use innkeeper_core::{FieldMask, KindMasks, readiness, value_source};
use innkeeper_modules::Revision;

use super::open_revision::declared;

/// The kinds that a revision watches: those that its guest declares, and those that earlier
/// revisions declared.
pub(super) fn of_revision(revision: &Revision) -> Vec<ViewedKind> {
    let manifest = revision.guest.manifest();
    let masks = KindMasks::of_manifest(manifest);
    let fields = |kind: &Kind| Arc::new(needed(kind, manifest, &masks));
    let declared = declared(&revision.guest).into_iter();
    let declared = declared.map(|kind| ViewedKind { fields: fields(&kind), kind });
    declared.chain(revision.retired_kinds.iter().map(ViewedKind::whole)).collect()
}

/// The fields that a revision needs of the objects of a kind. If the manifest names some of a kind
/// that the guest only reads, it needs these, and the host those that show the readiness. The host
/// compares whole objects with what it wrote, and copies any value of a value source.
fn needed(kind: &Kind, manifest: &Manifest, masks: &KindMasks) -> FieldMask {
    let is_only_read = manifest.primary.as_ref() != Some(kind)
        && manifest.owned.iter().all(|owned| owned.kind != *kind)
        && !value_source::is_kind_of_sources(kind);
    match masks.get(kind).filter(|_| is_only_read) {
        Some(mask) => mask.union(&readiness::fields(kind)),
        None => FieldMask::default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_the_manifest_and_of_the_readiness_are_needed_of_kinds_that_are_only_read() {
        let kind = |name: &str| Kind::namespaced("v1", name, format!("{}s", name.to_lowercase()));
        let names = ["Primary", "Owned", "Pod", "Other", "ConfigMap", "Secret"];
        let read_fields = |name| json!({"apiVersion": "v1", "kind": name, "fields": {"f:a": {}}});
        let manifest: Manifest = serde_json::from_value(json!({"name": "x",
            "primary": kind("Primary"), "owned": [{"kind": kind("Owned")}],
            "reads": names.map(kind),
            "readFields": names.iter().filter(|name| **name != "Other").map(read_fields)
                .collect::<Vec<_>>()}))
        .unwrap();
        let masks = KindMasks::of_manifest(&manifest);
        let with_fields = |name: &&str| !needed(&kind(name), &manifest, &masks).is_whole();
        let pruned: Vec<&str> = names.iter().copied().filter(with_fields).collect();
        assert_eq!(pruned, ["Pod"]);

        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {}},
            "a": {"b": 1}, "spec": {}, "status": {"phase": "Running", "hostIP": "x"}});
        let pruned = needed(&kind("Pod"), &manifest, &masks).prune(&pod.to_string()).unwrap();
        let kept = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "a": {"b": 1}, "status": {"phase": "Running"}});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&pruned).unwrap(), kept);
    }
}
