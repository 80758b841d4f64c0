//! A simulated cluster with the operator and one module, `scripts`, whose guest follows a script.

use std::time::Duration;

use innkeeper_cluster::{Cluster, Env, SecretDigestKey, Settings};
use innkeeper_lab::{Api, Content, Guests, Lab, Modules};
use innkeeper_operator::ReplicaPolicies;
use innkeeper_simulator::{Controllers, Simulator};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::proxy::{Proxy, Sent};
use super::script::{GROUP, Script};
use super::stage_objects::{
    MODULE, NAMESPACE, component, definition, in_namespace, namespace, rights, rule,
};

/// The path of the Module.
const MODULE_PATH: &str = "/apis/innkeeper.dev/v1alpha1/modules/scripts";
/// The path of the role of its account.
const ROLE_PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/scripts";
/// The user that a request of the module impersonates.
const ACCOUNT: &str = "system:serviceaccount:innkeeper-modules:scripts";
/// Why a policy is not ready although its revision is active.
const REVIEWED_BY_NOBODY: [&str; 2] = ["PolicyNotActive", "NoReplicaReviews"];
/// How long the tests wait for anything, in virtual time.
const LIMIT: Duration = Duration::from_mins(3);

/// What a stage begins with.
pub(crate) struct Setup {
    component: Vec<u8>,
    spec: Value,
    rules: Vec<Value>,
    objects: Vec<Value>,
}

impl Setup {
    /// A module with this guest, whose account has the rights that the guest needs for primaries
    /// and ConfigMaps.
    #[expect(clippy::needless_pass_by_value, reason = "callers build the script in place")]
    pub(crate) fn new(script: Script) -> Self {
        Self::of_component(script.component())
    }

    /// A module with this component.
    pub(crate) fn of_component(component: Vec<u8>) -> Self {
        Self { component, spec: json!({}), rules: Vec::new(), objects: Vec::new() }
    }

    /// With these fields in the Module's spec.
    pub(crate) fn spec(mut self, spec: Value) -> Self {
        self.spec = spec;
        self
    }

    /// With a further right of the module's account.
    pub(crate) fn may(mut self, verbs: &[&str], group: &str, resource: &str) -> Self {
        self.rules.push(rule(group, resource, verbs));
        self
    }

    /// With an object that is there before the Module.
    pub(crate) fn object(mut self, object: Value) -> Self {
        self.objects.push(object);
        self
    }

    /// Starts the operator and waits until the module serves.
    pub(crate) async fn start(self) -> Stage {
        let mut setup = innkeeper_lab::Setup::new(7);
        setup.modules = Modules::OfCluster;
        setup.objects = vec![
            innkeeper_modules::crd(),
            definition("Script", "scripts"),
            namespace(NAMESPACE),
            namespace("innkeeper-system"),
        ];
        setup.objects.extend(self.objects.into_iter().map(in_namespace));
        setup.objects.extend(rights(&self.rules));
        let mut spec = self.spec;
        spec["source"] = json!({"configMap": {"name": MODULE}});
        spec["serviceAccountName"] = json!(MODULE);
        setup.objects.push(component(&self.component));
        setup.objects.push(json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": MODULE}, "spec": spec}));
        let simulator = Simulator::with(setup.seed, setup.start, Controllers::all());
        let proxy = Proxy::new(simulator.clone());
        let now = simulator.now();
        let lab = start(simulator, &proxy, setup, now).await;
        let stage = Stage { lab, proxy };
        stage.until_decided().await;
        stage.settle().await;
        stage.writes();
        stage
    }
}

/// Starts an operator whose clock shows `now`.
async fn start(
    simulator: Simulator,
    proxy: &Proxy,
    setup: innkeeper_lab::Setup,
    now: Timestamp,
) -> Lab {
    let env = Env::scripted(setup.seed, now);
    let cluster =
        Cluster::over(proxy.clone(), env, Settings::default(), SecretDigestKey::new(b"simulated"));
    Lab::over(simulator, cluster, &Guests::new().unwrap(), setup).await.unwrap()
}

/// A simulated cluster with the operator on it.
pub(crate) struct Stage {
    lab: Lab,
    proxy: Proxy,
}

impl Stage {
    /// A stage with this guest and nothing special.
    pub(crate) async fn start(script: Script) -> Self {
        Setup::new(script).start().await
    }

    /// Ends the operator; the cluster stays.
    pub(crate) async fn stop(self) -> Stopped {
        let simulator = self.simulator().clone();
        assert!(self.lab.end().await, "the operator did not end");
        Stopped { simulator, proxy: self.proxy }
    }

    /// Starts a second operator on the same cluster, which runs at the same time as this one.
    pub(crate) async fn second(&self) -> Self {
        let stopped = Stopped {
            simulator: self.simulator().clone(),
            proxy: Proxy::new(self.simulator().clone()),
        };
        stopped.start().await
    }

    /// The API of the cluster.
    pub(crate) fn api(&self) -> &Api {
        self.lab.api()
    }

    /// The cluster.
    pub(crate) fn simulator(&self) -> &Simulator {
        self.lab.simulator()
    }

    /// The policies of the operator's process.
    pub(crate) fn policies(&self) -> &ReplicaPolicies {
        self.lab.policies()
    }

    /// The proxy between operator and cluster.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// The requests by which the module has written since the last call, as in
    /// `apply configmaps/a`.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.sent_writes().iter().map(Sent::line).collect()
    }

    /// The same requests whole.
    pub(crate) fn sent_writes(&self) -> Vec<Sent> {
        let mut sent = self.proxy.take();
        sent.retain(|one| one.user == ACCOUNT && one.is_write());
        sent
    }

    /// The reads and writes of single objects in the namespace of the primaries, by the module
    /// since the last call.
    pub(crate) fn requests_for_objects(&self) -> Vec<String> {
        let sent = self.proxy.take();
        let is_one = |line: &String| line.contains('/') && !line.contains("/events");
        let sent = sent.iter().filter(|one| {
            one.user == ACCOUNT && one.path.contains(&format!("/namespaces/{NAMESPACE}/"))
        });
        sent.map(Sent::line).filter(is_one).collect()
    }

    /// How many runs of the guest ended with an outcome.
    pub(crate) fn runs(&self) -> u64 {
        self.metric("innkeeper_guest_call_duration_seconds_count", "")
    }

    /// How many runs of the guest failed for this reason.
    pub(crate) fn failures(&self, reason: &str) -> u64 {
        self.metric("innkeeper_guest_failures_total", &format!(",reason=\"{reason}\""))
    }

    /// How many objects of update groups are not updated, as the metrics say.
    pub(crate) fn outdated_objects(&self) -> u64 {
        self.metric("innkeeper_outdated_objects", "")
    }

    /// The bytes that the caches take for the objects of a resource.
    pub(crate) fn cached_bytes(&self, resource: &str) -> u64 {
        self.value(&format!("innkeeper_cache_bytes{{resource=\"{resource}\"}} "))
    }

    fn metric(&self, name: &str, further_labels: &str) -> u64 {
        self.value(&format!("{name}{{module=\"{MODULE}\"{further_labels}}} "))
    }

    fn value(&self, line: &str) -> u64 {
        let metrics = self.lab.running().operator().metrics();
        metrics.lines().find_map(|text| text.strip_prefix(line)?.parse().ok()).unwrap_or(0)
    }

    /// The reason of a condition of the Module as this host itself reports it, whatever the Module
    /// has of an earlier one.
    pub(crate) fn reported_reason(&self, type_: &str) -> String {
        let modules = self.lab.running().operator().modules();
        let conditions = modules.iter().flat_map(|module| &module.conditions);
        let reasons: Vec<&str> =
            conditions.filter(|one| one.type_ == type_).map(|one| &*one.reason).collect();
        reasons.join(", ")
    }

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        self.lab.pass(Duration::from_secs(seconds)).await;
    }

    /// Lets virtual time pass until nothing is written any more.
    pub(crate) async fn settle(&self) {
        self.lab.settle(LIMIT).await.unwrap();
    }

    /// Applies an object as an administrator.
    pub(crate) async fn apply(&self, object: &Value) {
        self.api().apply(object, NAMESPACE).await.unwrap();
    }

    /// Gives the Module another guest, and waits until it is loaded and decided about.
    pub(crate) async fn push(&self, script: &Script) {
        self.push_component(&script.component()).await;
    }

    /// The same with a component.
    pub(crate) async fn push_component(&self, bytes: &[u8]) {
        self.apply(&component(bytes)).await;
        self.pass(20).await;
    }

    /// Creates a primary with this spec.
    pub(crate) async fn create(&self, name: &str, spec: &Value) {
        let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Script",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
        self.apply(&object).await;
    }

    /// Replaces the spec of a primary.
    pub(crate) async fn set_spec(&self, name: &str, spec: &Value) {
        let mut object = self.primary(name).await;
        object["spec"] = spec.clone();
        self.api().send("PUT", &primary_path(name), Content::Json, &object).await.unwrap();
    }

    /// Lays a merge patch over a primary, as an administrator.
    pub(crate) async fn merge(&self, name: &str, change: &Value) {
        self.merge_at(&primary_path(name), change).await;
    }

    /// Lays a merge patch over the object at a path, as an administrator.
    pub(crate) async fn merge_at(&self, path: &str, change: &Value) {
        self.api().send("PATCH", path, Content::MergePatch, change).await.unwrap();
    }

    /// Sets an annotation of a primary.
    pub(crate) async fn annotate(&self, name: &str, annotation: &str, value: &Value) {
        self.merge(name, &json!({"metadata": {"annotations": {annotation: value}}})).await;
    }

    /// Deletes a primary.
    pub(crate) async fn delete(&self, name: &str) {
        self.api().delete(&primary_path(name)).await.unwrap();
    }

    /// A primary that is there.
    pub(crate) async fn primary(&self, name: &str) -> Value {
        self.get(&primary_path(name)).await.unwrap()
    }

    /// Whether a primary is there.
    pub(crate) async fn has_primary(&self, name: &str) -> bool {
        self.get(&primary_path(name)).await.is_some()
    }

    /// A ConfigMap in the namespace of the primaries, if it is there.
    pub(crate) async fn config_map(&self, name: &str) -> Option<Value> {
        self.get(&config_map_path(name)).await
    }

    /// The object at a path, if it is there.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        self.api().get(path).await.unwrap()
    }

    /// Reason and message of all Events about a primary, each as often as it was counted.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/events");
        let events = self.api().list(&path).await.unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let about = events.iter().filter(|event| event["involvedObject"]["name"] == name);
        about.map(|event| (text(&event["reason"]), text(&event["message"]))).collect()
    }

    /// Waits until a condition of a primary has this status and reason; gives its message.
    pub(crate) async fn until_primary(
        &self,
        name: &str,
        type_: &str,
        status: &str,
        reason: &str,
    ) -> String {
        self.until_condition(&primary_path(name), type_, status, reason).await
    }

    /// The Module, if it is there.
    pub(crate) async fn find_module(&self) -> Option<Value> {
        self.get(MODULE_PATH).await
    }

    /// The message of the Event about the Module that has this reason.
    pub(crate) async fn module_event(&self, reason: &str) -> String {
        let events = self.api().list("/api/v1/events").await.unwrap();
        let about = events.iter().filter(|event| event["involvedObject"]["kind"] == "Module");
        let reasons: Vec<&Value> = about.clone().map(|event| &event["reason"]).collect();
        let found = about.clone().find(|event| event["reason"] == reason);
        let found = found.unwrap_or_else(|| panic!("no Event {reason}, but {reasons:?}"));
        found["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The Module.
    pub(crate) async fn module(&self) -> Value {
        self.get(MODULE_PATH).await.unwrap()
    }

    /// Waits until a condition of the Module has this status and reason; gives its message.
    pub(crate) async fn until_module(&self, type_: &str, status: &str, reason: &str) -> String {
        self.until_condition(MODULE_PATH, type_, status, reason).await
    }

    /// Waits until the revision of the source is active with the present spec. Of a policy a
    /// replica need not review with it.
    pub(crate) async fn until_decided(&self) {
        let decided = |module: &Value| {
            condition(module, "Ready").is_some_and(|ready| {
                let reason = ready["reason"].as_str().unwrap_or_default();
                ready["status"] == "True" || REVIEWED_BY_NOBODY.contains(&reason)
            })
        };
        let holds = async |api: &Api| Ok(decided(&api.get(MODULE_PATH).await?.unwrap_or_default()));
        if let Err(error) = self.lab.until("the revision is decided", LIMIT, holds).await {
            panic!("{error}; the Module's status is {:#}", self.module().await["status"]);
        }
    }

    /// Lays a merge patch over the Module, as an administrator.
    pub(crate) async fn merge_module(&self, change: &Value) {
        self.merge_at(MODULE_PATH, change).await;
    }

    /// Gives the module's account a further right.
    pub(crate) async fn grant(&self, verbs: &[&str], group: &str, resource: &str) {
        let mut role = self.get(ROLE_PATH).await.unwrap();
        role["rules"].as_array_mut().unwrap().push(rule(group, resource, verbs));
        self.api().send("PUT", ROLE_PATH, Content::Json, &role).await.unwrap();
    }

    /// Takes a verb on a resource from the module's account.
    pub(crate) async fn revoke(&self, verb: &str, resource: &str) {
        let mut role = self.get(ROLE_PATH).await.unwrap();
        for rule in role["rules"].as_array_mut().unwrap() {
            if rule["resources"] == json!([resource]) {
                rule["verbs"].as_array_mut().unwrap().retain(|one| one != verb);
            }
        }
        self.api().send("PUT", ROLE_PATH, Content::Json, &role).await.unwrap();
    }

    /// Deletes the Module.
    pub(crate) async fn delete_module(&self) {
        self.api().delete(MODULE_PATH).await.unwrap();
    }

    /// Waits until the Module is gone.
    pub(crate) async fn until_module_gone(&self) {
        self.until_gone(MODULE_PATH).await;
    }

    /// Waits until the object at a path is gone.
    pub(crate) async fn until_gone(&self, path: &str) {
        let gone = async |api: &Api| Ok(api.get(path).await?.is_none());
        if let Err(error) = self.lab.until(&format!("{path} is gone"), LIMIT, gone).await {
            panic!("{error}; it is {:#}", self.get(path).await.unwrap_or_default());
        }
    }

    async fn until_condition(&self, path: &str, type_: &str, status: &str, reason: &str) -> String {
        let what = format!("{path} has the condition {type_}={status} {reason}");
        let holds = async |api: &Api| {
            let object = api.get(path).await?.unwrap_or_default();
            let found = condition(&object, type_);
            Ok(found.is_some_and(|one| one["status"] == status && one["reason"] == reason))
        };
        let waited = self.lab.until(&what, LIMIT, holds).await;
        let object = self.get(path).await.unwrap_or_default();
        if let Err(error) = waited {
            let module = self.module().await["status"]["conditions"].clone();
            panic!(
                "{error}; its status is {:#}; the Module's conditions are {module}",
                object["status"]
            );
        }
        condition(&object, type_).unwrap()["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// A cluster whose operator has ended.
pub(crate) struct Stopped {
    simulator: Simulator,
    proxy: Proxy,
}

impl Stopped {
    /// Lets virtual time pass for the cluster.
    pub(crate) fn pass(&self, seconds: u32) {
        self.simulator.advance(SignedDuration::from_secs(seconds.into()));
    }

    /// The API of the cluster.
    pub(crate) fn api(&self) -> Api {
        Api::simulated(self.simulator.clone())
    }

    /// The proxy between operator and cluster.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Deletes the Module.
    pub(crate) async fn delete_module(&self) {
        self.api().delete(MODULE_PATH).await.unwrap();
    }

    /// Lays a merge patch over the object at a path, as an administrator.
    pub(crate) async fn merge_at(&self, path: &str, change: &Value) {
        self.api().send("PATCH", path, Content::MergePatch, change).await.unwrap();
    }

    /// Starts another operator on the same cluster.
    pub(crate) async fn start(self) -> Stage {
        self.start_with_clock(SignedDuration::ZERO).await
    }

    /// The same, with a clock that is so far ahead of the API server's.
    pub(crate) async fn start_with_clock(self, ahead: SignedDuration) -> Stage {
        let Self { simulator, proxy } = self;
        let mut setup = innkeeper_lab::Setup::new(8);
        setup.modules = Modules::OfCluster;
        let now = simulator.now().checked_add(ahead).unwrap();
        let lab = start(simulator, &proxy, setup, now).await;
        Stage { lab, proxy }
    }
}

/// A condition of an object, if it has one of this type.
pub(crate) fn condition<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == type_)
}

/// The path of a primary.
pub(crate) fn primary_path(name: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/scripts/{name}")
}

/// The path of a ConfigMap in the namespace of the primaries.
pub(crate) fn config_map_path(name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")
}
