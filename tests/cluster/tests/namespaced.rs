//! Modules with Roles only, and a namespaced host: Roles suffice for all that they do, and an
//! administrator installs the definitions.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use innkeeper_cluster_tests::stage::{MODULES, SOON, component_path, output, root, says};
use innkeeper_cluster_tests::{
    Admin, AuditEvent, AuditFilter, ControlPlane, Host, HostOptions, Kind, Options, Stage,
    eventually,
};
use innkeeper_controlplane::Programs;
use serde::Deserialize as _;
use serde_json::{Value, json};

const STACK: Kind = Kind::new("example.innkeeper.dev/v1", "Stack");
const CLUSTER_ROLE_BINDING: Kind = Kind::new("rbac.authorization.k8s.io/v1", "ClusterRoleBinding");
const FINALIZER: &str = "innkeeper.dev/stack";

/// For this time nothing may be refused or written once all is done.
const QUIET: Duration = Duration::from_secs(10);

/// The namespace of the host in `deploy/namespaced`.
const OWN: &str = "innkeeper";

/// The most requests of the host and its modules that the API server may refuse in a test: three
/// reads of definitions, and four lists of one kind.
const REFUSED_MAX: usize = 12;

fn objects(yaml: &str) -> Result<Vec<Value>> {
    Ok(serde_yaml_ng::Deserializer::from_str(yaml)
        .map(Value::deserialize)
        .collect::<Result<_, _>>()?)
}

fn stack(namespace: &str, name: &str) -> String {
    json!({"apiVersion": STACK.api_version, "kind": STACK.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"layers": 2, "stuck": false}})
    .to_string()
}

fn has_finalizer(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
}

/// Prints the Roles of the guest `stack`, and checks that there is nothing else.
async fn roles(flags: &[&str]) -> Result<String> {
    let guest = component_path("stack")?;
    let printed = output(&[&["rbac", &*guest.to_string_lossy()], flags].concat()).await?;
    for object in objects(&printed)? {
        let kind = object["kind"].as_str().unwrap_or_default();
        assert!(["ServiceAccount", "Role", "RoleBinding"].contains(&kind), "{printed}");
    }
    Ok(printed)
}

/// Installs the definitions of the guest `stack`, as an administrator.
async fn install_definitions(admin: &Admin) -> Result<()> {
    let guest = component_path("stack")?;
    let definitions = output(&["inspect", &guest.to_string_lossy(), "--crds"]).await?;
    for crd in admin.apply(&definitions).await? {
        admin.until_established(&crd).await?;
    }
    Ok(())
}

/// No ClusterRoleBinding names an account of this namespace and name.
async fn has_no_cluster_role(admin: &Admin, namespace: &str, name: &str) -> Result<()> {
    for binding in admin.list(CLUSTER_ROLE_BINDING, "").await? {
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        for subject in subjects {
            let is_account = subject["name"] == name && subject["namespace"] == namespace;
            assert!(!is_account, "{binding}");
        }
    }
    Ok(())
}

/// Creates a stack, has its drift repaired, and deletes it; one elsewhere stays untouched.
async fn stack_is_created_repaired_and_deleted(
    admin: &Admin,
    mine: &str,
    elsewhere: &str,
) -> Result<()> {
    admin.apply(&stack(elsewhere, "app")).await?;
    admin.apply(&stack(mine, "app")).await?;
    let at = (STACK, mine, "app");
    let is_synced = |one: &Value| says(one, "Synced", "True", "Applied") && has_finalizer(one);
    admin.until("the stack is synced", SOON, at, is_synced).await?;

    let layer = (Kind::CONFIG_MAP, mine, "app-0");
    let before = admin.must_get(layer.0, layer.1, layer.2).await?;
    admin.delete(layer.0, layer.1, layer.2).await?;
    let is_repaired = |one: &Value| {
        one["data"] == before["data"] && one["metadata"]["uid"] != before["metadata"]["uid"]
    };
    admin.until("the layer is there again", SOON, layer, is_repaired).await?;

    admin.delete(STACK, mine, "app").await?;
    admin.until_gone(SOON, at).await?;
    assert!(admin.get(layer.0, layer.1, layer.2).await?.is_none(), "the guest deletes its layers");
    let untouched = admin.must_get(STACK, elsewhere, "app").await?;
    assert!(untouched["status"].is_null() && !has_finalizer(&untouched), "{untouched}");
    assert!(admin.get(Kind::CONFIG_MAP, elsewhere, "app-0").await?.is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn module_with_roles_only_reconciles_repairs_and_is_torn_down() -> Result<()> {
    let stage = Stage::new().await?;
    let admin = &stage.admin;
    let (mine, elsewhere) = (admin.namespace("mine").await?, admin.namespace("else").await?);
    admin.apply(&roles(&["-n", &mine]).await?).await?;
    let spec = json!({"allowedCRDGroups": ["example.innkeeper.dev"], "namespaces": [mine]});
    stage.module_without_rights("stack", "stack", &spec).await?;
    let host = stage.host().await?;
    let refused = stage.module_says("stack", "Ready", "False", "CRDForbidden").await?;
    assert!(refused.contains("innkeeper inspect GUEST.wasm --crds"), "{refused}");

    install_definitions(admin).await?;
    stage.ready("stack").await?;
    stage.module_says("stack", "Authorized", "True", "Granted").await?;
    has_no_cluster_role(admin, MODULES, "stack").await?;
    let (mark, lines) = (stage.plane.audit()?.mark()?, host.log().len());
    stack_is_created_repaired_and_deleted(admin, &mine, &elsewhere).await?;

    // A deleted Module removes its finalizer, and its objects stay.
    admin.apply(&stack(&mine, "last")).await?;
    stage.synced((STACK, &mine, "last")).await?;
    stage.quiet(QUIET).await?;
    admin.delete(Kind::MODULE, "", "stack").await?;
    admin.until_gone(SOON, (Kind::MODULE, "", "stack")).await?;
    let left = admin.must_get(STACK, &mine, "last").await?;
    assert!(!has_finalizer(&left), "{left}");
    assert!(admin.get(Kind::CONFIG_MAP, &mine, "last-0").await?.is_some());

    let account =
        AuditFilter::new().impersonated(&format!("system:serviceaccount:{MODULES}:stack"));
    let sent = stage.plane.audit()?.since(mark, &account)?;
    assert!(!sent.is_empty());
    let is_at_home = |one: &&AuditEvent| one.namespace == mine || one.namespace.is_empty();
    assert_eq!(sent.iter().find(|one| !is_at_home(one)).map(|one| &one.uri), None);
    let refused: Vec<String> = refusals(&sent);
    assert_eq!(refused, [""; 0]);
    let log = host.log();
    let complaints: Vec<&String> = log[lines..].iter().filter(|one| one.contains("WARN")).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    Ok(())
}

/// The requests that the API server refused.
fn refusals(events: &[AuditEvent]) -> Vec<String> {
    let refused = events.iter().filter(|one| one.code == 403);
    refused.map(|one| format!("{} {} {:?}", one.verb, one.uri, one.impersonated)).collect()
}

/// What `kubectl kustomize` makes of `deploy/namespaced`.
fn manifests() -> Result<String> {
    let mut kubectl = Programs::find(&mut |_| ())?.command("kubectl")?;
    let output = kubectl.arg("kustomize").arg(root().join("deploy/namespaced")).output()?;
    if !output.status.success() {
        bail!("kubectl kustomize: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// A volume of ConfigMaps, as the kubelet mounts it: the files are links into a folder that one
/// rename replaces.
struct Volume {
    folder: tempfile::TempDir,
    version: u32,
}

impl Volume {
    fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, version: 0 })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn mount(&mut self, files: &BTreeMap<&str, Vec<u8>>) -> Result<()> {
        self.version += 1;
        let version = format!("..version-{}", self.version);
        fs::create_dir(self.path().join(&version))?;
        for (name, bytes) in files {
            fs::write(self.path().join(&version).join(name), bytes)?;
        }
        symlink(&version, self.path().join("..data_tmp"))?;
        fs::rename(self.path().join("..data_tmp"), self.path().join("..data"))?;
        for entry in fs::read_dir(self.path())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.starts_with("..") && !files.contains_key(&*name) {
                fs::remove_file(self.path().join(name))?;
            }
        }
        for name in files.keys() {
            let link = self.path().join(name);
            if fs::symlink_metadata(&link).is_err() {
                symlink(Path::new("..data").join(name), link)?;
            }
        }
        Ok(())
    }
}

fn module(name: &str) -> Vec<u8> {
    let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": name},
        "spec": {"source": {"file": format!("{name}.wasm")}, "serviceAccountName": name}});
    module.to_string().into_bytes()
}

/// The arguments of the host's container, without those that a Pod's files need.
fn arguments(deployment: &Value) -> Result<Vec<String>> {
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].as_array();
    let of_pod = ["--bind", "--cache-dir", "--modules"];
    let arguments = arguments.context("the container has no arguments")?.iter().skip(1);
    let arguments = arguments.filter_map(Value::as_str).map(str::to_owned);
    Ok(arguments.filter(|one| !of_pod.iter().any(|name| one.starts_with(name))).collect())
}

/// An API server with what an administrator applies for a host in [`OWN`].
struct Cluster {
    plane: ControlPlane,
    admin: Admin,
    manifests: Vec<Value>,
}

impl Cluster {
    async fn start() -> Result<Self> {
        let options = Options { controller_manager: true, ..Options::default() };
        let plane = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await??;
        let admin = Admin::of(&plane).await?;
        for name in [OWN, "team-a", "team-b", "elsewhere"] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            admin.apply(&namespace.to_string()).await?;
        }
        let printed = manifests()?;
        admin.apply(&printed).await?;
        install_definitions(&admin).await?;
        let flags = ["-n", "team-a", "-n", "team-b", "--account-namespace", OWN];
        admin.apply(&roles(&flags).await?).await?;
        Ok(Self { plane, admin, manifests: objects(&printed)? })
    }

    /// Starts the host as its Deployment says, with the identity of one of its Pods.
    async fn host(&self, volume: &Volume, folder: &Path) -> Result<Host> {
        let kubeconfig = folder.join("host.kubeconfig");
        let server = self.plane.anonymous_kubeconfig()?;
        self.admin.account_kubeconfig(server, (OWN, "innkeeper"), &kubeconfig).await?;
        let pod = eventually("there is a pod of the host", SOON, async || {
            let pods = self.admin.list(Kind::POD, OWN).await?;
            Ok(pods.into_iter().next().ok_or_else(|| "none".to_owned()))
        })
        .await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let deployment = self.manifests.iter().find(|one| one["kind"] == "Deployment");
        let options = HostOptions {
            modules: Some(volume.path().to_owned()),
            pod: Some(text(&pod["metadata"]["name"])),
            flags: arguments(deployment.context("no Deployment")?)?,
            environment: vec![
                ("POD_NAMESPACE".to_owned(), OWN.to_owned()),
                ("POD_UID".to_owned(), text(&pod["metadata"]["uid"])),
                ("INNKEEPER_CACHE_DIR".to_owned(), folder.join("code").display().to_string()),
            ],
            ..HostOptions::new(&kubeconfig)
        };
        let mut host = Host::start(&options)?;
        host.ready(SOON).await?;
        Ok(host)
    }

    /// Waits until no request of the host was refused for a time.
    async fn until_no_request_is_refused(&self) -> Result<()> {
        let mut since = (Instant::now(), self.plane.audit()?.mark()?);
        eventually("no request is refused for a time", SOON, async || {
            let refused = refusals(&self.sent(since.1)?);
            if !refused.is_empty() {
                since = (Instant::now(), self.plane.audit()?.mark()?);
            }
            Ok(if since.0.elapsed() > QUIET { Ok(()) } else { Err(format!("{refused:#?}")) })
        })
        .await
    }

    /// All requests of the host since a mark, also those as its modules.
    fn sent(&self, mark: u64) -> Result<Vec<AuditEvent>> {
        let host = format!("system:serviceaccount:{OWN}:innkeeper");
        Ok(self.plane.audit()?.since(mark, &AuditFilter::new().user(&host))?)
    }
}

#[test]
fn manifests_of_a_namespaced_host_are_all_in_its_namespace() -> Result<()> {
    let all = objects(&manifests()?)?;
    assert!(all.iter().any(|one| one["kind"] == "Role"), "{all:#?}");
    for object in &all {
        assert_eq!(object["metadata"]["namespace"], OWN, "{object}");
        if object["kind"] == "RoleBinding" {
            assert_eq!(object["subjects"][0]["namespace"], OWN, "{object}");
        }
    }
    Ok(())
}

/// The component of a guest.
fn component(name: &str) -> Result<Vec<u8>> {
    Ok(fs::read(component_path(name)?)?)
}

/// An Event about the Pod says what became of a module that a user adds to the folder.
async fn event_about_the_pod_names_the_module(
    admin: &Admin,
    volume: &mut Volume,
    files: &mut BTreeMap<&str, Vec<u8>>,
) -> Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "labels", "namespace": OWN}});
    admin.apply(&account.to_string()).await?;
    files.extend([("labels.yaml", module("labels")), ("labels.wasm", component("labels")?)]);
    volume.mount(files)?;
    let events = Kind::new("events.k8s.io/v1", "Event");
    eventually("an Event about the Pod names the module", SOON, async || {
        let notes = admin.list(events, OWN).await?;
        let is_reported = |one: &Value| {
            one["regarding"]["kind"] == "Pod"
                && one["reason"] == "InvalidParameters"
                && one["note"].as_str().is_some_and(|note| note.starts_with("module labels: "))
        };
        Ok(if notes.iter().any(is_reported) { Ok(()) } else { Err(format!("{notes:#?}")) })
    })
    .await
}

/// The condition of a guest with a cluster-scoped kind names the kind and the remedy.
async fn cluster_scoped_kind_is_refused_with_the_remedy(
    host: &Host,
    volume: &mut Volume,
    files: &mut BTreeMap<&str, Vec<u8>>,
) -> Result<()> {
    let mut labels: Value = serde_json::from_slice(&module("labels"))?;
    labels["spec"]["parameters"] = json!({"labels": {"team": "a"}});
    files.insert("labels.yaml", labels.to_string().into_bytes());
    volume.mount(files)?;
    host.logged("Namespace is cluster-scoped, so it takes a ClusterRole", SOON).await?;
    Ok(())
}

/// A Module that a user takes out of the folder takes its finalizer along.
async fn finalizer_is_removed_with_the_module(
    admin: &Admin,
    volume: &mut Volume,
    files: &mut BTreeMap<&str, Vec<u8>>,
) -> Result<()> {
    admin.apply(&stack("team-a", "last")).await?;
    let at = (STACK, "team-a", "last");
    let is_synced = |one: &Value| says(one, "Synced", "True", "Applied") && has_finalizer(one);
    admin.until("the stack is synced", SOON, at, is_synced).await?;
    files.remove("stack.yaml");
    volume.mount(files)?;
    admin.until("the finalizer is gone", SOON, at, |one| !has_finalizer(one)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn host_with_roles_only_reconciles_its_namespaces_and_asks_for_nothing_else() -> Result<()> {
    // Given a host with Roles in three namespaces, and the module of a folder.
    let cluster = Cluster::start().await?;
    let admin = &cluster.admin;
    has_no_cluster_role(admin, OWN, "innkeeper").await?;
    let mut volume = Volume::new()?;
    let mut files =
        BTreeMap::from([("stack.yaml", module("stack")), ("stack.wasm", component("stack")?)]);
    volume.mount(&files)?;
    let folder = tempfile::tempdir()?;
    let host = cluster.host(&volume, folder.path()).await?;
    host.leads(SOON).await?;
    assert!(admin.get(Kind::LEASE, OWN, "innkeeper").await?.is_some());

    // When users work in these namespaces, then it does everything there.
    for team in ["team-a", "team-b"] {
        stack_is_created_repaired_and_deleted(admin, team, "elsewhere").await?;
    }
    event_about_the_pod_names_the_module(admin, &mut volume, &mut files).await?;
    cluster_scoped_kind_is_refused_with_the_remedy(&host, &mut volume, &mut files).await?;
    finalizer_is_removed_with_the_module(admin, &mut volume, &mut files).await?;

    // And it asks for nothing else: what may be in a status is published, although it may not read
    // the definition.
    let log = host.log();
    assert!(!log.iter().any(|line| line.contains("statuses are sent whole")), "{log:#?}");
    let sent = cluster.sent(0)?;
    let refused = refusals(&sent);
    assert!(refused.len() <= REFUSED_MAX, "{refused:#?}");
    let elsewhere =
        sent.iter().find(|one| ![OWN, "team-a", "team-b", ""].contains(&&*one.namespace));
    assert_eq!(elsewhere.map(|one| &one.uri), None);
    cluster.until_no_request_is_refused().await
}

#[tokio::test(flavor = "multi_thread")]
async fn host_with_roles_only_takes_no_module_of_another_namespace() -> Result<()> {
    let cluster = Cluster::start().await?;
    let mut volume = Volume::new()?;
    let mut reaching: Value = serde_json::from_slice(&module("stack"))?;
    reaching["spec"]["namespaces"] = json!(["elsewhere"]);
    volume.mount(&BTreeMap::from([
        ("stack.yaml", reaching.to_string().into_bytes()),
        ("stack.wasm", component("stack")?),
    ]))?;
    let folder = tempfile::tempdir()?;
    let host = cluster.host(&volume, folder.path()).await?;
    let words = "the host does not reconcile in elsewhere: it runs with --namespaces team-a,team-b";
    host.logged(words, SOON).await?;
    let sent = cluster.sent(0)?;
    assert!(!sent.iter().any(|one| one.impersonated.is_some()), "{sent:#?}");
    Ok(())
}
