//! The guest and the Modules with which a runner runs every scenario.

use std::cell::OnceCell;
use std::io;

use innkeeper_lab::Guests;
use serde_json::Value;
use tempfile::TempDir;

use super::rebuilt;
use crate::subject::Subject;

/// A Module whose guest is hostile: it traps, never ends or gives garbage.
#[derive(Clone, Debug)]
pub struct HostileModule {
    /// Its Module, with the absolute path of the component in `spec.source.file`.
    pub module: Value,
    /// Objects that exist before the host starts.
    pub preexisting: Vec<Value>,
    /// The primaries that users create at an [`Incident::Neighbor`](crate::Incident::Neighbor).
    pub primaries: Vec<Value>,
}

/// The guest and the Modules with which a runner runs every scenario.
pub(super) struct ScenarioFixture {
    /// Compiles the components.
    pub(super) guests: Guests,
    pub(super) subject: Subject,
    /// The other Module, for scenarios with [`Incident::Neighbor`](crate::Incident::Neighbor).
    pub(super) hostile_module: Option<HostileModule>,
    /// The folder of the components that the runner makes.
    folder: OnceCell<TempDir>,
}

impl ScenarioFixture {
    pub(super) fn new(guests: Guests, subject: Subject) -> Self {
        let modules = std::iter::once(&subject.module).chain(&subject.earlier_module);
        for component in modules.filter_map(|module| rebuilt::component_of(module).ok()) {
            // A component that cannot be loaded fails in the first scenario, with its reason.
            let _ = guests.compile(&component);
        }
        Self { guests, subject, hostile_module: None, folder: OnceCell::new() }
    }

    /// The Module with another component: the earlier one of the subject, or a rebuilt one.
    pub(super) fn other_module(&self) -> io::Result<Value> {
        if let Some(earlier) = &self.subject.earlier_module {
            return Ok(earlier.clone());
        }
        if let Some(folder) = self.folder.get() {
            return rebuilt::module(&self.subject.module, folder.path());
        }
        let folder = tempfile::tempdir()?;
        let module = rebuilt::module(&self.subject.module, folder.path());
        // It is removed with the runner.
        let _ = self.folder.set(folder);
        module
    }
}
