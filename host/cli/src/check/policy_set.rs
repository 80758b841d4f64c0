//! The Modules of a folder: those of its manifests, and the components without one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use innkeeper_contract::{Kind, PolicyKind};
use innkeeper_modules::{Change, Module, ModuleDirectory};
use innkeeper_sandbox::{COMPONENT_BYTES_DEFAULT, CodeCache};
use jiff::Timestamp;
use serde_json::Value;

use super::set_member::SetMember;
use crate::file_objects::FileObjects;
use crate::objects::InputObject;
use crate::review::{request, reviewer};

/// The most Modules of a set.
const MEMBERS_MAX: usize = 64;

/// The Modules of a folder, by name.
pub(super) struct PolicySet {
    pub(super) members: Vec<SetMember>,
    /// The definitions of the guests, and the objects that are checked.
    definitions: Vec<Value>,
}

impl PolicySet {
    /// Reads a folder as `innkeeper run --modules` does, and opens the guests. A Module without
    /// `spec.source.file` has the component of its name, and a component without a Module has the
    /// name of its file. `objects` may define kinds that parameters name.
    ///
    /// # Errors
    /// If a file cannot be used, or there is no guest.
    pub(super) fn read(
        folder: &Path,
        cache: &CodeCache,
        objects: &[InputObject],
    ) -> anyhow::Result<Self> {
        let place = folder.display().to_string();
        let modules = modules(folder)?;
        let mut components = components(folder).with_context(|| place.clone())?;
        if modules.len() + components.len() > 2 * MEMBERS_MAX {
            bail!("{place}: a set has at most {MEMBERS_MAX} Modules");
        }
        let given: Vec<Value> = objects.iter().map(|object| object.value.clone()).collect();
        let mut members = BTreeMap::new();
        for module in modules {
            let name = module.metadata.name.clone();
            let file = match &module.spec.source.file {
                Some(file) => folder.join(file),
                None => folder.join(format!("{name}.wasm")),
            };
            if let Ok(path) = file.canonicalize() {
                components.remove(&path);
            }
            members.insert(name, SetMember::open(module, &place, file, cache, &given)?);
        }
        for file in components.into_values() {
            let member = SetMember::of_component(file, cache, &given)?;
            if members.contains_key(&member.name) {
                bail!(
                    "{place}: {name}.wasm has no Module, since Module {name} has another component",
                    name = member.name
                );
            }
            members.insert(member.name.clone(), member);
        }
        match members.len() {
            0 => bail!("{place}: there is no component (*.wasm) and no Module in the folder"),
            1..=MEMBERS_MAX => {}
            many => bail!("{place}: {many} Modules; a set has at most {MEMBERS_MAX}"),
        }
        let members: Vec<SetMember> = members.into_values().collect();
        let of_guests = members.iter().flat_map(|member| member.manifest().definitions());
        let definitions = of_guests.chain(given).collect();
        Ok(Self { members, definitions })
    }

    /// The kind of an object with its plural; none if it is not known.
    pub(super) fn kind_of(&self, object: &InputObject) -> Option<Kind> {
        let known = |member: &SetMember| {
            request::kind_of(object, member.manifest(), &self.definitions, None)
        };
        self.members.iter().find_map(known)
    }

    /// What each member reads at a time, if the cluster has these objects.
    ///
    /// # Errors
    /// If an object cannot be read, or is given twice.
    pub(super) fn views(
        &self,
        objects: &[InputObject],
        now: Timestamp,
    ) -> anyhow::Result<Vec<FileObjects>> {
        let all = self.members.iter();
        all.map(|member| reviewer::view_of(member.manifest(), objects, &[], now)).collect()
    }

    /// The indices of the members with a policy of this kind.
    pub(super) fn policies(&self, kind: PolicyKind) -> Vec<usize> {
        let members = self.members.iter().enumerate();
        members.filter(|(_, one)| one.has_policy(kind)).map(|(index, _)| index).collect()
    }

    /// The members that reconcile.
    pub(super) fn reconcilers(&self) -> impl Iterator<Item = &SetMember> {
        self.members.iter().filter(|member| member.guest.has_reconciler())
    }
}

/// The Modules of the manifests of a folder.
fn modules(folder: &Path) -> anyhow::Result<Vec<Module>> {
    let mut modules = Vec::new();
    for change in ModuleDirectory::new(folder, COMPONENT_BYTES_DEFAULT).scan() {
        match change {
            Change::Module(module) => modules.push(*module),
            Change::Problem(problem) => bail!("{problem}"),
            Change::Source { module, result } => {
                result.with_context(|| format!("{}: Module {module}", folder.display()))?;
            }
            Change::Gone(_) | Change::Empty => {}
        }
    }
    Ok(modules)
}

/// The components of a folder, by their real paths.
fn components(folder: &Path) -> std::io::Result<BTreeMap<PathBuf, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            found.insert(path.canonicalize()?, path);
        }
    }
    Ok(found)
}
