//! The flags of the programs of a control plane.

use std::net::SocketAddr;
use std::path::Path;

use crate::certificates::Certificates;

pub(crate) fn etcd_flags(folder: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://127.0.0.1:{port}"),
        format!("--advertise-client-urls=http://127.0.0.1:{port}"),
        // Peers there are none, but etcd listens for them all the same.
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

pub(crate) fn apiserver_flags(
    folder: &Path,
    certificates: &Certificates,
    policy: &Path,
    etcd: SocketAddr,
    own: SocketAddr,
) -> Vec<String> {
    let path = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    vec![
        format!("--etcd-servers=http://{etcd}"),
        format!("--secure-port={}", own.port()),
        format!("--bind-address={}", own.ip()),
        format!("--advertise-address={}", own.ip()),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--allow-privileged".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        path("service-account-key-file", &certificates.service_account_public_key),
        path("service-account-signing-key-file", &certificates.service_account_key),
        path("tls-cert-file", &certificates.server),
        path("tls-private-key-file", &certificates.server_key),
        path("client-ca-file", &certificates.ca),
        path("cert-dir", folder),
        path("audit-policy-file", policy),
        path("audit-log-path", &folder.join("audit.log")),
        // One file, or counting would miss what was rotated away.
        "--audit-log-maxsize=0".to_owned(),
    ]
}

/// What the API server needs in addition to talk with kubelets, and for pods to talk with it.
pub(crate) fn node_flags(certificates: &Certificates, has_node: bool) -> Vec<String> {
    if !has_node {
        // An endpoint on this machine's loopback would be refused.
        return vec!["--endpoint-reconciler-type=none".to_owned()];
    }
    let (certificate, key) = &certificates.kubelet_client;
    vec![
        "--endpoint-reconciler-type=lease".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--kubelet-client-certificate={}", certificate.display()),
        format!("--kubelet-client-key={}", key.display()),
    ]
}

/// `folder` as the controller manager sees it.
pub(crate) fn controller_manager_flags(folder: &Path, port: u16) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--kubeconfig={}", path("controller-manager.kubeconfig")),
        format!("--service-account-private-key-file={}", path("sa.key")),
        format!("--root-ca-file={}", path("ca.crt")),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--use-service-account-credentials".to_owned(),
        "--leader-elect=false".to_owned(),
        // At the default rate it needs 4 s to create the accounts of its controllers.
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ]
}
