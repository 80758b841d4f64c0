//! The settings of a node's programs, as files.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context as _, Result};
use innkeeper_images::recipes::PAUSE;
use serde_json::{Value, json};

use crate::machine::INSIDE;

/// The address of the cluster's DNS, in the range of Services.
pub(crate) const DNS: &str = "10.96.0.10";
/// The registry's port.
pub(crate) const REGISTRY_PORT: u16 = 5000;
/// The port at which DNS says that it is ready.
pub(crate) const DNS_READY_PORT: u16 = 8181;
/// Where containerd listens.
pub(crate) const CONTAINERD: &str = "/run/containerd/containerd.sock";

/// The path of a file in the machine's folder, as the node sees it.
fn path(name: &str) -> String {
    format!("{INSIDE}/{name}")
}

/// The kubeconfig that the control plane has made for a program.
pub(crate) fn kubeconfig(name: &str) -> String {
    path(&format!("{name}.kubeconfig"))
}

/// What the settings depend on.
pub(crate) struct Settings<'a> {
    /// The folder of CNI's plugins, as the node sees it.
    pub(crate) plugins: &'a Path,
    /// The node's address.
    pub(crate) address: Ipv4Addr,
    /// The address of the registry that it asks for images.
    pub(crate) registry: Ipv4Addr,
    /// The addresses of its pods.
    pub(crate) pods: &'a str,
    /// The group that its pods are put into.
    pub(crate) control_group: String,
}

impl Settings<'_> {
    /// Writes those of a cluster's first node into `folder`, as this process sees it: also those of
    /// the registry, of DNS, and of the cluster.
    pub(crate) fn write_all(&self, folder: &Path) -> Result<()> {
        self.write(folder)?;
        write(folder, "registry.yaml", format!("{:#}\n", registry()))?;
        write(folder, "Corefile", Self::dns())?;
        write(folder, "objects.yaml", self.objects())
    }

    /// Writes those that each node has.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        write(folder, "containerd.toml", self.containerd())?;
        write(folder, "registries/_default/hosts.toml", self.mirror())?;
        write(folder, "network/10-pods.conflist", format!("{:#}\n", network(self.pods)))?;
        write(folder, "kubelet.yaml", format!("{:#}\n", self.kubelet()))
    }

    fn containerd(&self) -> String {
        format!(
            r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
    "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "{CONTAINERD}"
[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
# In a container, root may lack the capability to lower it.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{}"
conf_dir = "{}"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{}"
"#,
            self.plugins.display(),
            path("network"),
            path("registries")
        )
    }

    /// Whatever registry an image is asked from, it is asked from the cluster's own, and from no
    /// other.
    fn mirror(&self) -> String {
        let url = format!("http://{}:{REGISTRY_PORT}", self.registry);
        format!("server = \"{url}\"\n\n[host.\"{url}\"]\ncapabilities = [\"pull\", \"resolve\"]\n")
    }

    fn kubelet(&self) -> Value {
        json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "authentication": {
                "anonymous": { "enabled": false },
                "webhook": { "enabled": true },
                "x509": { "clientCAFile": path("ca.crt") },
            },
            "authorization": { "mode": "Webhook" },
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.control_group,
            "clusterDNS": [DNS],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": format!("unix://{CONTAINERD}"),
            "enforceNodeAllocatable": [],
            // A full disk of the host is no reason to evict a test's pods.
            "evictionHard": {
                "imagefs.available": "0%", "memory.available": "50Mi", "nodefs.available": "0%",
                "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%",
            },
            "failCgroupV1": false,
            "failSwapOn": false,
            "imageGCHighThresholdPercent": 100,
            "localStorageCapacityIsolation": false,
            "maxPods": 250,
            // As often as a test waits.
            "nodeStatusUpdateFrequency": "5s",
            "resolvConf": "",
            "serializeImagePulls": false,
            "volumePluginDir": "/var/lib/kubelet/plugins",
        })
    }

    fn dns() -> String {
        format!(
            ".:53 {{\n    errors\n    ready :{DNS_READY_PORT}\n    cache 5\n    \
             kubernetes cluster.local in-addr.arpa ip6.arpa {{\n        kubeconfig {}\n        \
             ttl 5\n    }}\n}}\n",
            kubeconfig("dns")
        )
    }

    /// What a cluster's installer makes in addition: the Service of DNS, its rights, and the class
    /// of volumes.
    fn objects(&self) -> String {
        let address = self.address;
        format!(
            r#"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{ name: "innkeeper:dns" }}
rules:
  - apiGroups: [""]
    resources: [services, pods, namespaces]
    verbs: [list, watch]
  - apiGroups: [discovery.k8s.io]
    resources: [endpointslices]
    verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{ name: "innkeeper:dns" }}
roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "innkeeper:dns" }}
subjects: [{{ apiGroup: rbac.authorization.k8s.io, kind: User, name: "innkeeper:dns" }}]
---
apiVersion: v1
kind: Service
metadata: {{ name: kube-dns, namespace: kube-system }}
spec:
  clusterIP: {DNS}
  ports:
    - {{ name: dns, port: 53, protocol: UDP }}
    - {{ name: dns-tcp, port: 53, protocol: TCP }}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kube-dns
  namespace: kube-system
  labels: {{ kubernetes.io/service-name: kube-dns }}
addressType: IPv4
endpoints: [{{ addresses: [{address}], conditions: {{ ready: true }} }}]
ports:
  - {{ name: dns, port: 53, protocol: UDP }}
  - {{ name: dns-tcp, port: 53, protocol: TCP }}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {{ storageclass.kubernetes.io/is-default-class: "true" }}
provisioner: kubernetes.io/host-path
"#
        )
    }
}

fn write(folder: &Path, name: &str, text: String) -> Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(folder))
        .and_then(|()| fs::write(&path, text))
        .with_context(|| path.display().to_string())
}

fn registry() -> Value {
    json!({
        "version": 0.1,
        "log": { "level": "warn", "accesslog": { "disabled": true } },
        "storage": { "filesystem": { "rootdirectory": "/var/lib/registry" } },
        "http": { "addr": format!(":{REGISTRY_PORT}") },
    })
}

/// Each pod has a cable of its own to the node, so that all its packets pass the node's rules: with
/// a bridge, those between pods would do so by a module of the kernel that not every machine has.
fn network(pods: &str) -> Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [{
            "type": "ptp",
            "ipMasq": false,
            "ipam": {
                "type": "host-local",
                "dataDir": "/run/cni",
                "ranges": [[{ "subnet": pods }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
}
