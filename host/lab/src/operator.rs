//! An operator with guests, on one thread and virtual time, over whatever answers its requests.

use std::path::Path;

use innkeeper_cluster::{Cluster, Env, Task};
use innkeeper_operator::{Bounds, Execution, ModulesLocation, Operator};
use innkeeper_sandbox::{
    CACHE_BYTES_DEFAULT, CacheFolder, CacheKey, CodeCache, Compile, Engine, Interruption, Limits,
    LoadError,
};
use serde_json::Value;
use tokio::sync::watch;

/// Guests that run at once: the operator asks for two at least.
const PERMITS: usize = 2;

/// Why a lab cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The sandbox does not start.
    #[error("the sandbox does not start: {0}")]
    Sandbox(#[from] innkeeper_sandbox::EngineError),
    /// Compiled code cannot be kept.
    #[error(transparent)]
    Cache(#[from] innkeeper_sandbox::CacheError),
    /// The folder of the modules cannot be written.
    #[error("the modules cannot be written to a folder: {0}")]
    Folder(#[from] std::io::Error),
    /// The operator does not start.
    #[error("the operator does not start: {0}")]
    Operator(#[from] prometheus::Error),
    /// The simulated cluster refuses what a lab begins with.
    #[error("the simulated cluster refuses {what}: {why}")]
    Refused {
        /// The object.
        what: String,
        /// What the server says.
        why: String,
    },
    /// The runtime does not start.
    #[error("the runtime does not start: {0}")]
    Runtime(std::io::Error),
}

/// Runs `future` on one thread and virtual time: time stands still while anything can be done.
///
/// # Errors
/// If no runtime can be made.
pub fn block_on<T>(future: impl Future<Output = T>) -> Result<T, LabError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(LabError::Runtime)?;
    Ok(runtime.block_on(future))
}

/// What runs guests. Cheap to clone; labs that share one compile each component once.
#[derive(Clone)]
pub struct Guests {
    engine: Engine,
    _code: Option<std::sync::Arc<tempfile::TempDir>>,
}

impl Guests {
    /// Runs them in this process, interrupted by fuel, so that each run is the same.
    ///
    /// # Errors
    /// If the sandbox does not start.
    pub fn new() -> Result<Self, LabError> {
        let code = tempfile::tempdir()?;
        let engine = engine(cache_in(code.path())?)?;
        Ok(Self { engine, _code: Some(std::sync::Arc::new(code)) })
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
        Ok(Self { engine: engine(cache)?, _code: None })
    }

    /// Compiles a component, so that a later load finds its code.
    ///
    /// # Errors
    /// If it is no guest.
    pub fn compile(&self, component: &[u8]) -> Result<(), LoadError> {
        self.engine.load(component, &Limits::default()).map(drop)
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
        .cache(cache)
        .build()?;
    Ok(engine)
}

/// Where the operator's Modules come from.
#[derive(Clone, Debug)]
pub enum Modules {
    /// These, as `innkeeper run --modules DIR` reads them, with absolute paths.
    Given(Vec<Value>),
    /// Those of the cluster, which are among the objects.
    OfCluster,
}

/// A running operator.
pub struct RunningOperator {
    env: Env,
    operator: Operator,
    stop: watch::Sender<bool>,
    task: Task<()>,
    _guests: Guests,
    _folder: tempfile::TempDir,
}

impl RunningOperator {
    /// Starts it with Modules.
    ///
    /// # Errors
    /// If the modules cannot be written to a folder, or the operator does not start.
    pub fn start(cluster: Cluster, guests: &Guests, modules: &Modules) -> Result<Self, LabError> {
        let env = cluster.env().clone();
        let folder = tempfile::tempdir()?;
        let from = match modules {
            Modules::Given(modules) => {
                for (index, module) in modules.iter().enumerate() {
                    write(folder.path(), index, module)?;
                }
                ModulesLocation::Directory(folder.path().to_owned())
            }
            Modules::OfCluster => ModulesLocation::Cluster,
        };
        let (engine, bounds) = (guests.engine.clone(), Bounds::default());
        let operator = Operator::new(cluster, engine, from, bounds, Execution::Inline, "lab")?;
        let (stop, stopped) = watch::channel(false);
        let task = env.spawn("operator", {
            let operator = operator.clone();
            async move { operator.run(stopped).await }
        });
        Ok(Self { env, operator, stop, task, _guests: guests.clone(), _folder: folder })
    }

    /// Its world: clock and timers.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The operator itself.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Tells the operator to end, and waits for it. Says whether it ended as it should.
    pub async fn end(self) -> bool {
        let _ = self.stop.send(true);
        self.task.await.is_some()
    }
}

fn write(folder: &Path, index: usize, module: &Value) -> std::io::Result<()> {
    std::fs::write(folder.join(format!("{index:03}.json")), module.to_string())
}
