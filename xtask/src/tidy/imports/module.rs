//! The modules of a library, program or test, from the files that its source names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::graph::Graph;
use super::source::{Child, Declared, Import, declared};

/// How often a name is looked up by way of other names: more are a circle of re-exports.
const MAX_STEPS: usize = 32;

/// All modules of one target; the first is its root.
pub(super) struct Modules(Vec<Module>);

struct Module {
    /// The file that holds it, as a path in the package.
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: Vec<String>,
    imports: Vec<Import>,
    paths: Vec<Vec<String>>,
}

/// What a name in a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

impl Name {
    fn module(self) -> usize {
        let (Self::Module(module) | Self::Item(module)) = self;
        module
    }
}

impl Modules {
    /// Reads the target with this root, in the package of this folder.
    ///
    /// # Errors
    /// The file that cannot be read or parsed.
    pub(super) fn read(file: &Path, package: &Path) -> Result<Self> {
        let mut modules = Self(Vec::new());
        let folder = file.parent().unwrap_or(package).to_owned();
        modules.add_file(file, folder, None, package)?;
        Ok(modules)
    }

    /// Adds a file; its children are looked for in `folder`.
    fn add_file(
        &mut self,
        file: &Path,
        folder: PathBuf,
        parent: Option<usize>,
        package: &Path,
    ) -> Result<usize> {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let parsed = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        let place = Place { file, folder, package };
        self.add(declared(&parsed.items), &place, parent)
    }

    fn add(&mut self, source: Declared, place: &Place, parent: Option<usize>) -> Result<usize> {
        let here = self.0.len();
        let file = place.file.strip_prefix(place.package).unwrap_or(place.file);
        self.0.push(Module {
            file: file.display().to_string(),
            parent,
            children: BTreeMap::new(),
            items: source.items,
            imports: source.imports,
            paths: source.paths,
        });
        for child in source.children {
            let name = child.name.clone();
            let index = self.add_child(child, place, here)?;
            self.0[here].children.insert(name, index);
        }
        Ok(here)
    }

    fn add_child(&mut self, child: Child, place: &Place, parent: usize) -> Result<usize> {
        let folder = place.folder.join(&child.name);
        if let Some(block) = child.block {
            let place = Place { folder, ..*place };
            return self.add(block, &place, Some(parent));
        }
        let beneath = place.file.parent().unwrap_or(place.package);
        let (file, folder) = match child.path {
            Some(path) => {
                let file = beneath.join(path);
                let folder = file.parent().unwrap_or(beneath).to_owned();
                (file, folder)
            }
            None => (place.folder.join(format!("{}.rs", child.name)), folder),
        };
        let in_folder = folder.join("mod.rs");
        let file = if file.exists() { file } else { in_folder };
        if !file.exists() {
            bail!("{}: the file of module {} is not there", place.file.display(), child.name);
        }
        self.add_file(&file, folder, Some(parent), place.package)
    }

    /// Which file imports which.
    pub(super) fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        for (index, module) in self.0.iter().enumerate() {
            for import in &module.imports {
                if let Some(target) = self.resolve(index, &import.path, 0).map(Name::module)
                    && !(import.is_public && self.is_below(target, index))
                {
                    graph.add(&module.file, &self.0[target].file);
                }
            }
            for path in module.paths.iter().filter(|path| self.begins_at_module(index, path)) {
                if let Some(target) = self.resolve(index, path, 0) {
                    graph.add(&module.file, &self.0[target.module()].file);
                }
            }
        }
        graph
    }

    /// Whether a module is inside another one.
    fn is_below(&self, module: usize, of: usize) -> bool {
        let mut at = self.0[module].parent;
        while let Some(parent) = at {
            if parent == of {
                return true;
            }
            at = self.0[parent].parent;
        }
        false
    }

    /// Other paths begin at an import, which counts by itself.
    fn begins_at_module(&self, module: usize, path: &[String]) -> bool {
        path.first().is_some_and(|first| {
            matches!(first.as_str(), "crate" | "super" | "self")
                || self.0[module].children.contains_key(first)
        })
    }

    /// Where a path leads; nowhere if it begins at another crate.
    fn resolve(&self, module: usize, path: &[String], steps: usize) -> Option<Name> {
        let mut at = None;
        for segment in path {
            at = Some(match (segment.as_str(), at) {
                ("crate", None) => Name::Module(0),
                ("self", None) => Name::Module(module),
                ("super", None) => Name::Module(self.0[module].parent?),
                ("super", Some(Name::Module(from))) => Name::Module(self.0[from].parent?),
                (name, None) => self.lookup(module, name, steps)?,
                // A name that a macro makes, say: it is in this module for all that one can see.
                (name, Some(Name::Module(from))) => {
                    self.lookup(from, name, steps).unwrap_or(Name::Item(from))
                }
                // A variant or an associated function.
                (_, Some(item)) => item,
            });
        }
        at
    }

    fn lookup(&self, module: usize, name: &str, steps: usize) -> Option<Name> {
        let here = &self.0[module];
        if let Some(child) = here.children.get(name) {
            return Some(Name::Module(*child));
        }
        if here.items.iter().any(|item| item == name) {
            return Some(Name::Item(module));
        }
        if steps >= MAX_STEPS {
            return None;
        }
        // `use name::...` with the name of a crate leads to no import of that name.
        let named = here.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        let mut named = named.filter(|import| import.path.first().is_none_or(|one| one != name));
        if let Some(import) = named.next() {
            return self.resolve(module, &import.path, steps + 1);
        }
        here.imports.iter().filter(|import| import.name.is_none()).find_map(|import| {
            match self.resolve(module, &import.path, steps + 1)? {
                Name::Module(all) if all != module => self.lookup(all, name, steps + 1),
                _ => None,
            }
        })
    }
}

/// Where a module is read from.
struct Place<'a> {
    file: &'a Path,
    /// Where the files of its children are.
    folder: PathBuf,
    package: &'a Path,
}
