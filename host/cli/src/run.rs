//! `innkeeper run`: runs the operator.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{
    Backoff, Cluster, Env, Fence, HostKeyError, Kube, LeaseConfig, SecretDigestKey, host_key, lease,
};
use innkeeper_core::host_objects::is_namespace_of;
use innkeeper_core::names::is_label;
use innkeeper_operator::operator::WORKERS_DEFAULT;
use innkeeper_operator::{
    Bounds, Execution, HostNamespaces, HostPod, ModulesLocation, ReplicaPolicies,
};
use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache, Engine, GUESTS_DEFAULT, forbid_tracing,
};
use tokio::sync::{Notify, watch};

use crate::admission::{Admission, AdmissionArguments, Health};
use crate::compiler::compile;
use crate::kube::KubeArguments;
use crate::lead::{self, Shutdown};
use crate::logs::{self, LogFormat};
use crate::metrics_access::{ApiReviewer, Guard};
use crate::operators::{Connections, LeaseClaim, Operators};
use crate::renamed;
use crate::serve;

/// The first wait before the host retries a request; doubles up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(500);

/// The longest wait before the host retries a request.
const RETRY_MAX: Duration = Duration::from_secs(15);

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// The name of the key that seals compiled code, derived from the host's key.
const CODE_CACHE: &str = "code cache";

/// Arguments of `innkeeper run`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) kube: KubeArguments,
    /// Take Modules from this folder instead of from the cluster, and watch it: for development,
    /// or with --namespaces in a Pod.
    #[arg(long, value_name = "DIR")]
    modules: Option<PathBuf>,
    /// Namespaces of all primaries, separated by commas: for a namespaced host. It asks for no
    /// cluster-wide rights, takes the Modules from --modules, acts as ServiceAccounts in its
    /// own namespace (--namespace), and keeps its Lease there.
    #[arg(
        long,
        value_name = "NAMESPACES",
        value_delimiter = ',',
        requires = "modules",
        env = "INNKEEPER_NAMESPACES"
    )]
    namespaces: Vec<String>,
    /// Address on which to serve /healthz, /readyz and /metrics.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", env = "INNKEEPER_BIND")]
    bind: SocketAddr,
    /// Serve /metrics only to clients with a bearer token whose user may get the path /metrics. The
    /// host creates a TokenReview and a SubjectAccessReview, for which it needs the rights.
    #[arg(long, env = "INNKEEPER_METRICS_AUTH")]
    metrics_auth: bool,
    /// Audience that the token must have [default: that of the API server].
    #[arg(
        long,
        value_name = "AUDIENCE",
        requires = "metrics_auth",
        env = "INNKEEPER_METRICS_AUDIENCE"
    )]
    metrics_audience: Option<String>,
    #[command(flatten)]
    admission: AdmissionArguments,
    /// Namespace of the host itself.
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = innkeeper_core::host_objects::HOST_NAMESPACE,
        env = "POD_NAMESPACE"
    )]
    namespace: String,
    /// Name of the Lease for leader election, in the host's namespace. Not used with --modules
    /// without --namespaces.
    #[arg(long, value_name = "NAME", default_value = "innkeeper", env = "INNKEEPER_LEASE")]
    lease: String,
    /// Time without a renewal of the Lease after which a standby takes over, such as 15s.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "15s",
        value_parser = lease_duration,
        env = "INNKEEPER_LEASE_DURATION"
    )]
    lease_duration: Duration,
    /// Reconcile only while this host holds the Lease. Use --leader-elect=false only where no other
    /// host can run.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        action = clap::ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    leader_elect: bool,
    /// Maximum number of primaries that the host reconciles at the same time.
    #[arg(long, value_name = "NUMBER", default_value_t = WORKERS_DEFAULT, value_parser = at_least_one)]
    max_concurrent_reconciles: usize,
    /// Maximum number of guest calls at the same time [default: the number of cores, at least 2].
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    max_concurrent_guest_calls: Option<usize>,
    /// Number of threads for requests, watches and guest calls of less than 5 ms; longer guest
    /// calls have threads of their own [default: one for every four cores, at least one].
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    threads: Option<usize>,
    /// Run guests also for changes of fields that they do not read. For a guest that reports fewer
    /// fields than it reads.
    #[arg(long)]
    wake_for_every_field: bool,
    /// Number of guests whose memory stays warm between calls. More guests take turns.
    #[arg(long, value_name = "NUMBER", default_value_t = GUESTS_DEFAULT)]
    guest_pool_size: u32,
    /// Folder in which to keep compiled guests, so that a restart compiles nothing. The host
    /// creates it, for this user alone [default: keep nothing].
    #[arg(long, value_name = "DIR", env = "INNKEEPER_CACHE_DIR")]
    cache_dir: Option<PathBuf>,
    /// Maximum size of that folder in MiB. The host removes the least recently used guests first.
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = CACHE_BYTES_DEFAULT / MIB,
        value_parser = clap::value_parser!(u64).range(1..=u64::MAX / MIB),
        env = "INNKEEPER_CACHE_MIB"
    )]
    cache_mib: u64,
    /// Format of the log lines.
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "auto")]
    log_format: LogFormat,
    /// Log level (error, warn, info, debug or trace), also per part of the host, such as
    /// `info,innkeeper_operator=debug`.
    #[arg(long, default_value = "info", env = "RUST_LOG", value_name = "FILTER")]
    log_filter: String,
}

/// Parses the duration of the Lease, such as `15s`.
fn lease_duration(text: &str) -> Result<Duration, String> {
    const MAX: Duration = Duration::from_mins(10);
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    let duration = parsed.ok().and_then(|duration| Duration::try_from(duration).ok());
    match duration {
        Some(duration) if (lease::DURATION_MIN..=MAX).contains(&duration) => Ok(duration),
        Some(_) => {
            Err(format!("must be from {} s to {} s", lease::DURATION_MIN.as_secs(), MAX.as_secs()))
        }
        None => Err("a duration has a unit, such as 15s".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

/// One thread for every four cores: with more of them, each message between tasks wakes another
/// thread, which costs more than it gains while the API server is slower than one thread.
fn threads_default() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 4).max(1))
}

/// Runs the host until a signal.
///
/// # Errors
/// If a flag cannot be used, the connection to the API server is misconfigured, or the operator
/// fails.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    renamed::check_environment()?;
    logs::start(arguments.log_format, &arguments.log_filter)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads.unwrap_or_else(threads_default))
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(operate(arguments));
    // Without waiting for child processes that compile, or for blocked threads.
    runtime.shutdown_background();
    result
}

async fn operate(arguments: &Arguments) -> anyhow::Result<()> {
    let from = modules_location(arguments)?;
    let shutdown = shutdown_by_signals();
    let stop = &shutdown.stop;
    // Fails for an unusable folder before the host waits for the API server.
    let cache = arguments.cache_dir.as_deref().map(CacheFolder::open).transpose()?;
    let kube = Kube { instance: Some(instance()), ..arguments.kube.kube() };
    let connections = Connections { kube, env: Env::real() };
    let open = Fence::open(&connections.env);
    let cluster = connections.open(SecretDigestKey::new(&random()?), open.clone()).await?;
    let listener = serve::bind(arguments.bind).await?;
    let admission = Admission::bind(&arguments.admission, &from).await?;
    // The host serves its health also while it waits for the API server.
    let health = Health::default();
    let guard = metrics_guard(arguments, &cluster);
    let serving = tokio::spawn(serve::serve(listener, health.clone(), guard, stop.clone()));
    // A developer's host runs alone and may have no namespace.
    let key = if matches!(from, ModulesLocation::Directory(_)) {
        None
    } else {
        let key = read_host_key(&cluster, arguments, stop.clone()).await?;
        if key.is_none() {
            tracing::info!("host stopped");
            return Ok(());
        }
        key
    };
    let engine = engine(arguments, cache, key.as_ref())?;
    let policies = ReplicaPolicies::new(connections.env.clone(), &engine, Execution::Threads)?;
    let identity = identity()?;
    let settings = admission.as_ref().map(|admission| admission.settings().clone());
    let reviewing = match admission.zip(key.clone()) {
        None => None,
        Some((admission, key)) => {
            // A standby reviews too, so the fence of this connection is always open.
            let cluster = connections.open(key, open).await?;
            let replica = (&*identity, &policies);
            let (running, reviewing) = admission.start(cluster, engine.clone(), replica, stop);
            health.set_reviewing(reviewing);
            Some(running)
        }
    };
    let bounds = Bounds { workers: arguments.max_concurrent_reconciles };
    let operators = Operators {
        engine,
        from,
        bounds,
        policies,
        admission: settings,
        instance: instance(),
        wakes_for_every_field: arguments.wake_for_every_field,
    };
    log_start(arguments);
    match key {
        Some(key) if arguments.leader_elect => {
            let claim = LeaseClaim {
                namespace: &arguments.namespace,
                name: &arguments.lease,
                identity: &identity,
                terms: LeaseConfig { duration: arguments.lease_duration },
                secrets: SecretDigestKey::new(&random()?),
            };
            operators.elect(&connections, key, claim, &health.state, shutdown.clone()).await?;
        }
        alone => {
            let cluster = match alone {
                Some(key) => cluster.with_secret_key(key),
                None => cluster,
            };
            let (operator, never) = (operators.make(cluster)?, std::future::pending());
            lead::run(&operator, &health.state, shutdown.clone(), never).await?;
        }
    }
    if let Some(reviewing) = reviewing {
        reviewing.end(&shutdown.force).await?;
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    tracing::info!("host stopped");
    Ok(())
}

/// Asks the API server who may read the metrics; `None` if everybody may.
fn metrics_guard(arguments: &Arguments, cluster: &Cluster) -> Option<Guard<ApiReviewer>> {
    arguments.metrics_auth.then(|| {
        let (client, audience) = (cluster.host(), arguments.metrics_audience.clone());
        Guard::new(ApiReviewer { client, audience })
    })
}

/// Prevents another process of this user, such as a compiler that a component controls, from
/// tracing this process and from reading its memory.
fn protect_memory() {
    if let Err(error) = forbid_tracing() {
        tracing::warn!("memory not protected from other processes of the same user: {error}");
    }
}

fn log_start(arguments: &Arguments) {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        bind = %arguments.bind,
        max_concurrent_reconciles = arguments.max_concurrent_reconciles,
        "host started"
    );
    if !arguments.namespaces.is_empty() {
        tracing::info!(
            namespaces = %arguments.namespaces.join(","),
            "namespaced host: it shows no status of Modules, and does not watch CustomResourceDefinitions, which an administrator installs"
        );
    }
}

/// Where the Modules are.
///
/// # Errors
/// If a namespace is no valid name, or is the host's own.
fn modules_location(arguments: &Arguments) -> anyhow::Result<ModulesLocation> {
    let Some(folder) = arguments.modules.clone() else { return Ok(ModulesLocation::Cluster) };
    if arguments.namespaces.is_empty() {
        return Ok(ModulesLocation::Directory(folder));
    }
    for namespace in &arguments.namespaces {
        if !is_label(namespace) {
            bail!(
                "--namespaces: {namespace:?} is no valid name (lower-case letters, digits and '-'); separate namespaces by commas"
            );
        }
        if is_namespace_of(namespace, Some(&arguments.namespace)) {
            bail!(
                "--namespaces: {namespace} belongs to the host itself, and no module reconciles there; name other namespaces, or run the host in another one"
            );
        }
    }
    let pod = variable("POD_NAME").zip(variable("POD_UID"));
    Ok(ModulesLocation::Mounted(
        folder,
        HostNamespaces {
            own: arguments.namespace.clone(),
            primaries: arguments.namespaces.iter().cloned().collect(),
            pod: pod.map(|(name, uid)| HostPod { name, uid }),
        },
    ))
}

/// Stops the host at the first signal, and forces the end at the second one.
fn shutdown_by_signals() -> Shutdown {
    let (stopping, stop) = watch::channel(false);
    let force = Arc::new(Notify::new());
    tokio::spawn({
        let force = force.clone();
        async move {
            let signal = signalled().await;
            tracing::info!(signal, "host stopping: running reconciles finish, no new ones start");
            let _ = stopping.send(true);
            signalled().await;
            force.notify_one();
        }
    });
    Shutdown { stop, force }
}

/// The cache of compiled code in a folder, sealed with a key of its own.
fn code_cache(
    arguments: &Arguments,
    folder: CacheFolder,
    key: Option<&SecretDigestKey>,
) -> anyhow::Result<CodeCache> {
    let sealing = match key {
        // Not next to the code: access to the volume alone must not suffice to seal code.
        Some(key) => CacheKey::Given(key.derive(CODE_CACHE)),
        None => CacheKey::Kept,
    };
    Ok(CodeCache::open(folder, &sealing, arguments.cache_mib.saturating_mul(MIB))?)
}

/// Makes the engine, and protects the memory of the host as soon as the engine has read its page
/// map.
///
/// # Errors
/// If the code cache or the engine cannot be made.
fn engine(
    arguments: &Arguments,
    cache: Option<CacheFolder>,
    key: Option<&SecretDigestKey>,
) -> anyhow::Result<Engine> {
    let cache = cache.map(|folder| code_cache(arguments, folder, key)).transpose()?;
    let mut builder = Engine::builder().compile(compile()).guests(arguments.guest_pool_size);
    if let Some(calls) = arguments.max_concurrent_guest_calls {
        builder = builder.permits(calls);
    }
    if let Some(cache) = cache {
        builder = builder.cache(cache);
    }
    let engine = builder.build()?;
    protect_memory();
    Ok(engine)
}

/// Reads the host's key for the digests of Secrets. Waits for an API server that does not answer;
/// `None` if the host is to stop meanwhile.
async fn read_host_key(
    cluster: &Cluster,
    arguments: &Arguments,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<Option<SecretDigestKey>> {
    let fresh = random()?;
    let client = cluster.host();
    let mut backoff = Backoff::new(cluster.env(), RETRY_MIN, RETRY_MAX);
    let mut logged = None;
    loop {
        // A server that does not answer must not delay a stop.
        let read = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return Ok(None),
            read = host_key(&client, &arguments.namespace, &fresh) => read,
        };
        match read {
            Ok(key) => return Ok(Some(key)),
            Err(error @ HostKeyError::Malformed { .. }) => return Err(error.into()),
            Err(error) => {
                // Somebody may create the namespace or grant the right later: wait as well.
                let text = error.to_string();
                if logged.as_ref() != Some(&text) {
                    tracing::warn!("host key not read: {text}; trying again");
                    logged = Some(text);
                }
            }
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return Ok(None),
            () = cluster.env().sleep(backoff.advance()) => {}
        }
    }
}

fn random() -> anyhow::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("cannot read random bytes from the system: {error}"))?;
    Ok(bytes)
}

/// A variable of the environment that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The name of the pod, or of the machine.
fn instance() -> String {
    ["POD_NAME", "HOSTNAME"]
        .into_iter()
        .find_map(variable)
        .unwrap_or_else(|| "innkeeper".to_owned())
}

/// The unique name of this host as a holder of the Lease. A pod's name is unique, so that a
/// container that restarts in the pod does not wait for its own Lease.
fn identity() -> anyhow::Result<String> {
    if let Some(pod) = variable("POD_NAME") {
        return Ok(pod);
    }
    let [a, b, c, d, ..] = random()?;
    let suffix = u32::from_le_bytes([a, b, c, d]);
    Ok(format!("{}-{suffix:08x}", instance()))
}

/// Waits for Ctrl-C or for the SIGTERM of a kubelet; returns which one came.
async fn signalled() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return "interrupt";
    };
    tokio::select! {
        _ = terminate.recv() => "terminate",
        _ = tokio::signal::ctrl_c() => "interrupt",
    }
}
