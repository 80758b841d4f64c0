//! Paths of objects, and what the demo reads from them.

use innkeeper_lab::Resource;
use serde_json::Value;

use super::constants::{LABEL, LABEL_VALUE, NAMESPACE};

/// The path of an object (apiVersion, plural, name) in the demo's namespace. With an empty name,
/// the path of the list.
pub(super) fn path((api_version, plural, name): (&str, &str, &str)) -> String {
    let resource = Resource {
        api_version: api_version.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
    };
    resource.path(NAMESPACE, name)
}

/// Whether a condition of an object is `True`.
pub(super) fn is_true(object: &Value, condition: &str) -> bool {
    let all = object["status"]["conditions"].as_array();
    let mut all = all.into_iter().flatten();
    all.any(|one| one["type"] == condition && one["status"] == "True")
}

/// Whether the demo created an object.
pub(super) fn is_created_by_demo(object: &Value) -> bool {
    object["metadata"]["labels"][LABEL] == LABEL_VALUE
}
