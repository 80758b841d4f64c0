//! A simulated cluster on which a test installs hostile guests and reads what the host did.
//!
//! [`Arena::start`] starts the real operator on the simulator; [`Arena::install`] installs one
//! [`Attack`]: a Module with a ServiceAccount, rights, a namespace and a primary of its own.
//! Everything runs on one thread and in virtual time.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]
#![allow(clippy::panic, reason = "helpers of tests panic like tests")]
#![allow(clippy::missing_panics_doc, reason = "a step that fails, fails the test")]

pub mod policy_arena;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use innkeeper_lab::{Content, Guests, Lab, Modules, Setup};
use innkeeper_simulator::Simulator;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

/// The namespace of Modules' ServiceAccounts and components.
pub const MODULES: &str = "innkeeper-modules";
/// The group of the primaries of all attacks.
pub const GROUP: &str = "hostile.example.dev";
/// The API group of roles.
pub const RBAC: &str = "rbac.authorization.k8s.io";
/// How much virtual time the host has to answer an attack.
pub const SOON: Duration = Duration::from_mins(2);

/// Runs a test on one thread and virtual time.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    innkeeper_lab::block_on(future).unwrap()
}

/// One hostile module: its Module, ServiceAccount, rights, namespace and primary.
#[derive(Clone, Debug)]
pub struct Attack {
    name: String,
    component: Vec<u8>,
    spec: Value,
    rules: Vec<Value>,
    has_all_rights: bool,
}

impl Attack {
    /// An attack of this name by this guest. Its account has the rights that a guest needs which
    /// reads its primaries and owns ConfigMaps in the namespace `attack-NAME`.
    pub fn new(name: &str, guest: &Tiny) -> Self {
        Self::of_component(name, guest.component())
    }

    /// The same with a component of any bytes.
    pub fn of_component(name: &str, component: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            component,
            spec: json!({}),
            rules: Vec::new(),
            has_all_rights: false,
        }
    }

    /// With these fields in its Module's spec.
    #[must_use]
    pub fn spec(mut self, spec: Value) -> Self {
        self.spec = spec;
        self
    }

    /// With a further right in its namespace.
    #[must_use]
    pub fn may(mut self, verbs: &[&str], group: &str, resource: &str) -> Self {
        self.rules.push(json!({"apiGroups": [group], "resources": [resource], "verbs": verbs}));
        self
    }

    /// With an account that may do everything in the whole cluster.
    #[must_use]
    pub fn has_all_rights(mut self) -> Self {
        self.has_all_rights = true;
        self
    }

    /// The namespace of its primary.
    pub fn home(&self) -> String {
        format!("attack-{}", self.name)
    }

    /// Namespace, account, rights, component, Module and primary, in this order.
    pub fn objects(&self) -> Vec<Value> {
        let (name, home) = (&self.name, self.home());
        let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
        let mut rules = vec![
            rule(GROUP, "hostiles", &["get", "list", "watch"]),
            rule(GROUP, "hostiles/status", &["patch"]),
            rule(GROUP, "hostiles/finalizers", &["update"]),
            rule("events.k8s.io", "events", &["create", "patch"]),
            rule("", "configmaps", &["get", "list", "watch", "create", "patch", "delete"]),
        ];
        rules.extend(self.rules.iter().cloned());
        let meta = json!({"name": format!("guest-{name}"), "namespace": home});
        let subjects = json!([{"kind": "ServiceAccount", "name": name, "namespace": MODULES}]);
        let mut spec = self.spec.clone();
        for (member, value) in [
            ("source", json!({"configMap": {"name": name}})),
            ("serviceAccountName", json!(name)),
            ("namespaces", json!([home])),
        ] {
            if spec.get(member).is_none() {
                spec[member] = value;
            }
        }
        let mut all = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": MODULES,
                    "annotations": {"innkeeper.dev/allowed-modules": name}}}),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": meta, "rules": rules}),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": meta,
                "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": format!("guest-{name}")},
                "subjects": subjects}),
        ];
        if self.has_all_rights {
            all.push(json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("everything-{name}")},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": subjects}));
        }
        all.extend([
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": MODULES},
                "binaryData": {"guest.wasm": BASE64.encode(&self.component)}}),
            json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
                "metadata": {"name": name}, "spec": spec}),
            json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile",
                "metadata": {"name": name, "namespace": home}}),
        ]);
        all
    }
}

/// A simulated cluster with the real operator on it.
pub struct Arena {
    lab: Lab,
}

impl Arena {
    /// A cluster with the CustomResourceDefinitions `modules.innkeeper.dev` and
    /// `hostiles.hostile.example.dev`, with these further objects, and with no Module.
    pub async fn start(objects: &[Value]) -> Self {
        let mut setup = Setup::new(7);
        setup.keep_log = true;
        setup.modules = Modules::OfCluster;
        setup.objects = vec![innkeeper_modules::crd(), definition()];
        setup.objects.extend(objects.iter().cloned());
        let lab = Lab::start(&Guests::new().unwrap(), setup).await.unwrap();
        lab.pass(Duration::from_secs(5)).await;
        Self { lab }
    }

    /// Ends the operator and starts another one on the same cluster.
    pub async fn restart(self) -> Self {
        Self::on(self.end().await).await
    }

    /// Starts an operator on a cluster whose operator has ended.
    pub async fn on(simulator: Simulator) -> Self {
        let mut setup = Setup::new(8);
        setup.modules = Modules::OfCluster;
        let lab = Lab::on(simulator, &Guests::new().unwrap(), setup).await.unwrap();
        lab.pass(Duration::from_secs(5)).await;
        Self { lab }
    }

    /// The simulated cluster and the operator.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Applies an object as an administrator.
    pub async fn apply(&self, object: &Value) {
        self.lab.api().apply(object, "default").await.unwrap();
    }

    /// Installs a hostile module with everything that belongs to it.
    pub async fn install(&self, attack: &Attack) {
        for object in attack.objects() {
            self.apply(&object).await;
        }
    }

    /// Deletes the Module of an attack, its component and its namespace with all that is in it.
    pub async fn uninstall(&self, attack: &Attack) {
        let api = self.lab.api();
        let name = &attack.name;
        for path in [
            format!("/apis/innkeeper.dev/v1alpha1/modules/{name}"),
            format!("/api/v1/namespaces/{MODULES}/configmaps/{name}"),
            format!("/api/v1/namespaces/{}", attack.home()),
        ] {
            api.delete(&path).await.unwrap();
        }
    }

    /// Stops the operator; the simulated cluster stays.
    pub async fn end(self) -> Simulator {
        let simulator = self.lab.simulator().clone();
        assert!(self.lab.end().await, "the operator ends on request");
        simulator
    }

    /// The object at a path, if it is there.
    pub async fn get(&self, path: &str) -> Option<Value> {
        self.lab.api().get(path).await.unwrap()
    }

    /// Lays a merge patch over the object at a path, as an administrator.
    pub async fn merge(&self, path: &str, change: &Value) {
        self.lab.api().send("PATCH", path, Content::MergePatch, change).await.unwrap();
    }

    /// The Module of an attack.
    pub async fn module(&self, name: &str) -> Value {
        self.get(&format!("/apis/innkeeper.dev/v1alpha1/modules/{name}")).await.unwrap()
    }

    /// The primary of an attack.
    pub async fn primary(&self, name: &str) -> Value {
        let path = format!("/apis/{GROUP}/v1/namespaces/attack-{name}/hostiles/{name}");
        self.get(&path).await.unwrap()
    }

    /// Waits until a condition of a Module has this status and reason; gives its message.
    pub async fn module_says(&self, name: &str, type_: &str, status: &str, reason: &str) -> String {
        let path = format!("/apis/innkeeper.dev/v1alpha1/modules/{name}");
        self.says(&path, type_, status, reason).await
    }

    /// Waits until a condition of an attack's primary has this status and reason; gives its
    /// message.
    pub async fn primary_says(
        &self,
        name: &str,
        type_: &str,
        status: &str,
        reason: &str,
    ) -> String {
        let path = format!("/apis/{GROUP}/v1/namespaces/attack-{name}/hostiles/{name}");
        self.says(&path, type_, status, reason).await
    }

    async fn says(&self, path: &str, type_: &str, status: &str, reason: &str) -> String {
        let what = format!("{path} says {type_}={status} {reason}");
        let waited = self
            .lab
            .until(&what, SOON, async |api| {
                let object = api.get(path).await?.unwrap_or_default();
                let found = condition(&object, type_);
                Ok(found.is_some_and(|one| one["status"] == status && one["reason"] == reason))
            })
            .await;
        let object = self.get(path).await.unwrap_or_default();
        if let Err(error) = waited {
            let modules =
                self.lab.api().list("/apis/innkeeper.dev/v1alpha1/modules").await.unwrap();
            let modules: Vec<String> = modules.iter().map(describe).collect();
            panic!("{error}; it is {:#}; {}", object["status"], modules.join("; "));
        }
        condition(&object, type_).unwrap()["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Lets virtual time pass.
    pub async fn pass(&self, seconds: u64) {
        self.lab.pass(Duration::from_secs(seconds)).await;
    }

    /// Counts the reconciles of a module that succeeded since the host started.
    pub fn reconciles(&self, module: &str) -> usize {
        let line = format!(
            "controller_runtime_reconcile_total{{controller=\"{module}\",module=\"{module}\",result=\"success\"}} "
        );
        let metrics = self.lab().running().operator().metrics();
        metrics.lines().find_map(|text| text.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
    }

    /// All requests, answers and events so far, one line each, as the simulator logged them.
    pub fn log(&self) -> Vec<String> {
        self.lab.simulator().log()
    }
}

/// The conditions of a Module that are not as they should be, in one line.
fn describe(module: &Value) -> String {
    let conditions = module["status"]["conditions"].as_array().into_iter().flatten();
    let bad = conditions
        .filter(|one| one["status"] != "True" && one["type"] != "Held" && one["type"] != "Blocked");
    let bad: Vec<String> = bad.map(Value::to_string).collect();
    format!("Module {}: {}", module["metadata"]["name"], bad.join(", "))
}

/// A condition of an object, if it has one of this type.
pub fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == type_)
}

/// The kind of all attacks' primaries; its spec and status take anything.
pub fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut status = any.clone();
    status["properties"]["conditions"] = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"type": {"type": "string"}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("hostiles.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Hostile", "plural": "hostiles"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": status}}}}]}})
}

/// The manifest of an attack's guest: its primary, ConfigMaps as an owned kind, and these further
/// owned kinds.
pub fn manifest(owned: &[Value]) -> Value {
    let config_maps = json!({"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps", "scope": "Namespaced"});
    let owned: Vec<Value> =
        [config_maps].iter().chain(owned).map(|kind| json!({ "kind": kind })).collect();
    json!({"name": "hostile", "version": "1.0.0",
        "primary": {"apiVersion": format!("{GROUP}/v1"), "kind": "Hostile", "plural": "hostiles", "scope": "Namespaced"},
        "owned": owned})
}

/// A guest with this manifest that answers `complete` with this document.
pub fn guest(manifest: &Value, desired: &Value) -> Tiny {
    Tiny::default().manifest(&manifest.to_string()).outcome(0, &desired.to_string())
}
