//! An operator with guests, on one thread and virtual time, over any server.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use innkeeper_cluster::{Cluster, Env, Task};
use innkeeper_operator::{Bounds, Execution, ModulesLocation, Operator, ReplicaPolicies};
use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache, Compile, Engine, Guest, Interruption,
    Limits, LoadError,
};
use serde_json::Value;
use tokio::sync::{Notify, watch};

/// The number of guests that run at the same time, and that of reviews: the operator requires at
/// least two of each.
const PERMITS: usize = 2;

/// Why a lab cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The sandbox does not start.
    #[error("cannot start the sandbox: {0}")]
    Sandbox(#[from] innkeeper_sandbox::EngineError),
    /// The cache for compiled code cannot be used.
    #[error(transparent)]
    Cache(#[from] innkeeper_sandbox::CacheError),
    /// The folder of the modules cannot be written.
    #[error("cannot write the modules to a folder: {0}")]
    Folder(#[from] std::io::Error),
    /// The operator does not start.
    #[error("cannot start the operator: {0}")]
    Operator(#[from] prometheus::Error),
    /// The simulated cluster refuses an object of the setup.
    #[error("the simulated cluster refuses {what}: {why}")]
    Refused {
        /// The object.
        what: String,
        /// The message of the server.
        why: String,
    },
    /// The runtime does not start.
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
}

/// Runs `future` on one thread and virtual time: the time advances only when all tasks wait.
///
/// # Errors
/// If the runtime cannot start.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, LabError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(LabError::Runtime)?;
    Ok(runtime.block_on(future))
}

/// The engine of the guests. Cheap to clone; labs that share one compile each component once.
#[derive(Clone)]
pub struct Guests {
    engine: Engine,
    /// The guests of [`Guests::compile`].
    held: Arc<Mutex<Vec<Guest>>>,
    _code: Option<Arc<tempfile::TempDir>>,
}

impl Guests {
    /// Runs guests in this process, interrupted by fuel, so that each run is the same.
    ///
    /// # Errors
    /// If the sandbox does not start.
    pub fn new() -> Result<Self, LabError> {
        let code = tempfile::tempdir()?;
        let guests = Self::with_cache(cache_in(code.path())?)?;
        Ok(Self { _code: Some(Arc::new(code)), ..guests })
    }

    /// The same with compiled code that stays in a folder.
    ///
    /// # Errors
    /// As [`Self::new`], or if others may write to the folder.
    pub fn kept_in(folder: &Path) -> Result<Self, LabError> {
        Self::with_cache(cache_in(folder)?)
    }

    /// The same with compiled code in a cache.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_cache(cache: CodeCache) -> Result<Self, LabError> {
        Ok(Self { engine: engine(cache)?, held: Arc::default(), _code: None })
    }

    /// Compiles a component and holds its code, so that a later load in a lab compiles nothing.
    ///
    /// # Errors
    /// If it is no guest.
    pub fn compile(&self, component: &[u8]) -> Result<(), LoadError> {
        let guest = self.load(component)?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(guest);
        Ok(())
    }

    /// Loads a component for calls without an operator, with the default limits.
    ///
    /// # Errors
    /// If it is no guest.
    pub fn load(&self, component: &[u8]) -> Result<Guest, LoadError> {
        self.engine.load(component, &Limits::default())
    }
}

fn cache_in(folder: &Path) -> Result<CodeCache, LabError> {
    let folder = CacheFolder::open(folder)?;
    Ok(CodeCache::open(folder, &CacheKey::Kept, CACHE_BYTES_DEFAULT)?)
}

fn engine(cache: CodeCache) -> Result<Engine, LabError> {
    let engine = Engine::builder()
        .interruption(Interruption::Fuel)
        .compile(Compile::InProcess)
        .permits(PERMITS)
        .review_permits(PERMITS)
        .cache(cache)
        .build()?;
    Ok(engine)
}

/// The source of the operator's Modules.
#[derive(Clone, Debug)]
pub enum Modules {
    /// These Modules, in the form of `innkeeper run --modules DIR`, with absolute paths.
    Given(Vec<Value>),
    /// The Modules of the cluster, which are among the objects of the setup.
    OfCluster,
}

/// A running operator.
pub struct RunningOperator {
    env: Env,
    operator: Operator,
    policies: ReplicaPolicies,
    stop: watch::Sender<bool>,
    task: Task<()>,
    _guests: Guests,
    folder: tempfile::TempDir,
    /// That a file of the folder was written.
    notice: Arc<Notify>,
}

impl RunningOperator {
    /// Starts an operator with Modules.
    ///
    /// # Errors
    /// If the modules cannot be written to a folder, or the operator does not start.
    pub fn start(cluster: Cluster, guests: &Guests, modules: &Modules) -> Result<Self, LabError> {
        let env = cluster.env().clone();
        let (folder, notice) = (tempfile::tempdir()?, Arc::new(Notify::new()));
        let from = match modules {
            Modules::Given(modules) => {
                for (index, module) in modules.iter().enumerate() {
                    write(folder.path(), index, module)?;
                }
                ModulesLocation::DirectoryWithNotice(folder.path().to_owned(), notice.clone())
            }
            Modules::OfCluster => ModulesLocation::Cluster,
        };
        let (engine, bounds) = (guests.engine.clone(), Bounds::default());
        let policies = ReplicaPolicies::new(env.clone(), &engine, Execution::Inline)?;
        let operator = Operator::new(cluster, engine, from, bounds, policies.clone(), "lab")?;
        let (stop, stopped) = watch::channel(false);
        let task = env.spawn("operator", {
            let operator = operator.clone();
            async move { operator.run(stopped).await }
        });
        let guests = guests.clone();
        Ok(Self { env, operator, policies, stop, task, _guests: guests, folder, notice })
    }

    /// The clock and timers of the operator.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The operator.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// The policies with which it reviews.
    pub fn policies(&self) -> &ReplicaPolicies {
        &self.policies
    }

    /// Changes the Module at a place among the given ones.
    ///
    /// # Errors
    /// If its file cannot be written.
    pub(crate) fn replace_module(&self, place: usize, module: &Value) -> std::io::Result<()> {
        write(self.folder.path(), place, module)?;
        self.notice.notify_one();
        Ok(())
    }

    /// Stops the operator and waits for its end. Returns whether it ended without a panic.
    pub async fn end(self) -> bool {
        let _ = self.stop.send(true);
        self.task.await.is_some()
    }
}

fn write(folder: &Path, index: usize, module: &Value) -> std::io::Result<()> {
    std::fs::write(folder.join(format!("{index:03}.json")), module.to_string())
}
