//! The requests of the API server.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::setup::binding;

/// Identifies all requests of the bench.
pub const UID: &str = "705ab4f5-6393-11e8-b7cc-42010a800002";

/// The AdmissionReview of a Pod of 3 KB, with `managedFields`, as the API server sends it.
pub fn pod_review() -> Bytes {
    review(&("", "v1", "Pod", "pods"), &pod())
}

/// The AdmissionReview of a RoleBinding of a user who has two already.
pub fn binding_review() -> Bytes {
    let group = "rbac.authorization.k8s.io";
    let mut object = binding(1);
    object["metadata"]["name"] = json!("new");
    review(&(group, "v1", "RoleBinding", "rolebindings"), &object)
}

fn review((group, version, kind, resource): &(&str, &str, &str, &str), object: &Value) -> Bytes {
    let metadata = &object["metadata"];
    let kind = json!({"group": group, "version": version, "kind": kind});
    let resource = json!({"group": group, "version": version, "resource": resource});
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": UID, "kind": kind, "resource": resource, "requestKind": kind,
            "requestResource": resource, "name": metadata["name"],
            "namespace": metadata["namespace"], "operation": "CREATE",
            "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller",
                "uid": "3f5f5b2c-9d6e-4ad5-a1c1-0c8fdd8b9d2e",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system",
                    "system:authenticated"],
                "extra": {"authentication.kubernetes.io/credential-id":
                    ["JTI=b1a7f1a4-7c4c-4f5c-9f8c-2f3e1f4d5a6b"]}},
            "object": object, "oldObject": null, "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "kube-controller-manager"},
        },
    });
    Bytes::from(review.to_string())
}

/// A Pod of a Deployment: an application with a sidecar.
pub fn pod() -> Value {
    let probe = |path: &str| {
        json!({"httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "initialDelaySeconds": 5, "periodSeconds": 10, "timeoutSeconds": 1,
        "successThreshold": 1, "failureThreshold": 3})
    };
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example.com/shop/{name}@sha256:{}", "0a1b2c3d".repeat(8)),
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [{"name": "LOG_LEVEL", "value": "info"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
            "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "settings", "mountPath": "/etc/shop", "readOnly": true}],
            "imagePullPolicy": "IfNotPresent",
        })
    };
    let owner = json!({"f:ownerReferences": {".": {}, "k:{\"uid\":\"b6b2\"}": {}},
        "f:labels": {".": {}, "f:team": {}, "f:tier": {}}, "f:generateName": {}});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "shop-7c9d8f6b5-x2x4z", "generateName": "shop-7c9d8f6b5-",
            "namespace": "shop", "creationTimestamp": null,
            "labels": {"app": "shop", "pod-template-hash": "7c9d8f6b5", "team": "shop", "tier": "front"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
                "name": "shop-7c9d8f6b5", "uid": "b6b2", "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update",
                "apiVersion": "v1", "time": "2026-11-27T12:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": owner, "f:spec": {"f:containers": {}, "f:dnsPolicy": {},
                    "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {}}}}]},
        "spec": {"serviceAccountName": "shop", "restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
            "containers": [container("shop"), container("proxy")],
            "volumes": [{"name": "settings", "configMap": {"name": "shop", "defaultMode": 420}}],
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_has_three_kilobytes() {
        let bytes = pod().to_string().len();
        assert!((2_900..3_300).contains(&bytes), "{bytes}");
    }
}
