use expect_test::expect;
use innkeeper_contract::OwnedKind;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::*;

fn manifest() -> Manifest {
    let owned = |kind, optional| OwnedKind { kind, optional, merges: false };
    Manifest {
        name: "podroute".into(),
        version: "0.1.0".into(),
        primary: Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes"),
        owned: vec![
            owned(Kind::namespaced("v1", "Service", "services"), false),
            owned(Kind::namespaced("route.openshift.io/v1", "Route", "routes"), true),
        ],
        reads: vec![
            Kind::cluster("v1", "Node", "nodes"),
            Kind::namespaced("v1", "Service", "services"),
        ],
        crds: vec![json!({"metadata": {"name": "podroutes.quay.io"}})],
        resync_seconds: None,
        finalizer: Some(String::new()),
        decorates: false,
        parameters_schema: None,
    }
}

fn printed(manifest: &Manifest, namespaces: &[&str]) -> String {
    let namespaces: Vec<String> = namespaces.iter().map(|name| (*name).to_owned()).collect();
    let grant = Grant {
        module: "pr".into(),
        account: "pr-account".into(),
        namespaces: &namespaces,
        crds: true,
    };
    print(manifest, &grant).unwrap()
}

#[test]
fn objects_of_a_definition_are_listed_when_the_kind_is_not_declared() {
    let definition = |plural: &str| {
        json!({"metadata": {"name": format!("{plural}.quay.io")},
            "spec": {"group": "quay.io", "scope": "Namespaced", "names": {"plural": plural}}})
    };
    let manifest =
        Manifest { crds: vec![definition("podroutes"), definition("others")], ..manifest() };
    let text = printed(&manifest, &[]);
    assert_eq!(text.matches("before their definition changes").count(), 1, "{text}");
    assert!(text.contains("To check stored others before their definition changes."), "{text}");
}

fn read(text: &str) -> Vec<Value> {
    serde_yaml_ng::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .collect()
}

#[test]
fn the_whole_cluster() {
    let text = printed(&manifest(), &[]);
    assert_eq!(read(&text).len(), 3);
    expect![[r##"
        # What the module pr needs to run the guest podroute 0.1.0.
        # Made by `innkeeper rbac`; make it anew when the guest changes what it describes.
        apiVersion: v1
        kind: ServiceAccount
        metadata:
          name: pr-account
          namespace: innkeeper-modules
          annotations:
            # The modules that may act as it, separated by commas.
            innkeeper.dev/allowed-modules: "pr"
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata:
          name: innkeeper-module-pr
        rules:
          # The primaries: to watch podroutes.
          - apiGroups: [quay.io]
            resources: [podroutes]
            verbs: [get, list, watch]
          # To write their status (server-side apply).
          - apiGroups: [quay.io]
            resources: [podroutes/status]
            verbs: [patch]
          # To write the guest's finalizer on them.
          - apiGroups: [quay.io]
            resources: [podroutes]
            verbs: [patch]
          # To own what is made for them: an owner reference that blocks deletion needs
          # this where OwnerReferencesPermissionEnforcement is on.
          - apiGroups: [quay.io]
            resources: [podroutes/finalizers]
            verbs: [update]
          # To make Service (apply needs create and patch), and to prune.
          - apiGroups: [""]
            resources: [services]
            verbs: [get, list, watch, create, patch, delete]
          # To make Route where it is served (apply needs create and patch), and to prune.
          - apiGroups: [route.openshift.io]
            resources: [routes]
            verbs: [get, list, watch, create, patch, delete]
          # The guest reads Node.
          - apiGroups: [""]
            resources: [nodes]
            verbs: [get, list, watch]
          # To write Events about the primaries.
          - apiGroups: [events.k8s.io]
            resources: [events]
            verbs: [create, patch]
          # To install the definitions that the guest describes, and no others.
          - apiGroups: [apiextensions.k8s.io]
            resources: [customresourcedefinitions]
            resourceNames: [podroutes.quay.io]
            verbs: [get, create, patch]
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRoleBinding
        metadata:
          name: innkeeper-module-pr
        roleRef:
          apiGroup: rbac.authorization.k8s.io
          kind: ClusterRole
          name: innkeeper-module-pr
        subjects:
          - kind: ServiceAccount
            name: pr-account
            namespace: innkeeper-modules
    "##]]
    .assert_eq(&text);
}

#[test]
fn single_namespaces() {
    let text = printed(&manifest(), &["a", "b"]);
    let documents = read(&text);
    let names: Vec<_> = documents
        .iter()
        .map(|document| {
            format!(
                "{} {}",
                document["kind"].as_str().unwrap(),
                document["metadata"]["namespace"].as_str().unwrap_or("-")
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            "ServiceAccount innkeeper-modules",
            "ClusterRole -",
            "ClusterRoleBinding -",
            "Role a",
            "RoleBinding a",
            "Role b",
            "RoleBinding b"
        ]
    );
    // What is cluster-scoped, and nothing else, is granted in the whole cluster.
    let resources: Vec<_> = documents[1]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["resources"][0].as_str().unwrap())
        .collect();
    assert_eq!(resources, ["nodes", "customresourcedefinitions"]);
    assert_eq!(documents[3]["rules"], documents[5]["rules"]);
    assert_eq!(documents[6]["subjects"][0]["namespace"], "innkeeper-modules");
}

#[test]
fn events_about_cluster_scoped_primaries_lie_in_default() {
    let mut manifest = manifest();
    manifest.primary = Kind::cluster("quay.io/v1alpha1", "Podroute", "podroutes");
    let documents = read(&printed(&manifest, &[]));
    let role = documents.iter().find(|document| document["kind"] == "Role").unwrap();
    assert_eq!(role["metadata"]["namespace"], "default");
    assert_eq!(role["rules"].as_array().unwrap().len(), 1);
    assert_eq!(role["rules"][0]["resources"][0], "events");
}
