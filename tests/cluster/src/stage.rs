//! Everything that a test of the host begins with: a control plane of its own, the host's rights,
//! modules.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use innkeeper_controlplane::{ControlPlane, Kubeconfig, Options};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

pub use crate::host::{operator_program, program, root};
use crate::{Admin, AuditFilter, Host, HostOptions, Kind, condition, eventually};

/// Bound on what should happen within moments; generous, since machines are slow and busy.
pub const SOON: Duration = Duration::from_mins(3);

/// Bound on what a host does to hundreds or thousands of objects.
pub const MANY: Duration = Duration::from_mins(10);

/// The host's user, as the audit log names it.
pub const HOST: &str = "system:serviceaccount:innkeeper-system:innkeeper";

/// The namespace of the modules' accounts and components.
pub const MODULES: &str = "innkeeper-modules";

/// The largest component that fits into one ConfigMap, in bytes.
const CONFIG_MAP_BYTES: usize = 1 << 20;

/// A control plane with the host's CRD and rights.
pub struct Stage {
    /// A client with all rights.
    pub admin: Admin,
    /// The control plane.
    pub plane: ControlPlane,
    kubeconfig: PathBuf,
    _folder: TempDir,
}

impl Stage {
    /// A stage with a control plane of its own: no other test sees what runs on it.
    ///
    /// # Errors
    /// If the control plane does not start, or Innkeeper cannot be installed on it.
    pub async fn new() -> Result<Self> {
        Self::with(Options { controller_manager: true, ..Options::default() }).await
    }

    /// A stage with a control plane of these options.
    ///
    /// # Errors
    /// If the control plane does not start, or Innkeeper cannot be installed on it.
    pub async fn with(options: Options) -> Result<Self> {
        Self::on(tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await??).await
    }

    /// A stage on a control plane that runs.
    ///
    /// # Errors
    /// If Innkeeper cannot be installed on it.
    pub async fn on(plane: ControlPlane) -> Result<Self> {
        Admin::of(&plane).await?.install().await?;
        Self::installed(plane).await
    }

    /// A stage on a control plane where Innkeeper is installed already.
    ///
    /// # Errors
    /// If the host's ServiceAccount gets no token.
    pub async fn installed(plane: ControlPlane) -> Result<Self> {
        let admin = Admin::of(&plane).await?;
        let folder = tempfile::Builder::new().prefix("innkeeper-stage-").tempdir()?;
        let kubeconfig = folder.path().join("host.kubeconfig");
        let server = match plane.anonymous_kubeconfig() {
            Ok(server) => server,
            Err(_) => server_of(plane.kubeconfig())?,
        };
        admin.account_kubeconfig(server, ("innkeeper-system", "innkeeper"), &kubeconfig).await?;
        Ok(Self { admin, plane, kubeconfig, _folder: folder })
    }

    /// The kubeconfig of the host's ServiceAccount.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Starts the host as its ServiceAccount, and waits until it is ready. It shares compiled code
    /// with the hosts of other tests.
    ///
    /// # Errors
    /// If the host does not get ready: with the end of its log.
    pub async fn host(&self) -> Result<Host> {
        ready(&self.host_options(&self.kubeconfig).await?).await
    }

    /// The same with the program that images contain, for benchmarks.
    ///
    /// # Errors
    /// As of [`Self::host`].
    pub async fn host_of_image(&self) -> Result<Host> {
        let options = self.host_options(&self.kubeconfig).await?;
        let program = Some(operator_program()?);
        ready(&HostOptions { program, hides_log: true, ..options }).await
    }

    /// The options of a host that shares compiled code with the hosts of other tests.
    ///
    /// # Errors
    /// If the Secret with the host's keys cannot be read or written.
    pub async fn host_options(&self, kubeconfig: &Path) -> Result<HostOptions> {
        let mut options = HostOptions::new(kubeconfig);
        if self.has_common_key().await? {
            let folder = program()?.with_file_name("test-code").display().to_string();
            for (name, value) in [("INNKEEPER_CACHE_DIR", &*folder), ("INNKEEPER_CACHE_MIB", "200")]
            {
                options.environment.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(options)
    }

    /// Starts a host that compiles all that it runs, and waits until it is ready.
    ///
    /// # Errors
    /// If the host does not get ready: with the end of its log.
    pub async fn compiling_host(&self) -> Result<Host> {
        ready(&HostOptions::new(&self.kubeconfig)).await
    }

    /// Sees to it that hosts seal code with the key that all tests have; not so if one has made
    /// another here.
    async fn has_common_key(&self) -> Result<bool> {
        let at = (Kind::SECRET, "innkeeper-system", "innkeeper-digest-key");
        let key = base64::engine::general_purpose::STANDARD.encode([7; 32]);
        if let Some(found) = self.admin.get(at.0, at.1, at.2).await? {
            return Ok(found["data"]["key"] == *key);
        }
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": at.2, "namespace": at.1}, "immutable": true, "data": {"key": key}});
        self.admin.apply(&secret.to_string()).await?;
        Ok(true)
    }

    /// Makes a module of a component, with the rights that `innkeeper rbac` prints for it.
    /// `spec` adds to the Module's spec.
    ///
    /// # Errors
    /// If the component is not built, or the API server refuses an object.
    pub async fn module(&self, name: &str, component: &str, spec: &Value) -> Result<()> {
        let path = component_path(component)?;
        let rights = output(&["rbac", &path.to_string_lossy(), "--module", name]).await?;
        self.admin.apply(&rights).await?;
        self.module_without_rights(name, component, spec).await
    }

    /// Makes a module of a component, whose account has no rights.
    ///
    /// # Errors
    /// If the component is not built, or the API server refuses an object.
    pub async fn module_without_rights(
        &self,
        name: &str,
        component: &str,
        spec: &Value,
    ) -> Result<()> {
        let bytes = read(component)?;
        if bytes.len() <= CONFIG_MAP_BYTES {
            return self.module_of_bytes(name, &bytes, spec).await;
        }
        self.declare(name, spec).await?;
        self.push_as_author(name, component).await
    }

    /// Makes a module of a component that is given as bytes, plain or gzip. Its account has no
    /// rights.
    ///
    /// # Errors
    /// If the API server refuses an object.
    pub async fn module_of_bytes(&self, name: &str, bytes: &[u8], spec: &Value) -> Result<()> {
        self.push_bytes(name, bytes).await?;
        self.declare(name, spec).await
    }

    /// Makes the account of a module and the Module, whose source is the ConfigMap of its name.
    async fn declare(&self, name: &str, spec: &Value) -> Result<()> {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": MODULES,
                "annotations": {"innkeeper.dev/allowed-modules": name}}});
        self.admin.apply(&account.to_string()).await?;
        let mut whole =
            json!({"source": {"configMap": {"name": name}}, "serviceAccountName": name});
        for (member, value) in spec.as_object().into_iter().flatten() {
            whole[member] = value.clone();
        }
        let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": name}, "spec": whole});
        self.admin.apply(&module.to_string()).await?;
        Ok(())
    }

    /// Pushes a component with `innkeeper push`, in parts if it needs them.
    ///
    /// # Errors
    /// If the component is not built, or `innkeeper push` fails.
    pub async fn push_as_author(&self, module: &str, component: &str) -> Result<()> {
        let path = component_path(component)?;
        let arguments = ["push", &path.to_string_lossy(), "--module", module];
        output_with(self.plane.kubeconfig(), &arguments).await?;
        Ok(())
    }

    /// Puts a component into the module's ConfigMap, in place.
    ///
    /// # Errors
    /// If the component is not built, or the API server refuses the ConfigMap.
    pub async fn push(&self, module: &str, component: &str) -> Result<()> {
        self.push_bytes(module, &read(component)?).await
    }

    /// Puts bytes into the module's ConfigMap, in place.
    ///
    /// # Errors
    /// If the API server refuses the ConfigMap.
    pub async fn push_bytes(&self, module: &str, bytes: &[u8]) -> Result<()> {
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": module, "namespace": MODULES}, "binaryData": {"guest.wasm": text}});
        self.admin.apply(&config_map.to_string()).await?;
        Ok(())
    }

    /// Waits until the component of the module's source is active.
    ///
    /// # Errors
    /// What the Module reports after the time.
    pub async fn ready(&self, module: &str) -> Result<Value> {
        self.ready_within(module, SOON).await
    }

    /// The same with another bound.
    pub(crate) async fn ready_within(&self, module: &str, bound: Duration) -> Result<Value> {
        let what = format!("module {module} is ready");
        self.admin
            .until(&what, bound, (Kind::MODULE, "", module), |object| {
                let observed = &object["status"]["observedGeneration"];
                *observed == object["metadata"]["generation"]
                    && condition(object, "Ready") == Some("True")
            })
            .await
    }

    /// Waits until a module's condition has this status and reason.
    ///
    /// # Errors
    /// What the Module reports after the time.
    pub async fn module_says(
        &self,
        module: &str,
        type_: &str,
        status: &str,
        reason: &str,
    ) -> Result<String> {
        let what = format!("module {module} says {type_}={status} {reason}");
        let object = self
            .admin
            .until(&what, SOON, (Kind::MODULE, "", module), |object| {
                says(object, type_, status, reason)
            })
            .await?;
        Ok(message(&object, type_).to_owned())
    }

    /// Waits until so many objects of a kind are in a namespace, and the host has applied for
    /// all of them what their specs want now.
    ///
    /// # Errors
    /// How many are synced after the time, and what another one reports.
    pub async fn all_synced(&self, kind: Kind, namespace: &str, count: usize) -> Result<()> {
        eventually("all are synced", MANY, async || {
            let all = self.admin.list(kind, namespace).await?;
            let synced = all.iter().filter(|one| is_synced(one)).count();
            let other = all.iter().find(|one| !is_synced(one));
            Ok(if synced == count {
                Ok(())
            } else {
                let text = other.map(|one| message(one, "Synced")).unwrap_or_default();
                Err(format!("{synced} of {count}; another says: {text}"))
            })
        })
        .await
    }

    /// Waits until the host has applied for an object what its spec wants now.
    ///
    /// # Errors
    /// What the object reports after the time.
    pub async fn synced(&self, at: (Kind, &str, &str)) -> Result<Value> {
        self.admin.until(&format!("{} {} is synced", at.0, at.2), SOON, at, is_synced).await
    }

    /// Waits until the host has not written for a time, as the audit log tells.
    ///
    /// # Errors
    /// If the host still writes after the time, or the audit log cannot be read.
    pub async fn quiet(&self, time: Duration) -> Result<()> {
        let audit = self.plane.audit()?;
        let filter = AuditFilter::new().writes().not_resource("leases").user(HOST);
        let mut since = (Instant::now(), audit.mark()?);
        eventually("the host is quiet", MANY, async || {
            if !audit.since(since.1, &filter)?.is_empty() {
                since = (Instant::now(), audit.mark()?);
            }
            Ok(if since.0.elapsed() > time { Ok(()) } else { Err("it writes".to_owned()) })
        })
        .await
    }

    /// Waits until an object's condition has this status and reason; gives its message.
    ///
    /// # Errors
    /// What the object reports after the time.
    pub async fn says(
        &self,
        at: (Kind, &str, &str),
        (type_, status, reason): (&str, &str, &str),
    ) -> Result<String> {
        let what = format!("{} {} says {type_}={status} {reason}", at.0, at.2);
        let object =
            self.admin.until(&what, SOON, at, |object| says(object, type_, status, reason)).await?;
        Ok(message(&object, type_).to_owned())
    }
}

/// The API server of a kubeconfig, without its user.
fn server_of(kubeconfig: &Path) -> Result<Kubeconfig> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let document: Value = serde_yaml_ng::from_str(&text)
        .with_context(|| format!("reading the kubeconfig {}", kubeconfig.display()))?;
    let cluster = &document["clusters"][0]["cluster"];
    let url = cluster["server"].as_str().context("the kubeconfig has no server")?;
    let authority = cluster["certificate-authority-data"].as_str().map(|text| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text)?;
        anyhow::Ok(String::from_utf8(bytes)?)
    });
    Ok(Kubeconfig::new(url, authority.transpose()?.as_deref()))
}

async fn ready(options: &HostOptions) -> Result<Host> {
    let mut host = Host::start(options)?;
    host.ready(SOON).await?;
    Ok(host)
}

/// Whether the host has applied what the object's spec wants now.
fn is_synced(object: &Value) -> bool {
    says(object, "Synced", "True", "Applied")
        && object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

/// Whether a condition of an object has this status and reason.
pub fn says(object: &Value, type_: &str, status: &str, reason: &str) -> bool {
    find(object, type_).is_some_and(|one| one["status"] == status && one["reason"] == reason)
}

/// The message of a condition; empty if there is none.
pub fn message<'a>(object: &'a Value, type_: &str) -> &'a str {
    find(object, type_).and_then(|one| one["message"].as_str()).unwrap_or_default()
}

fn find<'a>(object: &'a Value, type_: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == type_)
}

/// The path of a built component.
///
/// # Errors
/// If it is not built.
pub fn component_path(name: &str) -> Result<PathBuf> {
    let path = root().join("guests/target/components").join(format!("{name}.wasm"));
    if !path.exists() {
        bail!("the component {} is not there: run `cargo xtask guests` first", path.display());
    }
    Ok(path)
}

fn read(component: &str) -> Result<Vec<u8>> {
    let path = component_path(component)?;
    std::fs::read(&path).with_context(|| format!("reading {}", path.display()))
}

/// How long a command of a test may run.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(3);

/// What a command prints.
///
/// # Errors
/// The command and its output, if it fails or does not end.
pub(crate) async fn prints(command: std::process::Command) -> Result<String> {
    let line = format!("{command:?}");
    let mut command = Command::from(command);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(COMMAND_TIMEOUT, output)
        .await
        .with_context(|| format!("{line} does not end"))?
        .with_context(|| format!("running {line}"))?;
    if !output.status.success() {
        let stdout = String::from_utf8_lossy(&output.stdout);
        bail!("{line}: {}{stdout}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs `innkeeper` with these arguments; gives what it prints.
///
/// # Errors
/// If the program fails: with what it printed.
pub async fn output(arguments: &[&str]) -> Result<String> {
    output_with(Path::new(""), arguments).await
}

/// Runs `innkeeper` against the API server of a kubeconfig; gives what it prints.
///
/// # Errors
/// If the program fails: with what it printed.
pub async fn output_with(kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
    let program = program()?;
    let output = Command::new(&program)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .output()
        .await
        .with_context(|| format!("running {}", program.display()))?;
    if !output.status.success() {
        bail!("innkeeper {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
