//! Volumes and their classes in tables.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::table::age::since;
use crate::api::table::parts::{at, each, is_going, items, or_none, text, text_or};

/// The cells of a volume, a claim, or a kind of `storage.k8s.io`.
pub(crate) fn cells(kind: &str, object: &Value, now: Timestamp) -> Option<Vec<Value>> {
    let name = text(object, "metadata/name");
    let age = since(at(object, "metadata/creationTimestamp"), now);
    let spec = &object["spec"];
    let unset = |member: &str| text_or(spec, member, "<unset>");
    let is = |member: &str, default: bool| spec[member].as_bool().unwrap_or(default);
    let phase = if is_going(object) { "Terminating" } else { text(object, "status/phase") };
    let beta = &object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    let class = beta.as_str().unwrap_or_else(|| text(spec, "storageClassName"));
    let cells = match kind {
        "PersistentVolume" => {
            let claim = match &spec["claimRef"] {
                Value::Null => String::new(),
                claim => format!("{}/{}", text(claim, "namespace"), text(claim, "name")),
            };
            json!([
                name,
                text_or(spec, "capacity/storage", "0"),
                modes(items(spec, "accessModes")),
                text(spec, "persistentVolumeReclaimPolicy"),
                phase,
                claim,
                class,
                unset("volumeAttributesClassName"),
                text(object, "status/reason"),
                age,
                unset("volumeMode")
            ])
        }
        "PersistentVolumeClaim" => {
            let volume = text(spec, "volumeName");
            let (capacity, modes) = if volume.is_empty() {
                ("", String::new())
            } else {
                let modes = modes(items(object, "status/accessModes"));
                (text_or(object, "status/capacity/storage", "0"), modes)
            };
            let attributes = unset("volumeAttributesClassName");
            let mode = unset("volumeMode");
            json!([name, phase, volume, capacity, modes, class, attributes, age, mode])
        }
        "StorageClass" => storage_class(object, &age),
        "VolumeAttributesClass" => json!([name, text(object, "driverName"), age]),
        "VolumeAttachment" => json!([
            name,
            text(spec, "attacher"),
            text(spec, "source/persistentVolumeName"),
            text(spec, "nodeName"),
            at(object, "status/attached").as_bool().unwrap_or(false),
            age
        ]),
        "CSINode" => json!([name, items(spec, "drivers").len(), age]),
        "CSIDriver" => {
            let kinds: Vec<&str> =
                items(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
            let tokens = match &spec["tokenRequests"] {
                Value::Array(list) => each(list, "audience").join(","),
                _ => "<unset>".to_owned(),
            };
            json!([
                name,
                is("attachRequired", true),
                is("podInfoOnMount", false),
                is("storageCapacity", false),
                tokens,
                is("requiresRepublish", false),
                or_none(kinds.join(",")),
                age
            ])
        }
        "CSIStorageCapacity" => {
            json!([name, text(object, "storageClassName"), text_or(object, "capacity", "<unset>")])
        }
        _ => return None,
    };
    cells.as_array().cloned()
}

fn storage_class(object: &Value, age: &Value) -> Value {
    let annotation = |name: &str| at(object, "metadata/annotations")[name] == "true";
    let default = annotation("storageclass.kubernetes.io/is-default-class")
        || annotation("storageclass.beta.kubernetes.io/is-default-class");
    let name = text(object, "metadata/name");
    json!([
        if default { format!("{name} (default)") } else { name.to_owned() },
        text(object, "provisioner"),
        text_or(object, "reclaimPolicy", "Delete"),
        text_or(object, "volumeBindingMode", "Immediate"),
        object["allowVolumeExpansion"].as_bool().unwrap_or(false),
        age
    ])
}

/// Access modes in short.
fn modes(list: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let there = short.into_iter().filter(|(mode, _)| list.iter().any(|one| one == mode));
    there.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}
