//! The version of the owner's kind, in which a desired object and a live one may differ alone.

use serde_json::Value;

use super::digest::digest;
use crate::Object;

/// The group of an `apiVersion`; empty for the core group.
pub(super) fn group_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// The digest that a desired object had if its owner were in the version in which the live object
/// names it; `None` if the live object names no owner of the desired one in another version.
///
/// A guest that moves to another version of its primary kind changes the owner reference of each
/// object. Compare this digest with that of the last apply, to find whether more has changed.
pub fn digest_in_version_of_owner(desired: &Value, live: &Object) -> Option<String> {
    let owners = desired.get("metadata")?.get("ownerReferences")?.as_array()?;
    let (index, version) = owners.iter().enumerate().find_map(|(index, owner)| {
        let named = live.owners.iter().find(|named| owner["uid"] == *named.uid)?;
        let version = owner["apiVersion"].as_str()?;
        let is_other_version =
            *named.api_version != *version && group_of(&named.api_version) == group_of(version);
        is_other_version.then_some((index, &named.api_version))
    })?;
    let mut desired = desired.clone();
    desired["metadata"]["ownerReferences"][index]["apiVersion"] = (**version).into();
    Some(digest(&desired))
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, uid: &str) -> Value {
        json!({"metadata": {"name": "a", "ownerReferences": [
            {"apiVersion": api_version, "kind": "Site", "name": "one", "uid": uid}]}})
    }

    fn live(api_version: &str, uid: &str) -> Object {
        let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
        Object::decode(&kind, &object(api_version, uid).to_string(), None).unwrap()
    }

    #[test]
    fn digest_is_that_of_the_object_with_the_owner_in_the_live_version() {
        let desired = object("example.com/v2", "u1");
        let found = digest_in_version_of_owner(&desired, &live("example.com/v1", "u1"));
        assert_eq!(found, Some(digest(&object("example.com/v1", "u1"))));
        assert_ne!(found, Some(digest(&desired)));
    }

    #[test]
    fn owner_of_the_same_version_another_group_or_another_uid_gives_no_digest() {
        let desired = object("example.com/v2", "u1");
        let others = [
            live("example.com/v2", "u1"),
            live("example.com/v1", "u2"),
            live("example.org/v1", "u1"),
            live("v1", "u1"),
            live("", "u1"),
            live("example.com/v1/x", "u1"),
        ];
        for other in others {
            assert_eq!(digest_in_version_of_owner(&desired, &other), None, "{:?}", other.owners);
        }
        let without = json!({"metadata": {"name": "a"}});
        assert_eq!(digest_in_version_of_owner(&without, &live("example.com/v1", "u1")), None);
    }
}
