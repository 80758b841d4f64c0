//! What a player plays every scenario with.

use std::cell::OnceCell;
use std::io;

use innkeeper_lab::Guests;
use serde_json::Value;
use tempfile::TempDir;

use super::rebuilt;
use crate::subject::Subject;

/// Another Module, whose guest is hostile: it traps, never ends or gives garbage.
#[derive(Clone, Debug)]
pub struct Neighbor {
    /// Its Module, with the absolute path of the component in `spec.source.file`.
    pub module: Value,
    /// Objects that exist before the host starts.
    pub before: Vec<Value>,
    /// The primaries that users create at an [`Incident::Neighbor`](crate::Incident::Neighbor).
    pub primaries: Vec<Value>,
}

/// What a player plays every scenario with.
pub(super) struct Given {
    /// Compiles the components.
    pub(super) guests: Guests,
    pub(super) subject: Subject,
    pub(super) neighbor: Option<Neighbor>,
    /// The folder of the components that the player makes.
    folder: OnceCell<TempDir>,
}

impl Given {
    pub(super) fn new(guests: Guests, subject: Subject) -> Self {
        Self { guests, subject, neighbor: None, folder: OnceCell::new() }
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
        // It is removed with the player.
        let _ = self.folder.set(folder);
        module
    }
}
