use std::fs;

use innkeeper_sandbox::Limits;
use tempfile::TempDir;

use super::*;
use crate::testing::Fake;
use crate::{Action, Driver, Input, SourceKind};

const WASM_A: &[u8] = b"\0asm a";
const WASM_B: &[u8] = b"\0asm b";

struct Lab {
    dir: TempDir,
    folder: ModuleDirectory,
}

impl Lab {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let folder = ModuleDirectory::new(dir.path(), 1 << 20);
        Self { dir, folder }
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.dir.path().join(name), bytes).unwrap();
    }

    /// As editors save: a new file, renamed into place.
    fn replace(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.write(".new", bytes);
        fs::rename(self.dir.path().join(".new"), self.dir.path().join(name)).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.dir.path().join(name)).unwrap();
    }

    fn scan(&mut self) -> Vec<String> {
        let path = self.dir.path().display().to_string();
        let show = |change: Change| match change {
            Change::Module(module) => {
                format!("module {} generation {}", module.metadata.name, module.metadata.generation)
            }
            Change::Gone(name) => format!("gone {name}"),
            Change::Source { module, result: Ok(component) } => {
                format!("source of {module}: {}", String::from_utf8_lossy(&component.bytes[4..]))
            }
            Change::Source { module, result: Err(error) } => {
                format!("source of {module}: {}: {error}", error.reason())
            }
            Change::Problem(problem) => format!("problem {problem}"),
            Change::Empty => "empty".to_owned(),
        };
        self.folder.scan().into_iter().map(show).map(|line| line.replace(&path, "DIR")).collect()
    }

    /// Scans until nothing is different any more.
    fn settle(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..10 {
            let lines = self.scan();
            if lines.is_empty() && !all.is_empty() {
                return all;
            }
            all.extend(lines);
        }
        all
    }
}

fn module(name: &str, file: &str) -> String {
    format!(
        "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {{name: {name}}}\nspec:\n  source: {{file: {file}}}\n"
    )
}

#[test]
fn an_annotation_is_a_change_of_the_module_without_another_generation() {
    let mut lab = Lab::new();
    lab.write("guest.wasm", WASM_A);
    let text = module("a", "guest.wasm");
    lab.write("a.yaml", &text);
    lab.settle();
    let annotated = text.replace("{name: a}", "{name: a, annotations: {innkeeper.dev/approve: x}}");
    lab.replace("a.yaml", &annotated);
    assert_eq!(lab.settle(), ["module a generation 1"]);
    lab.replace("a.yaml", annotated + "  paused: true\n");
    assert_eq!(lab.settle(), ["module a generation 2", "source of a:  a"]);
}

#[test]
fn a_directory_is_read_at_once_and_reported_once() {
    let mut lab = Lab::new();
    lab.write("a.yaml", module("a", "a.wasm"));
    lab.write("a.wasm", WASM_A);
    assert_eq!(lab.scan(), ["module a generation 1", "source of a:  a"]);
    assert_eq!(lab.scan(), [""; 0]);
}

#[test]
fn an_empty_directory_is_reported_once_and_awaited() {
    let mut lab = Lab::new();
    assert_eq!(lab.scan(), ["empty"]);
    assert_eq!(lab.scan(), [""; 0]);
    lab.write("a.wasm", WASM_A);
    lab.write("a.yaml", module("a", "./a.wasm"));
    assert_eq!(lab.settle(), ["module a generation 1", "source of a:  a"]);
    lab.remove("a.yaml");
    assert_eq!(lab.settle(), ["gone a", "empty"]);
}

#[test]
fn a_folder_that_is_not_there_is_a_problem_until_it_is() {
    let mut lab = Lab::new();
    lab.folder = ModuleDirectory::new(lab.dir.path().join("later"), 1 << 20);
    let lines = lab.scan();
    assert!(lines[0].starts_with("problem DIR/later: the folder cannot be read: "), "{lines:?}");
    assert_eq!(lab.scan(), [""; 0]);
    fs::create_dir(lab.dir.path().join("later")).unwrap();
    lab.write("later/a.yaml", module("a", "../a.wasm"));
    lab.write("a.wasm", WASM_A);
    assert_eq!(lab.settle(), ["module a generation 1", "source of a:  a"]);
}

#[test]
fn a_component_that_is_written_in_pieces_is_taken_when_it_is_still() {
    let mut lab = Lab::new();
    lab.write("a.yaml", module("a", "a.wasm"));
    lab.write("a.wasm", WASM_A);
    lab.scan();
    lab.write("a.wasm", b"\0as");
    assert_eq!(lab.scan(), [""; 0]);
    lab.write("a.wasm", b"\0asm half");
    assert_eq!(lab.scan(), [""; 0]);
    lab.write("a.wasm", WASM_B);
    assert_eq!(lab.scan(), [""; 0]);
    assert_eq!(lab.scan(), ["source of a:  b"]);
}

#[test]
fn files_replaced_by_renaming_are_changed_files() {
    let mut lab = Lab::new();
    lab.write("a.yaml", module("a", "a.wasm"));
    lab.write("a.wasm", WASM_A);
    lab.scan();
    lab.replace("a.wasm", WASM_B);
    assert_eq!(lab.settle(), ["source of a:  b"]);
    lab.replace("a.yaml", module("a", "a.wasm") + "  paused: true\n");
    assert_eq!(lab.settle(), ["module a generation 2", "source of a:  b"]);
    lab.replace("a.yaml", module("a", "a.wasm") + "  paused: true\n# another comment\n");
    assert_eq!(lab.settle(), [""; 0]);
}

#[test]
fn missing_source_is_reported_and_found_later() {
    let mut lab = Lab::new();
    lab.write("a.yaml", module("a", "a.wasm"));
    assert_eq!(
        lab.scan(),
        ["module a generation 1", "source of a: SourceNotFound: DIR/a.wasm does not exist"]
    );
    lab.write("a.wasm", WASM_A);
    assert_eq!(lab.settle(), ["source of a:  a"]);
    lab.remove("a.wasm");
    assert_eq!(lab.settle(), ["source of a: SourceNotFound: DIR/a.wasm does not exist"]);
}

#[test]
fn broken_file_keeps_its_modules_and_others_are_read() {
    let mut lab = Lab::new();
    lab.write("a.yaml", module("a", "a.wasm"));
    lab.write("b.yaml", module("b", "a.wasm"));
    lab.write("a.wasm", WASM_A);
    lab.scan();
    lab.write("a.yaml", "apiVersion: innkeeper.dev/v1alpha1\nkind: [Module\n");
    let lines = lab.settle();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("problem DIR/a.yaml:"), "{lines:?}");
    lab.write("a.yaml", module("a", "a.wasm") + "  paused: true\n");
    assert_eq!(lab.settle(), ["module a generation 2", "source of a:  a", "source of b:  a"]);
}

#[test]
fn a_malformed_module_keeps_its_old_spec_and_its_neighbours_take_theirs() {
    let mut lab = Lab::new();
    lab.write("a.yaml", format!("{}---\n{}", module("a", "a.wasm"), module("b", "a.wasm")));
    lab.write("a.wasm", WASM_A);
    lab.scan();
    let bad = module("a", "a.wasm") + "  oops: true\n";
    let better = module("b", "a.wasm") + "  paused: true\n";
    lab.write("a.yaml", format!("{bad}---\n{better}"));
    let lines = lab.settle();
    assert!(lines[0].starts_with("problem DIR/a.yaml:6: Module a: spec"), "{lines:?}");
    assert!(lines[0].contains("unknown field `oops`"), "{lines:?}");
    assert_eq!(lines[1..], ["module b generation 2", "source of a:  a", "source of b:  a"]);
}

#[test]
fn errors_name_file_line_module_and_field() {
    let mut lab = Lab::new();
    lab.write(
        "a.yaml",
        format!(
            "# two documents\n---\n{}---\n{}  limits:\n    maxObjects: many\n",
            module("good", "a.wasm"),
            module("bad", "a.wasm")
        ),
    );
    lab.write("b.yaml", "apiVersion: innkeeper.dev/v1\nkind: Module\nmetadata: {name: b}\n");
    lab.write("c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n");
    lab.write("d.yaml", b"kind: \xff\n");
    lab.write("a.wasm", WASM_A);
    assert_eq!(
        lab.scan(),
        [
            "problem DIR/a.yaml:15: Module bad: spec.limits.maxObjects: invalid type: string \"many\", expected u32",
            "problem DIR/b.yaml:1: expected apiVersion: innkeeper.dev/v1alpha1, kind: Module, found apiVersion: innkeeper.dev/v1, kind: Module",
            "problem DIR/d.yaml:1: is not UTF-8",
            "module good generation 1",
            "source of good:  a",
        ]
    );
}

#[test]
fn one_file_holds_several_modules_and_a_name_is_used_once() {
    let mut lab = Lab::new();
    lab.write("a.yaml", format!("{}---\n{}", module("a", "a.wasm"), module("b", "a.wasm")));
    lab.write("z.yaml", module("b", "z.wasm"));
    lab.write("a.wasm", WASM_A);
    assert_eq!(
        lab.scan(),
        [
            "problem DIR/z.yaml: Module b is in DIR/a.yaml too; that one is used",
            "module a generation 1",
            "module b generation 1",
            "source of a:  a",
            "source of b:  a",
        ]
    );
    lab.write("a.yaml", module("a", "a.wasm"));
    let lines = lab.settle();
    assert_eq!(
        lines,
        ["module b generation 2", "source of b: SourceNotFound: DIR/z.wasm does not exist"]
    );
}

#[test]
fn json_is_read_too() {
    let mut lab = Lab::new();
    lab.write(
        "a.json",
        r#"{"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": "a"}, "spec": {"source": {"file": "a.wasm"}}}"#,
    );
    lab.write("a.wasm", WASM_A);
    assert_eq!(lab.scan(), ["module a generation 1", "source of a:  a"]);
}

/// What a driver makes of the folder.
fn drive(lab: &mut Lab, driver: &mut Driver<Fake>) -> Vec<String> {
    let mut loads = Vec::new();
    for _ in 0..3 {
        for change in lab.folder.scan() {
            let (name, input) = match change {
                Change::Module(module) => (module.metadata.name.clone(), Input::Module(module)),
                Change::Source { module, result } => (module, Input::Source(result)),
                other => panic!("{other:?}"),
            };
            let actions = driver.handle(&name, input);
            loads.extend(actions.iter().filter_map(|action| match action {
                Action::Load(job) => Some(format!("{name} {:?}", job.limits.time)),
                _ => None,
            }));
        }
    }
    loads
}

#[test]
fn a_corrected_value_loads_the_component() {
    let mut lab = Lab::new();
    let mut driver = Driver::new(SourceKind::Directory, Limits::default());
    lab.write("a.yaml", module("a", "a.wasm") + "  limits: {timeout: 1 day}\n");
    lab.write("a.wasm", WASM_A);
    assert_eq!(drive(&mut lab, &mut driver), [""; 0]);
    let ready = driver.report("a").unwrap().conditions;
    assert!(ready.iter().any(|condition| condition.message.contains("spec.limits.timeout")));
    lab.write("a.yaml", module("a", "a.wasm") + "  limits: {timeout: 2s}\n");
    assert_eq!(drive(&mut lab, &mut driver), ["a 2s"]);
}
