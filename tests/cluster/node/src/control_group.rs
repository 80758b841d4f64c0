//! The control groups of a node's pods.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Where the kernel shows control groups.
const ROOT: &str = "/sys/fs/cgroup";
/// How long the kernel may take to be done with processes that were killed.
const GONE_TIMEOUT: Duration = Duration::from_secs(20);
/// How the names of nodes' groups and interfaces begin; a number follows.
pub(crate) const PREFIX: &str = "innkeeper-";
/// What kubelet asks for on a machine with one hierarchy.
const CONTROLLERS: &str = "+cpu +cpuset +memory +pids";

/// A group of the same name in every hierarchy.
#[derive(Clone, Debug)]
pub(crate) struct ControlGroup {
    name: String,
}

impl ControlGroup {
    /// Makes it; what a crashed run has left of the same name goes first.
    pub(crate) fn make(name: &str) -> Result<Self> {
        let group = Self::named(name);
        group.remove()?;
        for hierarchy in hierarchies()? {
            let path = hierarchy.join(name);
            fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
            // An empty set is inherited by nobody in the old hierarchy.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let above = hierarchy.join(file);
                if let Ok(text) = fs::read_to_string(above) {
                    let path = path.join(file);
                    fs::write(&path, text.trim()).with_context(|| path.display().to_string())?;
                }
            }
        }
        Ok(group)
    }

    /// The group of this name, which may be there.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned() }
    }

    /// Removes the groups of nodes that are no more: those without their network interface.
    pub(crate) fn remove_left() -> Result<()> {
        for hierarchy in hierarchies()? {
            for entry in fs::read_dir(&hierarchy)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                let is_node = name.strip_prefix(PREFIX).is_some_and(|n| n.parse::<u8>().is_ok());
                if is_node && !Path::new("/sys/class/net").join(&name).exists() {
                    Self::named(&name).remove()?;
                }
            }
        }
        Ok(())
    }

    /// Its name as kubelet knows it.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// Removes it with all groups below. Their processes have been ended; the kernel may take a
    /// moment to notice.
    pub(crate) fn remove(&self) -> Result<()> {
        let deadline = Instant::now() + GONE_TIMEOUT;
        for hierarchy in hierarchies()? {
            let path = hierarchy.join(&self.name);
            while path.exists() {
                match remove_below(&path) {
                    Ok(()) => break,
                    Err(error) if Instant::now() > deadline => {
                        return Err(error).context(format!("removing {}", path.display()));
                    }
                    Err(_) => thread::sleep(Duration::from_millis(20)),
                }
            }
        }
        Ok(())
    }
}

fn remove_below(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_below(&entry.path())?;
        }
    }
    match fs::remove_dir(folder) {
        // Somebody else clears away the same.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The folders in which a group is made: one, or one per controller where the hierarchies are
/// the old ones.
fn hierarchies() -> Result<Vec<PathBuf>> {
    let root = Path::new(ROOT);
    if root.join("cgroup.controllers").exists() {
        // The machine's administrator has usually done so; where it fails, kubelet says what is
        // missing.
        let _ = fs::write(root.join("cgroup.subtree_control"), CONTROLLERS);
        return Ok(vec![root.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(root).with_context(|| format!("{ROOT}: no control groups"))? {
        let entry = entry?;
        // Several names of one hierarchy are links to it.
        if entry.file_type()?.is_dir() && entry.path().join("cgroup.procs").exists() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
