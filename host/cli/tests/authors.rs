//! The commands of a guest's author without a cluster: new, build, render with a golden file.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod author;
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use expect_test::{expect, expect_file};
use rustix::process::{Pid, Signal, kill_process};

use author::{commands, root, shell, shell_command, shell_output};
use support::{Files, component, done, failed, innkeeper, text};

/// Bound on a build, on a machine that is busy.
const BUILD: Duration = Duration::from_mins(5);

/// The files under a folder, in order.
fn tree(folder: &Path) -> Vec<String> {
    fn collect(folder: &Path, within: &str, found: &mut Vec<String>) {
        for entry in folder.read_dir().unwrap() {
            let entry = entry.unwrap();
            let name = format!("{within}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                collect(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }
    let mut found = Vec::new();
    collect(folder, "", &mut found);
    found.sort();
    found
}

#[test]
fn new_creates_a_crate_and_fails_when_the_folder_is_not_empty() {
    let files = Files::new();
    let folder = files.0.path().join("within/hello");
    let path = folder.to_str().unwrap();
    let new = ["new", "hello", "--kind", "Hello", "--group", "example.com", "--path", path];
    let output = done(&new);
    expect![[r#"
        Created the crate hello with 9 files in DIR
        Next:
          cd DIR
          cargo test
          innkeeper build
          innkeeper render target/components/hello.wasm -f sample.yaml
        README.md shows how to run the guest on a cluster.
    "#]]
    .assert_eq(&output.replace(path, "DIR"));
    expect![[r#"
        .cargo/config.toml
        .gitignore
        Cargo.toml
        README.md
        crd.json
        module.yaml
        sample.yaml
        src/lib.rs
        tests/guest.rs"#]]
    .assert_eq(&tree(&folder).join("\n"));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("innkeeper-sdk = { git = \"https://"), "{manifest}");

    fs::write(folder.join("src/lib.rs"), "mine").unwrap();
    failed(
        &new,
        1,
        &[(path, "DIR")],
        &expect![[r#"
            innkeeper: DIR exists and is not empty; choose another folder with --path, or remove it
        "#]],
    );
    assert_eq!(fs::read_to_string(folder.join("src/lib.rs")).unwrap(), "mine");
    failed(
        &["new", "hello", "--kind", "hello", "--group", "example.com", "--path", path],
        1,
        &[],
        &expect![[r#"
            innkeeper: --kind "hello" is no kind: it must begin with a capital letter and consist of at most 63 letters and digits, such as Greeting
        "#]],
    );
}

#[test]
fn build_fails_with_advice_without_a_crate_or_a_toolchain() {
    let files = Files::new();
    let folder = files.0.path().canonicalize().unwrap();
    let path = folder.to_str().unwrap();
    failed(
        &["build", path],
        1,
        &[(path, "DIR")],
        &expect![[r#"
            innkeeper: DIR has neither Cargo.toml nor go.mod; give the folder of a guest, or create one with `innkeeper new`
        "#]],
    );
    // A machine without any Rust.
    let output = Command::new(env!("CARGO_BIN_EXE_innkeeper"))
        .args(["build", path])
        .env("PATH", "/nonexistent")
        .env("RUSTC", "/nonexistent/rustc")
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    // The command finds Debian's toolchain without PATH, if it is installed.
    let is_debian = Path::new("/usr/bin/cargo").is_file();
    assert!(is_debian || stderr.contains("rustup target add wasm32-unknown-unknown"), "{stderr}");
    assert_eq!(output.status.code(), Some(1));
}

/// Runs the commands of docs/first-guest.md. Slow, since it compiles.
#[test]
fn new_guest_passes_its_tests_builds_and_renders_by_the_commands_of_the_page() {
    let document = fs::read_to_string(root().join("docs/first-guest.md")).unwrap();
    let offline = commands(&document, "## Build and test");
    // tests/cluster/tests/dev.rs runs these.
    let on_cluster = commands(&document, "## Install the guest");
    let changing = commands(&document, "## Change it while it runs");
    let files = Files::new();
    let mut folder = files.0.path().to_owned();
    // The checkout that the page begins with.
    std::os::unix::fs::symlink(root(), folder.join("innkeeper")).unwrap();
    for line in &offline {
        if let Some(into) = line.strip_prefix("cd ") {
            folder = folder.join(into);
            // The versions of dependencies that are compiled already.
            fs::copy(root().join("guests/Cargo.lock"), folder.join("Cargo.lock")).unwrap();
            shell(&folder, "cargo fmt --check");
            continue;
        }
        let output = shell(&folder, line);
        if line.starts_with("innkeeper build") {
            assert!(output.contains("  ConfigMaps  1\n"), "{output}");
            assert!(output.contains("  size        "), "{output}");
            assert!(output.contains("/hello/target/components/hello.wasm\n"), "{output}");
        }
        if line.starts_with("innkeeper render") {
            assert!(output.contains("data:\n  text: Good day\n"), "{output}");
        }
    }
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let again = commands(&readme, "## Without a cluster");
    assert_eq!(again[..3], offline[2..]);
    for line in &again[3..] {
        shell(&folder, line);
    }
    assert_eq!(commands(&readme, "## On a cluster"), [&on_cluster[..4], &changing[..1]].concat());

    shell(&folder, &changing[1]);
    shell(&folder, "cargo test");
    stale_definition_is_named_by_build_dev_and_render(&folder);
}

/// A field of the types that `crd.json` lacks, which the API server would drop.
fn stale_definition_is_named_by_build_dev_and_render(folder: &Path) {
    let library = folder.join("src/lib.rs");
    let source = fs::read_to_string(&library).unwrap();
    let field = "    pub text: String,\n";
    assert!(source.contains(field), "{source}");
    let more = format!("{field}    /// How often.\n    pub times: Option<u32>,\n");
    fs::write(&library, source.replace(field, &more)).unwrap();
    let sample = fs::read_to_string(folder.join("sample.yaml")).unwrap();
    fs::write(folder.join("times.yaml"), format!("{sample}  times: 2\n")).unwrap();

    let (_, built) = shell_output(folder, "innkeeper build");
    let developed = first_errors_of_dev(folder);
    let render = "innkeeper render target/components/hello.wasm -f times.yaml";
    let (_, rendered) = shell_output(folder, render);

    let stale = "warning: the definition of Hello differs from the guest's types: spec.times is missing; the API server drops a field that its definition lacks: write crd.json again from the types (`UPDATE_EXPECT=1 cargo test`, if a test compares the two), and build again";
    assert!(built.contains(stale), "{built}");
    assert!(developed.contains(stale), "{developed}");
    let dropped = "warning: times.yaml, document 1: unknown field \"spec.times\", which the API server would drop";
    assert!(rendered.contains(dropped), "{rendered}");
}

/// Runs `innkeeper dev` for a Module in a folder until the component is there. Returns its errors.
fn first_errors_of_dev(folder: &Path) -> String {
    let modules = folder.join("modules");
    fs::create_dir(&modules).unwrap();
    let module = "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {name: hello}\nspec: {source: {file: hello.wasm}}\n";
    fs::write(modules.join("hello.yaml"), module).unwrap();
    let mut dev = shell_command(folder, "exec innkeeper dev --module hello --modules modules");
    let mut dev = dev.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(dev.stdout.take().unwrap()).lines().map(Result::unwrap);
    let (sent, written) = mpsc::channel();
    let reading = thread::spawn(move || {
        for line in lines.filter(|line| line.contains(" is written; ")) {
            let _ = sent.send(line);
        }
    });
    let result = written.recv_timeout(BUILD);
    // It may have ended with an error, which is among what it printed.
    let _ = kill_process(Pid::from_child(&dev), Signal::INT);
    let mut printed = String::new();
    dev.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    let status = dev.wait().unwrap();
    reading.join().unwrap();
    assert!(result.is_ok() && status.success(), "{result:?}, {status}: {printed}");
    assert!(modules.join("hello.wasm").is_file());
    printed
}

const STACK: &str = "\
apiVersion: example.innkeeper.dev/v1
kind: Stack
metadata: {name: app, namespace: web, uid: u1}
spec: {layers: 2}
";

fn layer(name: &str, metadata: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: web, {metadata}}}\n"
    )
}

/// The objects of the Stack `app`: its layers, and one that is retained.
fn made() -> String {
    let owner = "ownerReferences: [{apiVersion: example.innkeeper.dev/v1, kind: Stack, name: app, uid: u1, controller: true}]";
    // The label is the identity of this Stack, as the operator writes it.
    let kept = "labels: {innkeeper.dev/retained-for: KEPT}";
    [
        layer("app-0", owner),
        layer("app-1", owner),
        layer("app-kept", kept),
        layer("other", "uid: x"),
    ]
    .concat()
}

#[test]
fn render_shows_deleted_and_retained_objects_when_the_primary_is_deleted() {
    let files = Files::new();
    let guest = component("stack");
    let stack = files.write("stack.yaml", STACK);
    // The label of the rendered object marks an object as retained.
    let desired = done(&["render", &guest, "-f", &stack]);
    let label = desired.split_once("innkeeper.dev/retained-for: ").unwrap().1;
    let made = files.write("made.yaml", made().replace("KEPT", label.lines().next().unwrap()));
    let render = |extra: &[&str]| {
        let mut all = vec!["render", &guest, "-f", &stack, "-f", &made];
        all.extend(extra);
        done(&all)
    };
    let whole = render(&[]);
    assert!(whole.contains("#   layers: 2\n") && !whole.contains("wouldDelete"), "{whole}");
    assert!(whole.contains("reason: AllReady"), "the retained object is missing: {whole}");
    let deleting = render(&["--deleting", "--now", "2026-01-01T00:00:00Z"]);
    let (comments, objects) = deleting.split_once("---\n").unwrap();
    assert!(
        comments.contains("#   layers: 2\n# wouldDelete:\n# - ConfigMap web/app-1\n"),
        "{comments}"
    );
    assert!(!comments.contains("finalized"), "{comments}");
    assert!(objects.contains("name: app-0") && !objects.contains("name: app-1"), "{objects}");

    // Only the retained object is left.
    let alone = done(&["render", &guest, "-f", &stack, "--deleting"]);
    assert!(alone.contains("# finalized: true\n"), "{alone}");
    let fewer = files.write("fewer.yaml", STACK.replace("layers: 2", "layers: 1"));
    let fewer = done(&["render", &guest, "-f", &fewer, "-f", &made]);
    assert!(fewer.contains("# wouldDelete:\n# - ConfigMap web/app-1\n"), "{fewer}");
    // A file from the cluster may have a deletion timestamp.
    let going = STACK.replace("uid: u1", "uid: u1, deletionTimestamp: '2026-01-01T00:00:00Z'");
    let going = files.write("going.yaml", going);
    assert_eq!(done(&["render", &guest, "-f", &going, "-f", &made]), deleting);

    // A primary written by hand has no uid; objects of the cluster name its uid there.
    let by_hand = STACK.replace(", uid: u1", "").replace("layers: 2", "layers: 1");
    let by_hand = files.write("by-hand.yaml", by_hand);
    let by_hand = done(&["render", &guest, "-f", &by_hand, "-f", &made]);
    assert!(by_hand.contains("# wouldDelete:\n# - ConfigMap web/app-1\n"), "{by_hand}");

    let settings = files.write(
        "settings.yaml",
        "apiVersion: example.innkeeper.dev/v1\nkind: Settings\nmetadata: {name: a}\nspec: {names: [a], text: x}\n",
    );
    failed(
        &["render", &component("settings"), "-f", &settings, "--deleting"],
        1,
        &[],
        &expect![[r#"
            innkeeper: settings has no finalizer, so the host does not run it for a Settings that is being deleted: Kubernetes deletes the objects that it owns (`Describe::finalizes` of the SDK adds a finalizer)
        "#]],
    );
}

#[test]
fn render_treats_the_primary_as_the_definition_of_the_guest_says() {
    let files = Files::new();
    let guest = component("stack");
    let render = |text: &str| {
        let file = files.write("stack.yaml", text);
        innkeeper(&["render", &guest, "-f", &file])
    };
    let new = STACK.replace(", uid: u1", "");
    let output = render(&new.replace("layers: 2", "layers: 2, colour: red"));
    let place = format!("{}/stack.yaml, document 1", files.0.path().display());
    assert_eq!(
        text(&output.stderr),
        format!(
            "warning: {place}: unknown field \"spec.colour\", which the API server would drop\n"
        )
    );
    assert_eq!(output.status.code(), Some(0));

    let invalid = new.replace("layers: 2", "layers: two");
    let refused = text(&render(&invalid).stderr);
    let why = format!("{place}: the API server would refuse this Stack: ");
    assert!(refused.starts_with(&format!("innkeeper: {why}")), "{refused}");
    assert!(refused.contains("spec.layers"), "{refused}");
    // An object of a cluster may be older than the rule that it breaks.
    let stored = invalid.replace("namespace: web", "namespace: web, uid: u1");
    let output = render(&stored);
    let warning = text(&output.stderr);
    assert!(warning.starts_with(&format!("warning: {why}")), "{warning}");
}

#[test]
fn render_compares_with_a_golden_file_and_updates_it_on_request() {
    let files = Files::new();
    let guest = component("stack");
    let stack = files.write("stack.yaml", STACK);
    let golden = format!("{}/stack.golden.yaml", files.0.path().display());
    let hidden = [(golden.as_str(), "GOLDEN")];
    let compare = ["render", &guest, "-f", &stack, "--golden", &golden];
    let update = [&compare[..], &["--update"]].concat();
    failed(
        &compare,
        1,
        &hidden,
        &expect![[r#"
            innkeeper: --golden GOLDEN does not exist; run with --update to create it
        "#]],
    );
    assert_eq!(done(&update), format!("{golden} created\n"));
    assert_eq!(done(&compare), "");
    assert_eq!(fs::read_to_string(&golden).unwrap(), done(&["render", &guest, "-f", &stack]));

    files.write("stack.yaml", STACK.replace("layers: 2", "layers: 1"));
    let output = innkeeper(&compare);
    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        innkeeper: the desired state differs from GOLDEN; if the change is intended, run with --update
    "#]]
    .assert_eq(&text(&output.stderr).replace(&golden, "GOLDEN"));
    let difference = text(&output.stdout);
    expect![[r#"
        --- GOLDEN
        +++ desired state
        @@ -15,14 +15,6 @@
           name: app-0
           namespace: web
         ---
        -apiVersion: v1
        -data:
        -  layer: '1'
        -kind: ConfigMap
        -metadata:
        -  name: app-1
        -  namespace: web
        ----
         # policy: orphan
         apiVersion: v1
         data:
    "#]]
    .assert_eq(&difference.replace(&golden, "GOLDEN"));
    // An update prints the difference too.
    assert_eq!(done(&update), difference);
    assert_eq!(done(&compare), "");
    let output = innkeeper(&["render", &guest, "-f", &stack, "--update"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// The rendered objects of a guest for its sample, with the parameters of its Module.
fn rendered_sample(name: &str, parameters: &str) -> String {
    let sample = root().join("guests/examples").join(name).join("sample.yaml");
    done(&["render", &component(name), "-f", sample.to_str().unwrap(), "--parameters", parameters])
}

#[test]
fn python_guest_renders_its_golden_file() {
    let sizes = "sizes: {small: {hard: {pods: 10, requests.cpu: '2'}, container: {cpu: 100m}}}";
    expect_file!["../../../guests/examples/quota-py/golden.yaml"]
        .assert_eq(&rendered_sample("quota-py", sizes));
}

#[test]
fn go_guest_renders_its_golden_file() {
    let sample = root().join("guests/examples/cron-go/sample.yaml");
    expect_file!["../../../guests/examples/cron-go/golden.yaml"].assert_eq(&done(&[
        "render",
        &component("cron-go"),
        "-f",
        sample.to_str().unwrap(),
    ]));
}

#[test]
fn javascript_guest_renders_its_golden_file() {
    expect_file!["../../../guests/examples/labels-js/golden.yaml"]
        .assert_eq(&rendered_sample("labels-js", "labels: {team: a, tier: web}"));
}

#[test]
fn typescript_guest_renders_its_golden_file() {
    expect_file!["../../../guests/examples/pages-ts/golden.yaml"]
        .assert_eq(&rendered_sample("pages-ts", "footer: The end"));
}
