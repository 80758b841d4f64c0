//! The manifests of `deploy/`: they are accepted, and give the rights that they say and no more.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use innkeeper_cluster_tests::stage::{MODULES, Stage};
use innkeeper_cluster_tests::stage::{SOON, root};
use innkeeper_cluster_tests::{
    Admin, ControlPlane, Host, HostOptions, Kind, Options, eventually, shared,
};
use innkeeper_controlplane::Programs;
use serde::Deserialize as _;
use serde_json::{Value, json};

const HOST: &str = "system:serviceaccount:innkeeper-system:innkeeper";
const PODROUTE: &str = "system:serviceaccount:innkeeper-modules:podroute";

/// A right: verb, API group, resource with subresource, namespace (empty: everywhere), name
/// (empty: any).
type Right = (&'static str, &'static str, &'static str, &'static str, &'static str);

async fn may(admin: &Admin, user: &str, right: Right) -> Result<bool> {
    let (verb, group, resource, namespace, name) = right;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                "namespace": namespace, "name": name,
            },
        },
    });
    let request = http::Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&body)?)?;
    let answer: Value = admin.client().request(request).await.context("asking for a right")?;
    answer["status"]["allowed"].as_bool().context("no answer about a right")
}

async fn check(admin: &Admin, user: &str, allowed: &[Right], denied: &[Right]) -> Result<()> {
    // The API server learns of new roles by a watch of its own, a moment later.
    for right in allowed {
        eventually(&format!("{user} has {right:?}"), SOON, async || {
            Ok(if may(admin, user, *right).await? { Ok(()) } else { Err("not yet".to_owned()) })
        })
        .await?;
    }
    for right in denied {
        assert!(!may(admin, user, *right).await?, "{user} should not have {right:?}");
    }
    Ok(())
}

#[tokio::test]
async fn host_account_may_impersonate_modules_and_little_else() -> Result<()> {
    let admin = Admin::of(shared()?).await?;
    admin.install().await?;
    let allowed: [Right; 17] = [
        ("watch", "innkeeper.dev", "modules", "", ""),
        ("patch", "innkeeper.dev", "modules", "", "any"),
        ("patch", "innkeeper.dev", "modules/status", "", "any"),
        ("list", "apiextensions.k8s.io", "customresourcedefinitions", "", ""),
        ("impersonate", "", "serviceaccounts", "innkeeper-modules", "podroute"),
        ("list", "", "serviceaccounts", "innkeeper-modules", ""),
        ("watch", "", "serviceaccounts", "innkeeper-modules", ""),
        ("watch", "", "configmaps", "innkeeper-modules", ""),
        ("create", "", "configmaps", "innkeeper-modules", ""),
        ("delete", "", "configmaps", "innkeeper-modules", ""),
        ("get", "", "secrets", "innkeeper-system", "innkeeper-digest-key"),
        ("create", "", "secrets", "innkeeper-system", ""),
        ("create", "coordination.k8s.io", "leases", "innkeeper-system", ""),
        ("patch", "coordination.k8s.io", "leases", "innkeeper-system", "innkeeper"),
        ("create", "", "events", "default", ""),
        ("patch", "events.k8s.io", "events", "default", "any"),
        ("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", ""),
    ];
    let denied: [Right; 21] = [
        ("impersonate", "", "serviceaccounts", "", "admin"),
        ("impersonate", "", "serviceaccounts", "kube-system", "generic-garbage-collector"),
        ("impersonate", "", "users", "", "admin"),
        ("impersonate", "", "groups", "", "system:masters"),
        ("delete", "innkeeper.dev", "modules", "", "any"),
        ("create", "apiextensions.k8s.io", "customresourcedefinitions", "", ""),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "any"),
        ("get", "", "secrets", "innkeeper-system", "other"),
        ("list", "", "secrets", "innkeeper-system", ""),
        ("get", "", "secrets", "innkeeper-modules", "any"),
        ("update", "", "configmaps", "innkeeper-modules", "any"),
        ("patch", "", "configmaps", "innkeeper-modules", "any"),
        ("list", "", "configmaps", "", ""),
        ("create", "", "serviceaccounts/token", "innkeeper-modules", "podroute"),
        ("list", "", "serviceaccounts", "", ""),
        ("patch", "", "serviceaccounts", "innkeeper-modules", "podroute"),
        ("create", "", "serviceaccounts", "innkeeper-modules", ""),
        ("list", "apps", "deployments", "", ""),
        ("create", "", "pods", "innkeeper-system", ""),
        ("patch", "coordination.k8s.io", "leases", "innkeeper-system", "other"),
        ("patch", "coordination.k8s.io", "leases", "kube-system", "innkeeper"),
    ];
    check(&admin, HOST, &allowed, &denied).await
}

#[tokio::test]
async fn podroute_account_may_write_its_objects_and_its_crd_only() -> Result<()> {
    let admin = Admin::of(shared()?).await?;
    admin.install().await?;
    admin.apply(include_str!("../../../deploy/samples/module-podroute.yaml")).await?;
    let allowed: [Right; 8] = [
        ("watch", "quay.io", "podroutes", "", ""),
        ("patch", "quay.io", "podroutes/status", "team", "a"),
        ("create", "apps", "deployments", "team", ""),
        ("patch", "apps", "deployments", "team", "pod-route"),
        ("delete", "", "services", "team", "podroute-service"),
        ("watch", "route.openshift.io", "routes", "", ""),
        ("create", "", "events", "team", ""),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "podroutes.quay.io"),
    ];
    let denied: [Right; 8] = [
        ("patch", "quay.io", "podroutes", "team", "a"),
        ("delete", "quay.io", "podroutes", "team", "a"),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", "others.quay.io"),
        ("delete", "apiextensions.k8s.io", "customresourcedefinitions", "", "podroutes.quay.io"),
        ("list", "", "secrets", "team", ""),
        ("create", "", "pods", "team", ""),
        ("patch", "innkeeper.dev", "modules", "", "podroute"),
        ("impersonate", "", "serviceaccounts", "innkeeper-modules", "podroute"),
    ];
    check(&admin, PODROUTE, &allowed, &denied).await
}

/// Sends a request about Modules as a user who only may write Modules, without lasting effect;
/// gives the code and the message of the answer.
async fn as_jane(admin: &Admin, method: &str, name: &str, body: &Value) -> Result<(u64, String)> {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("/apis/innkeeper.dev/v1alpha1/modules{name}?dryRun=All"))
        .header("Impersonate-User", "jane")
        .header(
            "content-type",
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" },
        )
        .body(serde_json::to_vec(body)?)?;
    match admin.client().request::<Value>(request).await {
        Ok(_) => Ok((200, String::new())),
        Err(kube::Error::Api(status)) => Ok((status.code.into(), status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn module_is_refused_when_its_creator_may_not_impersonate_its_account() -> Result<()> {
    let admin = Admin::of(shared()?).await?;
    admin.install().await?;
    admin.apply(JANE_AND_A_MODULE_OF_THE_ADMIN).await?;
    until_jane_may_create_with_her_own_account_only(&admin).await?;
    jane_may_change_only_what_does_not_use_the_account(&admin).await?;
    jane_needs_the_right_to_create_webhooks_for_a_policy(&admin).await?;

    // A field with an old name is refused with the new one, and not dropped.
    let old = json!({"spec": {"limits": {"objects": 1}}});
    let (code, message) = as_jane(&admin, "PATCH", "/of-admin", &old).await?;
    assert_eq!(code, 422, "{message}");
    assert!(message.contains("renamed: use spec.limits.maxObjects"), "{message}");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(as_jane(&admin, "PATCH", "/of-admin", &labels).await?.0, 200);
    Ok(())
}

/// Jane may write Modules and act as one account; a Module acts as another account.
const JANE_AND_A_MODULE_OF_THE_ADMIN: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: jane-modules}
rules:
- {apiGroups: [innkeeper.dev], resources: [modules], verbs: [get, create, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: jane-modules}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: jane-modules}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: jane-acts, namespace: innkeeper-modules}
rules:
- {apiGroups: [""], resources: [serviceaccounts], resourceNames: [jane-account], verbs: [impersonate]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: jane-acts, namespace: innkeeper-modules}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: jane-acts}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
---
apiVersion: innkeeper.dev/v1alpha1
kind: Module
metadata: {name: of-admin}
spec: {source: {configMap: {name: of-admin}}, serviceAccountName: account-of-admin, paused: true}
"#;

fn module_of_jane(account: &str) -> Value {
    json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": "of-jane"},
        "spec": {"source": {"configMap": {"name": "of-jane"}}, "serviceAccountName": account}})
}

/// The API server takes up a policy and roles a moment after they are made.
async fn until_jane_may_create_with_her_own_account_only(admin: &Admin) -> Result<()> {
    let refusal = "may not impersonate ServiceAccount innkeeper-modules/account-of-admin";
    let what = "a Module with a foreign account is refused, and one with her own is not";
    eventually(what, SOON, async || {
        let own = as_jane(admin, "POST", "", &module_of_jane("jane-account")).await?;
        let foreign = as_jane(admin, "POST", "", &module_of_jane("account-of-admin")).await?;
        let is_refused = foreign.0 == 403 && foreign.1.contains(refusal);
        Ok(if own.0 == 200 && is_refused { Ok(()) } else { Err(format!("{own:?}, {foreign:?}")) })
    })
    .await
}

async fn jane_may_change_only_what_does_not_use_the_account(admin: &Admin) -> Result<()> {
    for (spec, allowed) in [
        (json!({"paused": false}), true),
        (json!({"limits": {"timeout": "2s"}}), true),
        (json!({"serviceAccountName": "jane-account"}), true),
        (json!({"source": {"configMap": {"name": "mine"}}}), false),
        (json!({"secretNames": ["passwords"]}), false),
        (
            json!({"valueSources": [{"kind": "Secret", "namespace": "a", "name": "b", "toNamespaces": ["*"]}]}),
            false,
        ),
        (json!({"allowCrossNamespace": true}), false),
        (json!({"allowFinalizers": true}), false),
        (json!({"namespaces": ["elsewhere"]}), false),
        (json!({"parameters": {"a": "b"}}), false),
        (json!({"allowedCRDGroups": ["example.com"]}), false),
        (json!({"selector": {"matchLabels": {"a": "b"}}}), false),
        (json!({"policy": {}}), false),
        (json!({"serviceAccountName": "another-account"}), false),
    ] {
        let (code, message) = as_jane(admin, "PATCH", "/of-admin", &json!({"spec": spec})).await?;
        assert_eq!(code == 200, allowed, "{spec}: {code} {message}");
    }
    Ok(())
}

/// Her own account is not enough for a policy.
async fn jane_needs_the_right_to_create_webhooks_for_a_policy(admin: &Admin) -> Result<()> {
    let mut policy = module_of_jane("jane-account");
    policy["spec"]["policy"] = json!({"mode": "Audit"});
    let (code, message) = as_jane(admin, "POST", "", &policy).await?;
    assert_eq!(code, 403, "{message}");
    assert!(message.contains("may not create webhook configurations"), "{message}");
    admin.apply(JANE_MAY_CREATE_WEBHOOKS).await?;
    eventually("a Module with a policy is accepted", SOON, async || {
        let (code, message) = as_jane(admin, "POST", "", &policy).await?;
        Ok(if code == 200 { Ok(()) } else { Err(format!("{code} {message}")) })
    })
    .await
}

const JANE_MAY_CREATE_WEBHOOKS: &str = include_str!("deploy/jane-webhooks.yaml");

/// What `kubectl kustomize` makes of a folder of the repository.
fn kustomize(folder: &Path) -> Result<String> {
    let mut kubectl = Programs::find(&mut |_| ())?.command("kubectl")?;
    let output = kubectl.arg("kustomize").arg(folder).output()?;
    if !output.status.success() {
        bail!(
            "kubectl kustomize {}: {}",
            folder.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The objects of a YAML stream.
fn objects(yaml: &str) -> Result<Vec<Value>> {
    Ok(serde_yaml_ng::Deserializer::from_str(yaml)
        .map(Value::deserialize)
        .collect::<Result<_, _>>()?)
}

/// A control plane of its own, since others have no host in theirs.
#[tokio::test(flavor = "multi_thread")]
async fn kustomized_manifests_are_accepted_and_their_pods_are_restricted() -> Result<()> {
    let options = Options { controller_manager: true, ..Options::default() };
    let plane = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await??;
    let admin = Admin::of(&plane).await?;
    let all = kustomize(&root().join("deploy"))?;
    // As kubectl does it: what others need first.
    admin.apply(&all).await?;
    let crd = admin.must_get(Kind::CRD, "", "modules.innkeeper.dev").await?;
    admin.until_established(&crd).await?;
    // A pod that is not restricted would be refused by the namespace.
    let pods = eventually("there are pods of the host", SOON, async || {
        let pods = admin.list(Kind::POD, "innkeeper-system").await?;
        Ok(if pods.len() == 2 { Ok(pods) } else { Err(format!("{} pods", pods.len())) })
    })
    .await?;
    let container = &pods[0]["spec"]["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    let naked = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "naked", "namespace": "innkeeper-system"},
        "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let refused = admin.create(&naked.to_string()).await.unwrap_err();
    assert!(format!("{refused:#}").contains("restricted"), "{refused:#}");
    // A second time nothing is refused.
    admin.apply(&all).await?;
    Ok(())
}

#[test]
fn monitor_and_guests_are_added_by_kustomizations() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("deploy");
    let status = std::process::Command::new("cp")
        .arg("-r")
        .arg(root().join("deploy"))
        .arg(&copy)
        .status()?;
    assert!(status.success());
    component_adds_a_monitor_and_images_are_replaced(folder.path())?;
    components_guard_metrics_and_egress(folder.path())?;
    component_adds_what_policies_need(folder.path())?;
    plain_manifests_close_the_port_of_metrics(&copy)?;
    guests_become_modules_and_config_maps(&copy)
}

/// What kustomize makes of a kustomization next to the copy of `deploy`.
fn customised(folder: &Path, name: &str, kustomization: &str) -> Result<String> {
    let folder = folder.join(name);
    fs::create_dir(&folder)?;
    fs::write(folder.join("kustomization.yaml"), kustomization)?;
    kustomize(&folder)
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    objects.iter().find(|one| one["kind"] == kind && one["metadata"]["name"] == name)
}

fn component_adds_a_monitor_and_images_are_replaced(folder: &Path) -> Result<()> {
    let made = customised(
        folder,
        "monitored",
        "resources: [../deploy]\ncomponents: [../deploy/monitor]\nimages:\n  - {name: innkeeper, newName: example.com/innkeeper, newTag: v1}\n",
    )?;
    assert!(made.contains("kind: ServiceMonitor"), "{made}");
    assert!(made.contains("image: example.com/innkeeper:v1"), "{made}");
    Ok(())
}

/// The order of the components does not matter to anything but the `ServiceMonitor`'s token.
fn components_guard_metrics_and_egress(folder: &Path) -> Result<()> {
    let made = objects(&customised(
        folder,
        "guarded",
        "resources: [../deploy]\ncomponents: [../deploy/monitor, ../deploy/metrics-auth, ../deploy/egress]\n",
    )?)?;
    let monitor = find(&made, "ServiceMonitor", "innkeeper").context("no ServiceMonitor")?;
    let token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    assert_eq!(monitor["spec"]["endpoints"][0]["bearerTokenFile"], token);
    let host = find(&made, "Deployment", "innkeeper").context("no Deployment")?;
    let arguments = host["spec"]["template"]["spec"]["containers"][0]["args"].as_array();
    assert!(arguments.is_some_and(|all| all.contains(&json!("--metrics-auth"))), "{host}");
    assert!(find(&made, "ClusterRole", "innkeeper-metrics-reader").is_some());
    let egress = find(&made, "NetworkPolicy", "innkeeper-egress").context("no egress policy")?;
    assert_eq!(egress["spec"]["policyTypes"], json!(["Egress"]));
    Ok(())
}

fn component_adds_what_policies_need(folder: &Path) -> Result<()> {
    let kustomization = "resources: [../deploy]\ncomponents: [../deploy/policies]\n";
    let made = objects(&customised(folder, "reviewing", kustomization)?)?;
    let host = find(&made, "Deployment", "innkeeper").context("no Deployment")?;
    let container = &host["spec"]["template"]["spec"]["containers"][0];
    let ports = container["ports"].as_array().context("no ports")?;
    assert!(ports.iter().any(|one| one["name"] == "admission" && one["containerPort"] == 8443));
    let arguments = container["args"].as_array().context("no arguments")?;
    assert!(arguments.iter().any(|one| one == "--admission-bind=0.0.0.0:8443"));
    let service = find(&made, "Service", "innkeeper-admission").context("no Service")?;
    assert_eq!(service["spec"]["ports"][0]["targetPort"], "admission");
    for kind in ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] {
        assert!(find(&made, kind, "innkeeper-policies").is_some(), "{kind}");
    }
    Ok(())
}

/// Without the components the port is closed to the cluster, and the host asks nobody of others'
/// rights.
fn plain_manifests_close_the_port_of_metrics(deploy: &Path) -> Result<()> {
    let plain = objects(&kustomize(deploy)?)?;
    let policy = find(&plain, "NetworkPolicy", "innkeeper").context("no NetworkPolicy")?;
    let host = find(&plain, "Deployment", "innkeeper").context("no Deployment")?;
    let labels = &host["spec"]["template"]["metadata"]["labels"];
    let selected = &policy["spec"]["podSelector"]["matchLabels"];
    for (name, value) in selected.as_object().into_iter().flatten() {
        assert_eq!(labels[name], *value, "the policy does not select the host");
    }
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress"]));
    let from = &policy["spec"]["ingress"][0]["from"];
    assert_eq!(
        *from,
        json!([{"namespaceSelector": {"matchLabels": {"innkeeper.dev/scrape-metrics": "true"}}}])
    );
    assert!(find(&plain, "ClusterRole", "innkeeper-metrics-auth").is_none());
    Ok(())
}

fn guests_become_modules_and_config_maps(deploy: &Path) -> Result<()> {
    let components = deploy.join("guests/components");
    fs::create_dir_all(&components)?;
    let guests = ["imo", "kabocha", "kuri", "maintpage", "podroute", "postgres"];
    for guest in guests {
        fs::write(components.join(format!("{guest}.wasm")), b"\0asm\xff")?;
    }
    let objects = objects(&kustomize(&deploy.join("guests"))?)?;
    for guest in guests {
        let module =
            find(&objects, "Module", guest).with_context(|| format!("no Module {guest}"))?;
        assert_eq!(module["spec"]["source"]["configMap"]["name"], guest);
        let config_map =
            find(&objects, "ConfigMap", guest).with_context(|| format!("no ConfigMap {guest}"))?;
        assert_eq!(config_map["metadata"]["namespace"], "innkeeper-modules");
        assert!(config_map["binaryData"]["guest.wasm"].is_string(), "{config_map}");
    }
    Ok(())
}

/// Waits until the host answers /metrics with this status to a client with this token.
async fn shows(host: &Host, token: Option<&str>, status: u16, text: &str) -> Result<()> {
    eventually(&format!("/metrics answers {status} {text:?}"), SOON, async || {
        let (code, body) = host.http_with("/metrics", token).await?;
        let fits = code == status && body.contains(text);
        Ok(if fits { Ok(()) } else { Err(format!("{code} {body}")) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_shown_to_accounts_with_the_right_only() -> Result<()> {
    let stage = Stage::new().await?;
    for name in ["reader", "other"] {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": MODULES}});
        stage.admin.apply(&account.to_string()).await?;
    }
    let reader = stage.admin.token((MODULES, "reader"), &[]).await?;
    let other = stage.admin.token((MODULES, "other"), &[]).await?;
    let elsewhere = stage.admin.token((MODULES, "reader"), &["elsewhere"]).await?;
    let options = HostOptions {
        flags: vec!["--metrics-auth".to_owned()],
        ..HostOptions::new(stage.kubeconfig())
    };
    let host = Host::start(&options)?;
    eventually("/healthz answers", SOON, async || {
        Ok(host.http("/healthz").await.map(drop).map_err(|error| format!("{error:#}")))
    })
    .await?;

    // The host's account may not ask yet: nobody is let in.
    shows(&host, Some(&reader), 503, "the API server did not review the token").await?;
    stage.admin.apply(include_str!("../../../deploy/metrics-auth/cluster-role.yaml")).await?;
    // Nor is an account without the role, or anybody by a token that was made for others.
    shows(&host, Some(&reader), 403, "system:serviceaccount:innkeeper-modules:reader").await?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "innkeeper-metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": MODULES}]});
    stage.admin.apply(&binding.to_string()).await?;
    shows(&host, Some(&reader), 200, "innkeeper_leader_election_master_status").await?;
    shows(&host, Some(&other), 403, "system:serviceaccount:innkeeper-modules:other").await?;
    shows(&host, Some(&elsewhere), 401, "does not accept the token").await?;
    shows(&host, Some("invented"), 401, "does not accept the token").await?;
    shows(&host, None, 401, "has no token").await?;
    assert_eq!(host.http("/healthz").await?.0, 200);

    // The token is nowhere in the log.
    let log = host.log().join("\n");
    for token in [&reader, &other] {
        assert!(!log.contains(token.rsplit('.').next().unwrap()), "a token is in the log");
    }
    Ok(())
}
