use serde_json::json;

use super::*;
use crate::FieldMask;

fn deployments() -> Kind {
    Kind::namespaced("apps/v1", "Deployment", "deployments")
}

/// A Deployment that a module applied, two of whose three replicas are ready.
fn deployment() -> Value {
    json!({
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 2,
            "labels": {"app": "x"}, "annotations": {"innkeeper.dev/applied": "1"},
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Web", "name": "w", "uid": "o"}],
            "managedFields": [
                {"manager": "innkeeper/web/o", "operation": "Apply", "time": "2026-01-01T00:00:00Z",
                    "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                {"manager": "kcm", "operation": "Update", "subresource": "status",
                    "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:status": {}}}]},
        "spec": {"replicas": 3},
        "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 2,
            "availableReplicas": 2, "collisionCount": 0},
    })
}

/// The object with some changes, each at a JSON pointer.
fn changed(changes: &[(&str, Value)]) -> Value {
    let mut value = deployment();
    value["metadata"]["resourceVersion"] = "2".into();
    value["metadata"]["managedFields"][1]["time"] = "2026-01-02T00:00:00Z".into();
    for (pointer, new) in changes {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[name] = new.clone();
    }
    value
}

fn unread(kind: &Kind, after: &Value, host: HostReads, mask: Option<&FieldMask>) -> bool {
    let decode = |value: &Value| Object::decode(kind, &value.to_string(), None).unwrap();
    let (before, after) = (decode(&deployment()), decode(after));
    is_unread_by_host(kind, (&before, &after), host)
        && mask.is_none_or(|mask| !mask.differs(&before.text.read(), &after.text.read()))
}

#[test]
fn status_that_nobody_reads_is_unread() {
    let flood = changed(&[("/status/collisionCount", json!(7))]);
    let other = FieldMask::of_paths(&[&["metadata", "annotations"], &["status", "readyReplicas"]]);
    let reads = FieldMask::of_paths(&[&["status", "collisionCount"]]);
    for host in [HostReads::Written, HostReads::Head] {
        assert!(unread(&deployments(), &flood, host, None));
        assert!(unread(&deployments(), &flood, host, Some(&other)));
        assert!(!unread(&deployments(), &flood, host, Some(&reads)));
        assert!(!unread(&deployments(), &flood, host, Some(&FieldMask::default())));
    }
    assert!(!unread(&deployments(), &flood, HostReads::Whole, None));
}

#[test]
fn readiness_is_read_by_everybody() {
    let ready =
        changed(&[("/status/readyReplicas", json!(3)), ("/status/availableReplicas", json!(3))]);
    assert!(!unread(&deployments(), &ready, HostReads::Head, None));
}

#[test]
fn change_of_the_head_is_always_read() {
    for change in [
        ("/metadata/uid", json!("v")),
        ("/metadata/labels", json!({"app": "y"})),
        ("/metadata/ownerReferences", json!([])),
        ("/metadata/finalizers", json!(["a/b"])),
        ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
    ] {
        for host in [HostReads::Written, HostReads::Head] {
            let after = changed(std::slice::from_ref(&change));
            assert!(!unread(&deployments(), &after, host, None), "{change:?}");
        }
    }
}

#[test]
fn drift_of_an_applied_field_is_always_read() {
    // The server takes a field that another client changes out of the host's entry.
    let mut drifted = changed(&[("/spec/replicas", json!(1))]);
    drifted["metadata"]["managedFields"][0]["fieldsV1"] = json!({});
    for host in [HostReads::Written, HostReads::Head] {
        assert!(!unread(&deployments(), &drifted, host, None));
    }
}

#[test]
fn field_that_another_manager_gives_up_is_read_of_an_object_that_the_module_may_write() {
    let with_manager = |time: &str| {
        let mut held = changed(&[]);
        let entry = json!({"manager": "kubectl", "operation": "Update", "time": time,
            "fieldsV1": {"f:spec": {"f:paused": {}}}});
        held["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
        Object::decode(&deployments(), &held.to_string(), None).unwrap()
    };
    let free = Object::decode(&deployments(), &changed(&[]).to_string(), None).unwrap();
    let (held, later) =
        (with_manager("2026-01-01T00:00:00Z"), with_manager("2026-01-02T00:00:00Z"));
    for after in [&free, &later] {
        assert!(!is_unread_by_host(&deployments(), (&held, after), HostReads::Written));
    }
    let other = Kind::namespaced("v1", "Node", "nodes");
    let unowned = |object: &Object| {
        let (owners, entries) = (Box::default(), Box::default());
        Object { owners, entries, ..object.clone() }
    };
    assert!(is_unread_by_host(&other, (&unowned(&held), &unowned(&later)), HostReads::Head));
}

#[test]
fn status_that_the_host_writes_for_another_module_is_unread() {
    let mut status = changed(&[("/status/collisionCount", json!(7))]);
    let entry = json!({"manager": "innkeeper", "operation": "Apply", "subresource": "status",
        "time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:status": {"f:collisionCount": {}}}});
    status["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    assert!(unread(&deployments(), &status, HostReads::Written, None));
}

#[test]
fn everything_but_the_status_is_read_of_an_object_that_the_module_may_write() {
    for change in [
        ("/spec/paused", json!(true)),
        ("/metadata/generation", json!(3)),
        ("/metadata/annotations", json!({})),
        ("/metadata/annotations/innkeeper.dev~1allow-deletion", json!("true")),
        ("/extra", json!(1)),
    ] {
        let after = changed(std::slice::from_ref(&change));
        let kind = Kind::namespaced("example.com/v1", "Other", "others");
        assert!(!unread(&kind, &after, HostReads::Written, None), "{change:?}");
        // The host has an entry, whatever the manifest says of the kind.
        assert!(!unread(&kind, &after, HostReads::Head, None), "{change:?}");
    }
}

#[test]
fn fields_of_an_object_that_is_only_read_count_within_the_mask() {
    let kind = Kind::namespaced("coordination.k8s.io/v1", "Lease", "leases");
    let lease = |time: &str| -> Object {
        let text = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": time,
            "annotations": {"at": time}}, "spec": {"renewTime": time, "holderIdentity": "x"}});
        Object::decode(&kind, &text.to_string(), None).unwrap()
    };
    let (before, after) = (lease("1"), lease("2"));
    assert!(is_unread_by_host(&kind, (&before, &after), HostReads::Head));
    assert!(!is_unread_by_host(&kind, (&before, &after), HostReads::Written));
    let holder = FieldMask::of_paths(&[&["spec", "holderIdentity"]]);
    assert!(!holder.differs(&before.text.read(), &after.text.read()));
    let spec = FieldMask::of_paths(&[&["spec"]]);
    assert!(spec.differs(&before.text.read(), &after.text.read()));
}

#[test]
fn config_maps_and_secrets_are_read_whole_since_the_host_may_copy_their_values() {
    for kind in [
        Kind::namespaced("v1", "ConfigMap", "configmaps"),
        Kind::namespaced("v1", "Secret", "secrets"),
    ] {
        let object = |value: &str| {
            let text = json!({"metadata": {"name": "a", "uid": "u"}, "data": {"a": value}});
            Object::decode(&kind, &text.to_string(), None).unwrap()
        };
        assert!(!is_unread_by_host(&kind, (&object("1"), &object("2")), HostReads::Head));
    }
}
