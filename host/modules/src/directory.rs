//! Modules from a folder, for local development: `innkeeper run --modules DIR`.
//!
//! The caller scans the folder repeatedly ([`ModuleDirectory::scan`]). A file that changed is read
//! only once it is the same in two scans, so that no half-written file is read (the first scan of
//! a folder reads all). A file that is replaced by renaming is a file that changed. Nothing depends
//! on the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component as PathPart, Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::module::{self, Module, ModuleError};
use crate::source::{self, Component, PACKED_BYTES_MAX, SourceError};

/// The largest file of Modules, in bytes.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;

/// What a scan found to be different.
#[derive(Debug, PartialEq)]
pub enum Change {
    /// A Module is new or changed. If its spec did, its source follows (again), and
    /// `metadata.generation` counts the change.
    Module(Box<Module>),
    /// A Module was deleted.
    Gone(String),
    /// The source of a Module was read, for the first time or because it changed.
    Source {
        /// The Module.
        module: String,
        /// Its component, or why there is none.
        result: Result<Component, SourceError>,
    },
    /// A file cannot be used; its Modules stay as they were. Reported once, until it changes.
    Problem(String),
    /// There is no Module in the folder (any more). Reported once, until there is one.
    Empty,
}

/// Distinguishes two states of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A file as it was seen; a stamp of `None` means that it was not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileRead {
    /// Whether it was ever read.
    was_read: bool,
    /// The stamp when it was last read.
    read: Option<Stamp>,
    /// The stamp at the last scan.
    seen: Option<Stamp>,
}

impl FileRead {
    /// Whether the file is to be read now; notes what is seen. `at_once` takes a file that
    /// was not seen before as it is.
    fn is_due(
        looks: &mut BTreeMap<PathBuf, Self>,
        path: &Path,
        now: Option<Stamp>,
        at_once: bool,
    ) -> bool {
        let Some(look) = looks.get_mut(path) else {
            looks.insert(path.to_owned(), Self { was_read: at_once, read: now, seen: now });
            return at_once;
        };
        let settled = look.seen == now;
        look.seen = now;
        let due = settled && !(look.was_read && look.read == now);
        if due {
            (look.was_read, look.read) = (true, now);
        }
        due
    }
}

/// A Module of the folder.
#[derive(Debug)]
struct KnownModule {
    module: Module,
    /// Where it stands.
    file: PathBuf,
    /// Its source.
    source: Option<PathBuf>,
}

/// A folder of Modules (`*.yaml`, `*.yml`, `*.json`; other kinds of resources are passed over)
/// and their components. Folders within it are not looked at, except for sources.
#[derive(Debug)]
pub struct ModuleDirectory {
    path: PathBuf,
    /// The largest component, in bytes.
    component_bytes_max: usize,
    looks: BTreeMap<PathBuf, FileRead>,
    sources: BTreeMap<PathBuf, FileRead>,
    /// The Modules of each file, by name.
    files: BTreeMap<PathBuf, BTreeMap<String, Module>>,
    known: BTreeMap<String, KnownModule>,
    /// Problems that are not of one state of one file.
    reported: BTreeSet<String>,
    is_empty_reported: bool,
    /// Nothing was scanned yet.
    is_new: bool,
}

impl ModuleDirectory {
    /// A folder; it is looked at by [`ModuleDirectory::scan`] only, and need not exist yet.
    ///
    /// `component_bytes_max` bounds an unpacked component.
    pub fn new(path: impl Into<PathBuf>, component_bytes_max: usize) -> Self {
        Self {
            path: path.into(),
            component_bytes_max,
            looks: BTreeMap::new(),
            sources: BTreeMap::new(),
            files: BTreeMap::new(),
            known: BTreeMap::new(),
            reported: BTreeSet::new(),
            is_empty_reported: false,
            is_new: true,
        }
    }

    /// Looks at the folder: what is different from the scan before, in a stable order.
    ///
    /// Reads files that changed, and so blocks for as long as the file system does.
    pub fn scan(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut problems = BTreeSet::new();
        match self.list() {
            Ok(paths) => self.read_manifests(&paths, &mut changes),
            Err(error) => {
                problems
                    .insert(format!("{}: the folder cannot be read: {error}", self.path.display()));
            }
        }
        let wanted = collect(&self.files, &mut problems);
        changes.extend(problems.difference(&self.reported).cloned().map(Change::Problem));
        self.reported = problems;
        compare(&mut self.known, &mut self.sources, wanted, &mut changes);
        self.read_sources(&mut changes);
        if self.known.is_empty() && !self.is_empty_reported {
            changes.push(Change::Empty);
        }
        self.is_empty_reported = self.known.is_empty();
        self.is_new = false;
        changes
    }

    /// The files that may hold Modules, in order.
    fn list(&self) -> io::Result<Vec<(PathBuf, Stamp)>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_manifest = ["yaml", "yml", "json"]
                .iter()
                .any(|extension| path.extension().is_some_and(|found| found == *extension));
            // Editors keep their copies under such names.
            if !is_manifest || name.starts_with('.') || name.starts_with('#') {
                continue;
            }
            // A file may be deleted between the two calls.
            if let Some(metadata) = fs::metadata(&path).ok().filter(Metadata::is_file) {
                paths.push((path, Stamp::from(&metadata)));
            }
        }
        paths.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(paths)
    }

    fn read_manifests(&mut self, paths: &[(PathBuf, Stamp)], changes: &mut Vec<Change>) {
        for (path, stamp) in paths {
            if !FileRead::is_due(&mut self.looks, path, Some(*stamp), self.is_new) {
                continue;
            }
            let mut parsed = match read_text(path) {
                Ok(text) => parse(path, &text),
                Err(problem) => {
                    Parsed { problems: vec![problem], broken: true, ..Parsed::default() }
                }
            };
            changes.extend(parsed.problems.into_iter().map(Change::Problem));
            if parsed.broken {
                continue;
            }
            for (name, module) in self.files.remove(path).unwrap_or_default() {
                if parsed.malformed.contains(&name) {
                    parsed.modules.entry(name).or_insert(module);
                }
            }
            self.files.insert(path.clone(), parsed.modules);
        }
        let gone: Vec<_> = self
            .looks
            .keys()
            .filter(|path| paths.binary_search_by(|(present, _)| present.cmp(path)).is_err())
            .cloned()
            .collect();
        for path in gone {
            // A file that is renamed into place may be missed by one listing.
            if FileRead::is_due(&mut self.looks, &path, None, false) {
                self.looks.remove(&path);
                self.files.remove(&path);
            }
        }
    }

    fn read_sources(&mut self, changes: &mut Vec<Change>) {
        let mut by_source: BTreeMap<&PathBuf, Vec<&String>> = BTreeMap::new();
        for (name, known) in &self.known {
            if let Some(source) = &known.source {
                by_source.entry(source).or_default().push(name);
            }
        }
        self.sources.retain(|path, _| by_source.contains_key(path));
        for (path, modules) in by_source {
            let stamp = fs::metadata(path).ok().map(|metadata| Stamp::from(&metadata));
            if !FileRead::is_due(&mut self.sources, path, stamp, self.is_new) {
                continue;
            }
            let result = read_component(path, self.component_bytes_max);
            changes.extend(
                modules.into_iter().map(|module| Change::Source {
                    module: module.clone(),
                    result: result.clone(),
                }),
            );
        }
    }
}

/// All Modules, each name once: the first file, in order, that has it.
fn collect<'a>(
    files: &'a BTreeMap<PathBuf, BTreeMap<String, Module>>,
    problems: &mut BTreeSet<String>,
) -> BTreeMap<&'a str, (&'a Module, &'a Path)> {
    let mut wanted: BTreeMap<&str, (&Module, &Path)> = BTreeMap::new();
    for (path, modules) in files {
        for (name, module) in modules {
            if let Some((_, first)) = wanted.get(name.as_str()) {
                problems.insert(format!(
                    "{}: Module {name} is in {} too; that one is used",
                    path.display(),
                    first.display()
                ));
            } else {
                wanted.insert(name, (module, path));
            }
        }
    }
    wanted
}

/// Brings the known Modules to what the files have, and notes each difference.
fn compare(
    known: &mut BTreeMap<String, KnownModule>,
    sources: &mut BTreeMap<PathBuf, FileRead>,
    wanted: BTreeMap<&str, (&Module, &Path)>,
    changes: &mut Vec<Change>,
) {
    known.retain(|name, _| {
        let is_wanted = wanted.contains_key(name.as_str());
        if !is_wanted {
            changes.push(Change::Gone(name.clone()));
        }
        is_wanted
    });
    for (name, (module, file)) in wanted {
        let before = known.get_mut(name);
        let generation = before.as_ref().map_or(0, |before| before.module.metadata.generation);
        if let Some(before) = before
            && before.module.spec == module.spec
            && before.file == file
        {
            // Approvals and rejections are annotations.
            if before.module.metadata.annotations != module.metadata.annotations {
                before.module.metadata.annotations.clone_from(&module.metadata.annotations);
                changes.push(Change::Module(Box::new(before.module.clone())));
            }
            continue;
        }
        let mut module = module.clone();
        module.metadata.generation = generation + 1;
        let source = module.spec.source.file.as_ref().map(|source| relative_to(file, source));
        // The driver drops the source of a Module that it cannot use, so it is sent again.
        if let Some(source) = &source {
            sources.remove(source);
        }
        changes.push(Change::Module(Box::new(module.clone())));
        known.insert(name.to_owned(), KnownModule { module, file: file.to_owned(), source });
    }
}

/// The path of a source, named relative to the file of its Module.
fn relative_to(file: &Path, source: &str) -> PathBuf {
    let mut path = file.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(source).components() {
        match part {
            PathPart::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

fn read_text(path: &Path) -> Result<String, String> {
    let bytes = read_bounded(path, MANIFEST_BYTES_MAX)
        .map_err(|error| format!("{}: cannot be read: {error}", path.display()))?
        .ok_or_else(|| format!("{}: is larger than {MANIFEST_BYTES_MAX} bytes", path.display()))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = String::from_utf8_lossy(valid).lines().count().max(1);
        format!("{}:{line}: is not UTF-8", path.display())
    })
}

/// `None` if there is more.
fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

/// Reads a component from a file, plain or gzip, within bounds.
///
/// # Errors
/// If there is no file, it cannot be read, it is too large, or it is no component.
pub fn read_component(path: &Path, bytes_max: usize) -> Result<Component, SourceError> {
    let what = path.display().to_string();
    let bytes = read_bounded(path, PACKED_BYTES_MAX as u64).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            SourceError::Missing(what.clone())
        } else {
            SourceError::Unreadable { what: what.clone(), why: error.to_string() }
        }
    })?;
    let bytes = bytes.ok_or_else(|| SourceError::TooLarge {
        what: what.clone(),
        limit: PACKED_BYTES_MAX,
        unpacked: false,
    })?;
    source::unpack(&what, &bytes, bytes_max)
}

/// The content of a file.
#[derive(Default)]
struct Parsed {
    /// Its Modules, by name.
    modules: BTreeMap<String, Module>,
    /// The names of Modules that cannot be read.
    malformed: BTreeSet<String>,
    /// What is wrong with it, with file and line.
    problems: Vec<String>,
    /// It is not a stream of documents: Modules that it does not name may still be in it.
    broken: bool,
}

/// Reads the Modules of a file. Documents of other kinds are passed over: a sample may lie in
/// the same file.
fn parse(path: &Path, text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    for document in documents(text) {
        let (line, value) = match document {
            Ok(document) => document,
            Err((line, message)) => {
                parsed.problems.push(format!("{}:{line}: {message}", path.display()));
                parsed.broken = true;
                break;
            }
        };
        match Module::from_value(&value) {
            _ if value.is_null() => {}
            Ok(module) => {
                let name = module.metadata.name.clone();
                if parsed.modules.contains_key(&name) {
                    parsed.problems.push(format!(
                        "{}:{line}: Module {name} is here twice; the first is used",
                        path.display()
                    ));
                }
                parsed.modules.entry(name).or_insert(module);
            }
            Err(error @ ModuleError::Kind { .. }) => {
                if is_module_document(&value) {
                    parsed.problems.push(format!("{}:{line}: {error}", path.display()));
                }
            }
            Err(error) => {
                let name = value.pointer("/metadata/name").and_then(Value::as_str);
                let line = field_line(text, line, &error);
                let what = name.map(|name| format!("Module {name}: ")).unwrap_or_default();
                parsed.problems.push(format!("{}:{line}: {what}{error}", path.display()));
                parsed.malformed.extend(name.map(str::to_owned));
            }
        }
    }
    parsed
}

/// Whether a document that is not a Module was likely to be one.
fn is_module_document(value: &Value) -> bool {
    match value.get("apiVersion").and_then(Value::as_str) {
        Some(version) => version.split_once('/').is_some_and(|(group, _)| group == module::GROUP),
        None => value.get("kind").is_none_or(|kind| kind == module::KIND),
    }
}

/// The documents of a YAML stream (or of one JSON file), each with the line where it begins.
fn documents(text: &str) -> Vec<Result<(usize, Value), (usize, String)>> {
    let mut starts = starts(text).into_iter();
    let mut documents = Vec::new();
    for document in serde_yaml_ng::Deserializer::from_str(text) {
        let start = starts.next().unwrap_or(1);
        match Value::deserialize(document) {
            Ok(value) => documents.push(Ok((start, value))),
            Err(error) => {
                let line = error.location().map_or(start, |location| location.line());
                documents.push(Err((line, format!("is not YAML: {error}"))));
                break;
            }
        }
    }
    documents
}

/// The lines on which documents begin, from 1: the first line of each that is not empty.
fn starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let is_separator = line == "---" || line.starts_with("--- ");
        let says_nothing = line.trim().is_empty() || line.starts_with('#') || line.starts_with('%');
        if is_separator || (!open && !says_nothing) {
            starts.push(index + 1);
            open = true;
        }
    }
    starts
}

/// The line of the field that an error names: the first line after the start of its document that
/// names it, otherwise the start.
fn field_line(text: &str, start: usize, error: &ModuleError) -> usize {
    let ModuleError::Field { path, .. } = error else { return start };
    let Some(field) = path.rsplit('.').next().map(|field| field.split('[').next().unwrap_or(field))
    else {
        return start;
    };
    text.lines()
        .enumerate()
        .skip(start.saturating_sub(1))
        .find(|(_, line)| {
            let line = line.trim_start().trim_start_matches("- ").trim_start_matches('"');
            line.strip_prefix(field)
                .is_some_and(|rest| rest.trim_start_matches('"').starts_with(':'))
        })
        .map_or(start, |(index, _)| index + 1)
}

#[cfg(test)]
mod tests;
