//! `innkeeper run`: the operator.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use innkeeper_cluster::{
    Backoff, Cluster, Env, Fence, HostKeyError, Kube, LeaderElector, LeaseConfig, SecretKey,
    Settings, host_key, lease,
};
use innkeeper_operator::operator::WORKERS_DEFAULT;
use innkeeper_operator::{Bounds, Execution, ModulesLocation, Operator};
use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache, Engine, GUESTS_DEFAULT, forbid_tracing,
};
use tokio::sync::{Notify, watch};

use crate::component::compile;
use crate::kube::KubeArguments;
use crate::lead::{self, Shutdown};
use crate::logs::{self, LogFormat};
use crate::metrics_access::{ApiReviewer, Guard};
use crate::renamed;
use crate::serve::{self, SharedHostState};

/// The first wait before the API server is asked again; doubles up to [`RETRY_MOST`].
const RETRY_LEAST: Duration = Duration::from_millis(500);

/// The longest wait before the API server is asked again.
const RETRY_MOST: Duration = Duration::from_secs(15);

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;

/// What the host's key is used for, besides digests: sealing compiled code.
const CODE_CACHE: &str = "code cache";

/// Arguments of `innkeeper run`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) kube: KubeArguments,
    /// Take Modules from this folder instead of the cluster, and watch it: for development.
    #[arg(long, value_name = "DIR")]
    modules: Option<PathBuf>,
    /// Address of /healthz, /readyz and /metrics.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", env = "INNKEEPER_BIND")]
    bind: SocketAddr,
    /// Show /metrics only to a bearer token whose user may get the path /metrics, by the API
    /// server's TokenReview and SubjectAccessReview. The host needs the right to create both.
    #[arg(long, env = "INNKEEPER_METRICS_AUTH")]
    metrics_auth: bool,
    /// The audience for which such a token has to be made; the API server's own if left out.
    #[arg(
        long,
        value_name = "AUDIENCE",
        requires = "metrics_auth",
        env = "INNKEEPER_METRICS_AUDIENCE"
    )]
    metrics_audience: Option<String>,
    /// Namespace of the host itself.
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = innkeeper_core::host_objects::HOST_NAMESPACE,
        env = "POD_NAMESPACE"
    )]
    namespace: String,
    /// The Lease in that namespace, of whose candidates one works and the others stand by. Not with
    /// --modules.
    #[arg(long, value_name = "NAME", default_value = "innkeeper", env = "INNKEEPER_LEASE")]
    lease: String,
    /// A standby takes over when the leader has not renewed the Lease for this time, as in 15s.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "15s",
        value_parser = lease_duration,
        env = "INNKEEPER_LEASE_DURATION"
    )]
    lease_duration: Duration,
    /// Elect a leader by the Lease. With --leader-elect=false the host works at once: only where no
    /// other host can run.
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
    /// Maximum number of primaries that are reconciled at the same time.
    #[arg(long, default_value_t = WORKERS_DEFAULT, value_parser = at_least_one)]
    max_concurrent_reconciles: usize,
    /// Maximum number of guest calls at the same time; as many as cores if left out, at least 2.
    #[arg(long, value_parser = at_least_one)]
    max_concurrent_guest_calls: Option<usize>,
    /// Number of guest instances that stay in memory for the next calls.
    #[arg(long, default_value_t = GUESTS_DEFAULT)]
    guest_pool_size: u32,
    /// Keep compiled code in this folder, so that a restart compiles nothing; it is made if it
    /// is not there, for this user alone. If left out, nothing is kept.
    #[arg(long, value_name = "DIR", env = "INNKEEPER_CACHE_DIR")]
    cache_dir: Option<PathBuf>,
    /// The most that compiled code may take there, in MiB; what was unused for longest goes.
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = CACHE_BYTES_DEFAULT / MIB,
        value_parser = clap::value_parser!(u64).range(1..=u64::MAX / MIB),
        env = "INNKEEPER_CACHE_MIB"
    )]
    cache_mib: u64,
    /// How log lines look.
    #[arg(long, value_enum, default_value = "auto")]
    log_format: LogFormat,
    /// Which log lines: error, warn, info, debug or trace, also by part, as in
    /// `info,innkeeper_operator=debug`.
    #[arg(long, default_value = "info", env = "RUST_LOG", value_name = "FILTER")]
    log_filter: String,
}

/// Reads the duration of the Lease, as in `15s`.
fn lease_duration(text: &str) -> Result<Duration, String> {
    const MAX: Duration = Duration::from_mins(10);
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    let duration = parsed.ok().and_then(|duration| Duration::try_from(duration).ok());
    match duration {
        Some(duration) if (lease::DURATION_MIN..=MAX).contains(&duration) => Ok(duration),
        Some(_) => Err(format!("from {} s to {} s", lease::DURATION_MIN.as_secs(), MAX.as_secs())),
        None => Err("a duration has a unit, as in 15s".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    renamed::check_environment()?;
    logs::start(arguments.log_format, &arguments.log_filter)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the runtime does not start")?;
    let result = runtime.block_on(operate(arguments));
    // Compiling children and blocked threads are not waited for.
    runtime.shutdown_background();
    result
}

async fn operate(arguments: &Arguments) -> anyhow::Result<()> {
    let (stopping, stop) = watch::channel(false);
    let hurry = Arc::new(Notify::new());
    tokio::spawn({
        let hurry = hurry.clone();
        async move {
            let signal = signalled().await;
            tracing::info!(signal, "host stopping: running reconciles finish, no new ones start");
            let _ = stopping.send(true);
            signalled().await;
            hurry.notify_one();
        }
    });

    // A folder that cannot be used is said before anything is waited for.
    let cache = arguments.cache_dir.as_deref().map(CacheFolder::open).transpose()?;
    let env = Env::real();
    let kube = Kube { instance: Some(instance()), ..arguments.kube.kube() };
    let connect = async |settings, secrets, fence| {
        Cluster::open(&kube, env.clone(), settings, secrets, fence).await
    };
    let open = Fence::open(&env);
    let cluster = connect(Settings::default(), SecretKey::new(&random()?), open.clone()).await?;
    let listener = serve::bind(arguments.bind).await?;
    // Health is told from the start on, also while the API server is waited for.
    let present = SharedHostState::<Operator>::default();
    let guard = arguments.metrics_auth.then(|| {
        let (client, audience) = (cluster.host(), arguments.metrics_audience.clone());
        Guard::new(ApiReviewer { client, audience })
    });
    let serving = tokio::spawn(serve::serve(listener, present.clone(), guard, stop.clone()));
    // A developer's host is not one of several, and may not have a namespace of its own.
    let key = if arguments.modules.is_some() {
        None
    } else {
        let key = read_host_key(&cluster, arguments, stop.clone()).await?;
        if key.is_none() {
            tracing::info!("host stopped");
            return Ok(());
        }
        key
    };
    let sealing = match &key {
        // Not kept beside the code: who gets at the volume alone cannot seal any.
        Some(key) => CacheKey::Given(key.derive(CODE_CACHE)),
        None => CacheKey::Kept,
    };
    let cache = cache
        .map(|folder| CodeCache::open(folder, &sealing, arguments.cache_mib.saturating_mul(MIB)))
        .transpose()?;
    let engine = engine(arguments, cache)?;
    // After the engine, which reads its own page map: another process of this user, such as a
    // compiler that a component has taken over, can neither trace this one nor read its memory.
    if let Err(error) = forbid_tracing() {
        tracing::warn!("processes of the same user can read the memory of this one: {error}");
    }
    let from = match &arguments.modules {
        Some(folder) => ModulesLocation::Directory(folder.clone()),
        None => ModulesLocation::Cluster,
    };
    let bounds = Bounds { workers: arguments.max_concurrent_reconciles };
    let operator = |cluster| {
        let (engine, from) = (engine.clone(), from.clone());
        Operator::new(cluster, engine, from, bounds, Execution::Threads, &instance())
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        bind = %arguments.bind,
        max_concurrent_reconciles = arguments.max_concurrent_reconciles,
        "host started"
    );
    let ending = Shutdown { stop, force: hurry };
    match key {
        Some(key) if arguments.leader_elect => {
            let terms = LeaseConfig { duration: arguments.lease_duration };
            let electing = connect(terms.settings(), SecretKey::new(&random()?), open).await?;
            let at = (&*arguments.namespace, &*arguments.lease);
            let candidate = LeaderElector::new(&electing, at, &identity()?, terms);
            // Connections of its own each time: none outlives the Lease.
            let work = async |fence: Fence| {
                let cluster = connect(Settings::default(), key.clone(), fence).await?;
                Ok(operator(cluster)?)
            };
            lead::lead(candidate, &present, ending, work).await?;
        }
        alone => {
            let cluster = match alone {
                Some(key) => cluster.with_secret_key(key),
                None => cluster,
            };
            lead::run(&operator(cluster)?, &present, ending, std::future::pending()).await?;
        }
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    tracing::info!("host stopped");
    Ok(())
}

fn engine(arguments: &Arguments, cache: Option<CodeCache>) -> anyhow::Result<Engine> {
    let mut builder = Engine::builder().compile(compile()).guests(arguments.guest_pool_size);
    if let Some(calls) = arguments.max_concurrent_guest_calls {
        builder = builder.permits(calls);
    }
    if let Some(cache) = cache {
        builder = builder.cache(cache);
    }
    Ok(builder.build()?)
}

/// The host's key for the digests of Secrets. Waits for an API server that is away; `None` if
/// it is told to stop meanwhile.
async fn read_host_key(
    cluster: &Cluster,
    arguments: &Arguments,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<Option<SecretKey>> {
    let fresh = random()?;
    let client = cluster.host();
    let mut backoff = Backoff::new(cluster.env(), RETRY_LEAST, RETRY_MOST);
    let mut told = None;
    loop {
        // A server that hangs must not hold up a stop.
        let read = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return Ok(None),
            read = host_key(&client, &arguments.namespace, &fresh) => read,
        };
        match read {
            Ok(key) => return Ok(Some(key)),
            Err(error @ HostKeyError::Malformed { .. }) => return Err(error.into()),
            Err(error) => {
                // What is missing (the namespace, a right) may be on its way: wait as well.
                let text = error.to_string();
                if told.as_ref() != Some(&text) {
                    tracing::warn!("{text}; trying again until it works");
                    told = Some(text);
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
        .map_err(|error| anyhow::anyhow!("the system gives no random bytes: {error}"))?;
    Ok(bytes)
}

/// A variable of the environment that says something.
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

/// What no other candidate for the Lease is called. A pod has its name to itself, so that a
/// container that is started again in it need not wait for itself.
fn identity() -> anyhow::Result<String> {
    if let Some(pod) = variable("POD_NAME") {
        return Ok(pod);
    }
    let [a, b, c, d, ..] = random()?;
    let suffix = u32::from_le_bytes([a, b, c, d]);
    Ok(format!("{}-{suffix:08x}", instance()))
}

/// Waits for Ctrl-C or for the SIGTERM of a kubelet; says which.
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
