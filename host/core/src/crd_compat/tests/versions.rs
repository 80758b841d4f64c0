//! Compatible and incompatible changes of versions.

use super::*;

#[test]
fn removed_version_or_subresource_is_incompatible() {
    let before = definition(&json!({}));
    let mut after = before.clone();
    after["spec"]["versions"][0]["subresources"] = json!({});
    after["spec"]["versions"][0]["served"] = json!(false);
    assert_eq!(
        incompatible_changes(&before, &after),
        ["version v1 is no longer served", "version v1 loses its subresource status"]
    );
    after["spec"]["versions"][0]["name"] = json!("v2");
    assert_eq!(incompatible_changes(&before, &after), ["version v1 is gone"]);
    let mut other = before.clone();
    other["spec"]["scope"] = json!("Cluster");
    assert_eq!(incompatible_changes(&before, &other), [".spec.scope changes"]);
}

#[test]
fn storage_version_moves_only_to_a_version_with_all_stored_fields() {
    let less = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    assert_eq!(
        incompatible_changes(&two(&less, "v1", &["v1", "v2"]), &two(&less, "v2", &["v1", "v2"])),
        ["version v2 would be stored and takes less than v1: .spec.color is gone"]
    );
    let all = size_and_color();
    let (before, after) = (two(&all, "v1", &["v1", "v2"]), two(&all, "v2", &["v1", "v2"]));
    assert_eq!(incompatible_changes(&before, &after), [""; 0]);
    // Objects of a version that was stored once may still be there.
    let mut before = two(&less, "v2", &["v1", "v2"]);
    before["status"] = json!({"storedVersions": ["v1", "v2"]});
    let mut after = two(&less, "v3", &["v1", "v2"]);
    let mut third = after["spec"]["versions"][1].clone();
    third["name"] = json!("v3");
    third["storage"] = json!(true);
    after["spec"]["versions"].as_array_mut().unwrap().push(third);
    assert_eq!(
        incompatible_changes(&before, &after),
        ["version v3 would be stored and takes less than v1: .spec.color is gone"]
    );
}

#[test]
fn newly_served_version_must_accept_stored_objects() {
    let less = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    assert_eq!(
        incompatible_changes(&two(&less, "v1", &["v1"]), &two(&less, "v1", &["v1", "v2"])),
        ["version v2 would be served and takes less than v1: .spec.color is gone"]
    );
    let mut without = two(&less, "v1", &["v1"]);
    without["spec"]["versions"].as_array_mut().unwrap().pop();
    assert_eq!(incompatible_changes(&without, &two(&less, "v1", &["v1", "v2"])).len(), 1);
    assert_eq!(
        incompatible_changes(&without, &two(&size_and_color(), "v1", &["v1", "v2"])),
        [""; 0]
    );
    assert_eq!(incompatible_changes(&without, &two(&less, "v1", &["v1"])), [""; 0]);
}

#[test]
fn definition_is_refused_without_one_storage_version_or_with_a_version_twice() {
    let all = size_and_color();
    let before = two(&all, "v1", &["v1", "v2"]);
    let mut both = before.clone();
    both["spec"]["versions"][1]["storage"] = json!(true);
    assert_eq!(
        incompatible_changes(&before, &both),
        ["not exactly one version is the storage version"]
    );
    let mut none = before.clone();
    none["spec"]["versions"][0]["storage"] = json!(false);
    assert_eq!(
        incompatible_changes(&before, &none),
        ["not exactly one version is the storage version"]
    );
    let mut twice = before.clone();
    twice["spec"]["versions"][1]["name"] = json!("v1");
    assert_eq!(
        incompatible_changes(&before, &twice),
        ["a version is there twice", "version v2 is gone"]
    );
}
