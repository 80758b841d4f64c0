//! The publisher of certificates: each namespace has the ConfigMap `kube-root-ca.crt`.

use serde_json::json;

use crate::controllers::client;
use crate::controllers::client::{CONFIG_MAPS, Client, NAMESPACES};
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::types::object::is_terminating;
use crate::types::object_key::Key;

const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:root-ca-cert-publisher");

/// What the real one says about its ConfigMap.
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// Reconciles one namespace.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(namespace) = client::get(cluster, &NAMESPACES, key) else { return };
    if is_terminating(&namespace) {
        return;
    }
    let data = json!({"ca.crt": cluster.root_ca});
    let place = (key.1.clone(), "kube-root-ca.crt".to_owned());
    let Some(present) = client::get(cluster, &CONFIG_MAPS, &place) else {
        let object = json!({
            "metadata": {"name": place.1, "annotations": {"kubernetes.io/description": DESCRIPTION}},
            "data": data,
        });
        let _ = client::create(cluster, &CLIENT, &CONFIG_MAPS, &place.0, object);
        return;
    };
    if present["data"] != data {
        let mut object = std::sync::Arc::unwrap_or_clone(present);
        object["data"] = data;
        let _ = client::replace(cluster, &CLIENT, &CONFIG_MAPS, "", object);
    }
}

/// Publishes other certificates in all namespaces.
pub(crate) fn publish(cluster: &mut Cluster) {
    let Some(namespaces) = cluster.store.collection(&NAMESPACES.key()) else { return };
    let keys: Vec<Key> = namespaces.objects.keys().cloned().collect();
    for key in keys {
        cluster.work_queue.wake(cluster.controllers, Workload::RootCertificates, &key);
    }
}
