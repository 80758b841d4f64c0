//! Modules of a folder, scanned periodically: on a developer's machine, or in the Pod of a
//! namespaced host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use innkeeper_cluster::{Env, Task};
use innkeeper_modules::directory::{Change, ModuleDirectory};
use innkeeper_modules::source::COMPONENT_BYTES_MAX;
use innkeeper_modules::{Input, SourceRef};
use tokio::sync::{Notify, mpsc};

use super::event::SupervisorEvent;

/// The time between two scans. A saved file is loaded after two scans.
const POLL_PERIOD: Duration = Duration::from_millis(250);

/// Modules of a folder.
pub struct DirectorySource {
    folder: Arc<Mutex<ModuleDirectory>>,
    path: PathBuf,
    env: Env,
    notice: Option<Arc<Notify>>,
    ticker: Option<Task<()>>,
    pub(super) sources: BTreeMap<String, SourceRef>,
}

impl DirectorySource {
    /// Modules of this folder; it need not exist yet.
    pub fn new(path: &Path, env: Env) -> Self {
        Self {
            folder: Arc::new(Mutex::new(ModuleDirectory::new(path, COMPONENT_BYTES_MAX))),
            path: path.to_owned(),
            env,
            notice: None,
            ticker: None,
            sources: BTreeMap::new(),
        }
    }

    /// The same folder, scanned only after each notice of the one who writes it.
    #[must_use]
    pub fn scanned_on(self, notice: Arc<Notify>) -> Self {
        Self { notice: Some(notice), ..self }
    }

    /// Has the supervisor scan the folder now, and then periodically or on notice.
    pub fn begin(&mut self, outbox: &mpsc::UnboundedSender<SupervisorEvent>) {
        let _ = outbox.send(SupervisorEvent::RelistModules);
        let (env, outbox, notice) = (self.env.clone(), outbox.clone(), self.notice.clone());
        self.ticker = Some(self.env.spawn("folder", async move {
            // The second scan after a notice finds the file as the first one did, and loads it.
            let scans = if notice.is_some() { 2 } else { 1 };
            for scan in (0..scans).cycle() {
                if let (Some(notice), 0) = (&notice, scan) {
                    notice.notified().await;
                }
                env.sleep(POLL_PERIOD).await;
                if outbox.send(SupervisorEvent::RelistModules).is_err() {
                    return;
                }
            }
        }));
    }

    /// Scans the folder once, and sends the differences.
    pub fn relist(&mut self, outbox: &mpsc::UnboundedSender<SupervisorEvent>) {
        let changes = self.folder.lock().unwrap_or_else(PoisonError::into_inner).scan();
        for change in changes {
            let (module, input) = match change {
                Change::Module(module) => (module.metadata.name.clone(), Input::Module(module)),
                Change::Gone(name) => (name, Input::Gone),
                Change::Source { module, result } => (module, Input::Source(result)),
                Change::Problem(problem) => {
                    tracing::warn!("{problem}");
                    continue;
                }
                Change::Empty => {
                    tracing::warn!(
                        "no Module in the folder {}; put a YAML file with one there, and it is loaded at once",
                        self.path.display()
                    );
                    continue;
                }
            };
            let _ = outbox.send(SupervisorEvent::input(module, input));
        }
    }
}
