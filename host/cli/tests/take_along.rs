//! The table of docs/languages.md with the files that an author takes along from a guest of this
//! repository: they are all that the guest needs to pass its tests and to build. Slow, since it
//! compiles. And the guest in Go that the page shows.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of them.
#[allow(dead_code)]
mod author;
#[allow(dead_code)]
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use author::{root, shell, tools};

/// Files of a guest that no author takes along: its description, and those by which this repository
/// tests it.
const LEFT: [&str; 3] = ["README.md", "golden.yaml", "tests"];

/// A file or folder that an author takes along.
#[derive(Debug)]
struct Taken {
    /// Its path, below the root of this repository.
    from: PathBuf,
    /// Its path in the author's folder.
    to: String,
}

/// The text outside of parentheses, which explain.
fn without_notes(cell: &str) -> String {
    let parts = cell.split('(').enumerate();
    parts.map(|(at, part)| if at == 0 { part } else { part.split_once(')').unwrap().1 }).collect()
}

/// What the table of the page says to take along of the guest in a language.
fn taken(language: &str, guest: &str) -> Vec<Taken> {
    let page = fs::read_to_string(root().join("docs/languages.md")).unwrap();
    let (_, table) = page.split_once("take along these files").unwrap();
    let (_, table) = table.split_once("\n\n").unwrap();
    let mut rows = table
        .split("\n\n")
        .next()
        .unwrap()
        .lines()
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let column = rows.next().unwrap().iter().position(|head| *head == language).unwrap();
    let mut all = Vec::new();
    for row in rows.skip(1) {
        for entry in without_notes(row[column]).split(", ").filter(|entry| entry.contains('`')) {
            let paths: Vec<&str> = entry.split('`').skip(1).step_by(2).collect();
            let path = paths[0];
            let is_of_root = path.starts_with("guests/") || path.starts_with("wit/");
            let folder =
                if is_of_root { String::new() } else { format!("guests/examples/{guest}/") };
            let to = paths.get(1).unwrap_or(&path);
            all.push(Taken { from: format!("{folder}{path}").into(), to: (*to).to_owned() });
        }
    }
    all
}

/// The files below a path of this repository, without those that tools write.
fn files(path: &Path) -> Vec<PathBuf> {
    let list = "git ls-files --cached --others --exclude-standard";
    let list = format!("{list} -- {}", path.display());
    let files = shell(&root(), &list);
    // Git still lists a file that is deleted and not yet committed.
    files.lines().map(PathBuf::from).filter(|file| root().join(file).is_file()).collect()
}

/// Copies what the table names to a folder of its own.
fn take(language: &str, guest: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for Taken { from, to } in taken(language, guest) {
        let found = files(&from);
        assert!(!found.is_empty(), "{} does not exist", from.display());
        for file in found {
            let within = file.strip_prefix(&from).unwrap();
            // Joining nothing would add a separator to the name of a file.
            let to = folder.path().join(&to);
            let to = if within == Path::new("") { to } else { to.join(within) };
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(root().join(&file), to).unwrap();
        }
    }
    folder
}

/// Replaces the paths in a file that the author changes.
fn replace(folder: &TempDir, file: &str, before: &str, after: &str) {
    let file = folder.path().join(file);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(before), "{text}");
    fs::write(file, text.replace(before, after)).unwrap();
}

#[test]
fn table_names_each_file_of_the_guests() {
    for (language, guest) in [
        ("Go", "cron-go"),
        ("Python", "quota-py"),
        ("TypeScript", "pages-ts"),
        ("JavaScript", "labels-js"),
    ] {
        let folder = PathBuf::from("guests/examples").join(guest);
        let is_left = |file: &PathBuf| LEFT.iter().any(|left| file.starts_with(folder.join(left)));
        let own: BTreeSet<PathBuf> =
            files(&folder).into_iter().filter(|file| !is_left(file)).collect();
        let taken = taken(language, guest).into_iter().map(|one| one.from);
        let named: BTreeSet<PathBuf> = taken.filter(|from| from.starts_with(&folder)).collect();
        assert_eq!(named, own, "{language}");
    }
}

#[test]
fn guest_in_go_needs_no_other_files() {
    let folder = take("Go", "cron-go");
    replace(&folder, "go.mod", "=> ../../sdk-go", "=> ./innkeeper");

    shell(folder.path(), "go vet ./... && go test ./...");
    shell(folder.path(), "innkeeper build");

    let golden = root().join("guests/examples/cron-go/golden.yaml");
    let render = "innkeeper render target/components/cron-go.wasm -f sample.yaml --golden";
    shell(folder.path(), &format!("{render} {}", golden.display()));
}

#[test]
fn guest_in_python_needs_no_other_files() {
    let folder = take("Python", "quota-py");
    symlink(tools("bin/mypy"), folder.path().join(".venv")).unwrap();

    shell(folder.path(), ".venv/bin/mypy . && .venv/bin/python -m unittest 2>&1");
    let build = "componentize-py --quiet --wit-path wit/guest.wit --world reconciler-guest";
    let build = format!(".venv/bin/{build} componentize --stub-wasi guest --output quota-py.wasm");
    shell(folder.path(), &build);

    let component = fs::read(folder.path().join("quota-py.wasm")).unwrap();
    assert!(component.starts_with(b"\0asm"), "no component");
}

/// Runs the scripts of a guest for node, which has the tools of a folder.
fn passes_its_scripts_and_builds(folder: &Path, tools: &Path, scripts: &[&str], component: &str) {
    symlink(tools.join("node_modules"), folder.join("node_modules")).unwrap();
    for script in scripts {
        shell(folder, &format!("npm run {script}"));
    }
    let component = fs::read(folder.join(component)).unwrap();
    assert!(component.starts_with(b"\0asm"), "no component");
}

#[test]
fn guest_in_typescript_needs_no_other_files() {
    let folder = take("TypeScript", "pages-ts");
    replace(&folder, "build.mjs", "'../../../wit/guest.wit'", "'wit/guest.wit'");
    replace(&folder, "tsconfig.json", "../../sdk-ts/src/", "./innkeeper/src/");

    let scripts = ["check", "test", "build"];
    let tools = tools("node_modules/typescript");
    passes_its_scripts_and_builds(folder.path(), &tools, &scripts, "pages-ts.wasm");
}

#[test]
fn guest_in_javascript_needs_no_other_files() {
    let folder = take("JavaScript", "labels-js");
    replace(&folder, "build.mjs", "'../../../wit/guest.wit'", "'wit/guest.wit'");
    replace(&folder, "labels.test.js", "'../../../wit'", "'wit'");

    let tools = tools("node_modules/@bytecodealliance");
    passes_its_scripts_and_builds(folder.path(), &tools, &["test", "build"], "labels-js.wasm");
}

/// The blocks of code of a page in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join(page)).unwrap();
    let start = format!("```{language}\n");
    let parts = page.split(&start).skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn guest_in_go_of_the_page_is_the_tested_one() {
    let file = "guests/sdk-go/guesttest/greeter_test.go";
    let source = fs::read_to_string(root().join(file)).unwrap();
    let (_, shown) = source.split_once("// What docs/languages.md shows begins here.\n\n").unwrap();
    let (shown, _) = shown.split_once("\n// What docs/languages.md shows ends here.").unwrap();
    assert!(
        blocks("docs/languages.md", "go").contains(&shown.to_owned()),
        "copy the guest of {file} into its block of docs/languages.md"
    );
}
