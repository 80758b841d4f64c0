use expect_test::expect;
use innkeeper_contract::{JsonText, OwnedKind};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::*;
use crate::document::tests::HOSTILE;

fn manifest() -> Manifest {
    let owned = |kind, optional| OwnedKind { kind, optional, merges: false };
    Manifest {
        name: "podroute".into(),
        version: "0.1.0".into(),
        primary: Some(Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes")),
        owned: vec![
            owned(Kind::namespaced("v1", "Service", "services"), false),
            owned(Kind::namespaced("route.openshift.io/v1", "Route", "routes"), true),
        ],
        reads: vec![
            Kind::cluster("v1", "Node", "nodes"),
            Kind::namespaced("v1", "Service", "services"),
        ],
        read_fields: Vec::new(),
        crds: vec![json!({"metadata": {"name": "podroutes.quay.io"}}).into()],
        resync_seconds: None,
        finalizer: Some(String::new()),
        decorates: false,
        parameters_schema: None,
        kind_parameters: Vec::new(),
        selector: None,
        policy: None,
    }
}

fn granted(namespaces: &[&str]) -> Grant {
    Grant {
        module: "pr".into(),
        account: "pr-account".into(),
        account_namespace: module::NAMESPACE.into(),
        namespaces: namespaces.iter().map(|name| (*name).to_owned()).collect(),
        crds: true,
    }
}

fn printed(manifest: &Manifest, namespaces: &[&str]) -> String {
    print(manifest, &granted(namespaces)).unwrap().text().to_owned()
}

#[test]
fn objects_of_a_definition_are_listed_when_the_kind_is_not_declared() {
    let definition = |plural: &str| {
        JsonText::from(json!({"metadata": {"name": format!("{plural}.quay.io")},
            "spec": {"group": "quay.io", "scope": "Namespaced", "names": {"plural": plural}}}))
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
fn rules_are_cluster_roles_without_namespaces() {
    let text = printed(&manifest(), &[]);
    assert_eq!(read(&text).len(), 3);
    expect![[r##"
        # What the module pr needs to run the guest podroute 0.1.0.
        # Made by `innkeeper rbac`; run it again when the guest changes what it describes.
        # The annotation names the modules that may act as the account, separated by commas.
        apiVersion: v1
        kind: ServiceAccount
        metadata:
          annotations:
            innkeeper.dev/allowed-modules: pr
          name: pr-account
          namespace: innkeeper-modules
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata:
          name: innkeeper-module-pr
        rules:
          # The primaries: to watch podroutes.
          - apiGroups: ["quay.io"]
            resources: ["podroutes"]
            verbs: ["get", "list", "watch"]
          # To write their status (server-side apply).
          - apiGroups: ["quay.io"]
            resources: ["podroutes/status"]
            verbs: ["patch"]
          # To write the guest's finalizer on them.
          - apiGroups: ["quay.io"]
            resources: ["podroutes"]
            verbs: ["patch"]
          # To own what is made for them: an owner reference that blocks deletion needs
          # this where OwnerReferencesPermissionEnforcement is on.
          - apiGroups: ["quay.io"]
            resources: ["podroutes/finalizers"]
            verbs: ["update"]
          # To make Service (apply needs create and patch), and to prune.
          - apiGroups: [""]
            resources: ["services"]
            verbs: ["get", "list", "watch", "create", "patch", "delete"]
          # To make Route where it is served (apply needs create and patch), and to prune.
          # In addition to these verbs, writes need the verbs create and update on routes/custom-host, if the guest sets spec.host.
          # These rules do not grant it.
          - apiGroups: ["route.openshift.io"]
            resources: ["routes"]
            verbs: ["get", "list", "watch", "create", "patch", "delete"]
          # The guest reads Node.
          - apiGroups: [""]
            resources: ["nodes"]
            verbs: ["get", "list", "watch"]
          # To write Events about the primaries.
          - apiGroups: ["events.k8s.io"]
            resources: ["events"]
            verbs: ["create", "patch"]
          # To install the definitions that the guest describes, and no others.
          - apiGroups: ["apiextensions.k8s.io"]
            resourceNames: ["podroutes.quay.io"]
            resources: ["customresourcedefinitions"]
            verbs: ["get", "create", "patch"]
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
fn rules_are_printed_once_when_a_namespace_is_given_twice() {
    assert_eq!(printed(&manifest(), &["a", "b", "a"]), printed(&manifest(), &["a", "b"]));
}

#[test]
fn cluster_scoped_kinds_are_named_once() {
    let nodes = Kind::cluster("v1", "Node", "nodes");
    let spaces = Kind::cluster("v1", "Namespace", "namespaces");
    let manifest = Manifest { reads: vec![nodes.clone(), spaces, nodes], ..manifest() };
    let refused = check_namespaced(&manifest).unwrap_err().to_string();
    assert_eq!(refused.matches("Node").count(), 1, "{refused}");
}

#[test]
fn rules_are_roles_in_the_given_namespaces() {
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
fn guest_with_cluster_scoped_kinds_is_refused_when_roles_are_to_suffice() {
    let error = check_namespaced(&manifest()).unwrap_err().to_string();
    assert!(error.contains("which no Role can grant: v1 Node"), "{error}");
    let mut manifest = manifest();
    manifest.reads.clear();
    assert!(check_namespaced(&manifest).is_ok());
    manifest.primary = Some(Kind::cluster("quay.io/v1alpha1", "Podroute", "podroutes"));
    let error = check_namespaced(&manifest).unwrap_err().to_string();
    assert!(error.contains("quay.io/v1alpha1 Podroute"), "{error}");
}

#[test]
fn guest_without_a_primary_only_gets_the_rights_to_read() {
    let mut manifest = Manifest { primary: None, owned: Vec::new(), ..manifest() };
    manifest.crds.clear();
    manifest.finalizer = None;
    let documents = read(&printed(&manifest, &[]));
    let kinds: Vec<_> = documents.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"]);
    let rules = documents[1]["rules"].as_array().unwrap();
    let resources: Vec<_> = rules.iter().map(|rule| &rule["resources"][0]).collect();
    assert_eq!(resources, ["nodes", "services"]);
    assert!(rules.iter().all(|rule| rule["verbs"] == json!(READ)), "{rules:?}");
}

#[test]
fn events_about_cluster_scoped_primaries_lie_in_default() {
    let mut manifest = manifest();
    manifest.primary = Some(Kind::cluster("quay.io/v1alpha1", "Podroute", "podroutes"));
    let documents = read(&printed(&manifest, &[]));
    let role = documents.iter().find(|document| document["kind"] == "Role").unwrap();
    assert_eq!(role["metadata"]["namespace"], "default");
    assert_eq!(role["rules"].as_array().unwrap().len(), 1);
    assert_eq!(role["rules"][0]["resources"][0], "events");
}

/// Every text of a manifest that this command could print, one at a time.
type Field = fn(&mut Manifest, String);

const FIELDS: [Field; 12] = [
    |manifest, text| manifest.name = text,
    |manifest, text| manifest.version = text,
    |manifest, text| manifest.primary.as_mut().unwrap().api_version = text,
    |manifest, text| manifest.primary.as_mut().unwrap().kind = text,
    |manifest, text| manifest.primary.as_mut().unwrap().plural = text,
    |manifest, text| manifest.owned[0].kind.api_version = text,
    |manifest, text| manifest.owned[0].kind.kind = text,
    |manifest, text| manifest.owned[0].kind.plural = text,
    |manifest, text| manifest.reads[0].api_version = text,
    |manifest, text| manifest.reads[0].kind = text,
    |manifest, text| manifest.reads[0].plural = text,
    |manifest, text| manifest.crds[0] = json!({"metadata": {"name": text}}).into(),
];

const RULE: [&str; 4] = ["apiGroups", "resources", "resourceNames", "verbs"];

/// What `kubectl apply` would do with the documents, but for the rules: kinds, names and accounts.
fn structure(text: &str) -> Vec<Value> {
    let mut documents = read(text);
    for document in &mut documents {
        let Some(rules) = document.get_mut("rules") else { continue };
        for rule in rules.as_array().unwrap() {
            let members: Vec<_> = rule.as_object().unwrap().keys().map(String::as_str).collect();
            assert!(members.iter().all(|name| RULE.contains(name)), "{rule}");
            assert!(
                rule["verbs"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|verb| OWN.contains(&verb.as_str().unwrap()) || verb == "update")
            );
        }
        // How many there are depends on the kinds.
        *rules = Value::Null;
    }
    documents
}

/// Any text, mostly of pieces that mean something to a reader of YAML.
fn arbitrary(random: &mut fastrand::Rng) -> String {
    let attack = "x\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n";
    let mut text = String::new();
    for _ in 0..random.usize(1..5) {
        match random.u8(0..4) {
            0 => text.push(random.char(..)),
            1 => text.push_str(attack),
            2 => text.push(char::from(random.u8(0..160))),
            _ => text.push_str(HOSTILE[random.usize(..HOSTILE.len())]),
        }
    }
    text
}

#[test]
fn no_text_of_a_manifest_changes_the_structure_of_the_output() {
    let plain = structure(&printed(&manifest(), &["web"]));
    let mut random = fastrand::Rng::with_seed(3);
    for field in FIELDS {
        let texts: Vec<String> = HOSTILE
            .iter()
            .map(|text| (*text).to_owned())
            .chain((0..50).map(|_| arbitrary(&mut random)))
            .collect();
        for text in texts {
            let mut manifest = manifest();
            // Another kind than the primary's may be read too, and then has no rule of its own.
            field(&mut manifest, text.clone());
            // The grammars refuse almost all of them; the printer must not depend on that.
            let printed = printed(&manifest, &["web"]);
            assert_eq!(structure(&printed), plain, "{text:?}:\n{printed}");
            let other =
                printed.chars().find(|&c| c != '\n' && !innkeeper_core::foreign::is_visible(c));
            assert_eq!(other, None, "{text:?}:\n{printed}");
            for value in minimal_rules(&manifest, "pr", "pr-account") {
                let kinds =
                    ["ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];
                assert!(kinds.contains(&value["kind"].as_str().unwrap()), "{value}");
            }
        }
    }
}

#[test]
fn rights_as_objects_are_those_that_are_printed() {
    let printed = print(&manifest(), &granted(&[])).unwrap();
    assert_eq!(read(printed.text()), minimal_rules(&manifest(), "pr", "pr-account"));
}

#[test]
fn guest_is_refused_when_it_declares_a_builtin_kind_differently() {
    assert!(check_builtin(&manifest()).is_ok());
    for (lie, reason) in [
        (
            Kind::namespaced("v1", "ConfigMap", "secrets"),
            "Kubernetes serves ConfigMap as configmaps",
        ),
        (Kind::namespaced("v9", "Any", "secrets"), "Kubernetes serves Secret as secrets"),
        (Kind::cluster("v1", "Secret", "secrets"), "with scope Namespaced"),
        (Kind::namespaced("v1", "Node", "nodes"), "with scope Cluster"),
        (
            Kind::namespaced("rbac.authorization.k8s.io/v1", "Harmless", "clusterrolebindings"),
            "Kubernetes serves ClusterRoleBinding",
        ),
    ] {
        let mut manifest = manifest();
        manifest.reads.push(lie);
        let error = check_builtin(&manifest).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn rule_of_a_guest_that_makes_secrets_names_the_rights_on_value_sources() {
    let kind = Kind::namespaced("v1", "Secret", "secrets");
    let owned = vec![OwnedKind { kind, optional: false, merges: false }];
    let text = printed(&Manifest { owned, ..manifest() }, &["shop"]);
    let expected =
        "# To copy values of spec.valueSources, it needs get on each of these Secrets, and\n";
    assert!(text.contains(expected), "{text}");
    assert!(!printed(&manifest(), &["shop"]).contains("valueSources"));
}

#[test]
fn rule_of_a_guest_with_a_history_says_who_reads_it() {
    let kind = Kind::namespaced("apps/v1", "ControllerRevision", "controllerrevisions");
    let owned = OwnedKind { kind, optional: false, merges: false };
    let text = printed(&Manifest { owned: vec![owned], ..manifest() }, &[]);
    assert!(text.contains("store fields of primaries in them, and the role view"), "{text}");
}

#[test]
fn role_binding_comes_with_the_verb_that_it_takes_in_addition_to_its_own() {
    let kind = |kind: &str, plural: &str| OwnedKind {
        kind: Kind::namespaced("rbac.authorization.k8s.io/v1", kind, plural),
        optional: false,
        merges: false,
    };
    let owned = vec![kind("Role", "roles"), kind("RoleBinding", "rolebindings")];
    let text = printed(&Manifest { owned, ..manifest() }, &[]);
    for expected in [
        "# In addition to these verbs, writes need all rights that the Role grants, or the verb escalate on roles.",
        "# In addition to these verbs, writes need all rights that the bound role grants, or the verb bind on that role (roles or clusterroles).",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    // The rules themselves grant neither.
    let rules = text.lines().filter(|line| line.contains("verbs:")).collect::<String>();
    assert!(!rules.contains("bind") && !rules.contains("escalate"), "{rules}");
}

/// The rules of a guest with only this policy, as text.
fn printed_for_policy(kind: &str, rules: &Value, reads: &Value) -> String {
    let manifest = json!({"name": "p", "policy": {"kind": kind, "rules": rules}, "reads": reads});
    printed(&serde_json::from_value(manifest).unwrap(), &[])
}

/// The rules of the ClusterRole that are printed.
fn rules_for_policy(kind: &str, rules: &Value, reads: &Value) -> Value {
    read(&printed_for_policy(kind, rules, reads))[1]["rules"].clone()
}

#[test]
fn policy_may_list_what_it_reviews_and_patch_what_it_changes() {
    let rules = json!([
        {"groups": ["apps"], "resources": ["deployments", "deployments/scale"],
            "operations": ["CREATE", "UPDATE"]},
        {"groups": [""], "resources": ["configmaps"], "operations": ["CREATE"]},
    ]);
    let reads = json!([{"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}]);
    let config_maps =
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]});
    let deployments =
        |verbs: Value| json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs});
    assert_eq!(
        rules_for_policy("Validate", &rules, &reads),
        json!([config_maps, deployments(json!(["list", "watch"]))])
    );
    assert_eq!(
        rules_for_policy("Mutate", &rules, &reads),
        json!([
            config_maps,
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
            deployments(json!(["list", "watch", "patch"])),
            {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["patch"]},
        ])
    );
}

#[test]
fn policy_of_all_resources_gets_no_wildcard_but_a_comment() {
    let rules = json!([
        {"groups": ["*"], "resources": ["*"], "operations": ["CREATE"]},
        {"groups": ["batch"], "resources": ["jobs", "jobs/*"], "operations": ["CREATE"]},
    ]);
    let text = printed_for_policy("Mutate", &rules, &json!([]));
    assert!(text.contains("The policy names resources by `*`; nothing is printed"), "{text}");
    let jobs = json!([{"apiGroups": ["batch"], "resources": ["jobs"],
        "verbs": ["list", "watch", "patch"]}]);
    assert_eq!(read(&text)[1]["rules"], jobs);
}

#[test]
fn policy_of_cluster_scoped_resources_needs_a_cluster_role() {
    let rules = json!([{"groups": [""], "resources": ["namespaces", "services"],
        "operations": ["CREATE"]}]);
    let manifest = json!({"name": "p", "policy": {"kind": "Validate", "rules": rules}});
    let manifest: Manifest = serde_json::from_value(manifest).unwrap();
    let error = check_namespaced(&manifest).unwrap_err().to_string();
    assert!(error.contains("no Role can grant: namespaces;"), "{error}");
    let objects = read(&printed(&manifest, &["web"]));
    let resources = |kind: &str| {
        let role = objects.iter().find(|object| object["kind"] == kind).unwrap();
        role["rules"][0]["resources"].clone()
    };
    assert_eq!(resources("Role"), json!(["services"]));
    assert_eq!(resources("ClusterRole"), json!(["namespaces"]));
}
