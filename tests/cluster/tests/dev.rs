//! A guest's author at work on a real API server: the commands of the documents, and `innkeeper
//! dev`, which builds what is saved and swaps it into the running host. Slow, since it compiles.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::print_stderr, reason = "figures for people")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use innkeeper_cluster_tests::stage::{MODULES, program, root};
use innkeeper_cluster_tests::{Host, HostOptions, Kind, Stage, eventually};
use innkeeper_controlplane::{Programs, Watchdog};
use innkeeper_toolchain::Toolchain;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};

/// Bound on a build and what follows it, on a machine that is busy.
const BUILD: Duration = Duration::from_mins(5);

/// What the guest of `innkeeper new` does, in its source.
const AS_IT_IS: &str = ".data(\"text\", &spec.text)";

/// A folder of an author, and how commands are run there.
struct Author {
    folder: TempDir,
    kubeconfig: PathBuf,
}

impl Author {
    fn new(kubeconfig: impl Into<PathBuf>) -> Result<Self> {
        let folder = TempDir::new()?;
        let programs = folder.path().join("bin");
        fs::create_dir(&programs)?;
        std::os::unix::fs::symlink(program()?, programs.join("innkeeper"))?;
        // The control plane's own kubectl.
        let kubectl = Programs::find(&mut |_| ())?.command("kubectl")?;
        let words: Vec<_> = std::iter::once(kubectl.get_program())
            .chain(kubectl.get_args())
            .map(|word| format!("'{}'", word.display()))
            .collect();
        // The checkout that the page begins with.
        std::os::unix::fs::symlink(root(), folder.path().join("innkeeper"))?;
        let script = programs.join("kubectl");
        fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")))?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(Self { folder, kubeconfig: kubeconfig.into() })
    }

    /// Where the crate lies.
    fn guest(&self) -> PathBuf {
        self.folder.path().join("hello")
    }

    /// A command in a shell, as a document has it.
    fn command(&self, folder: &Path, line: &str) -> Result<Command> {
        // Where the repository's own guests are built: what they have in common is there already.
        let guests = root().join("guests");
        let target = Toolchain::find(&guests)?.shared_target_dir(&guests)?;
        let mut path = self.folder.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        command
            .args(["-ec", line])
            .current_dir(folder)
            .env("PATH", path)
            .env("KUBECONFIG", &self.kubeconfig)
            .env_remove("INNKEEPER_SDK")
            .env("CARGO_TARGET_DIR", target)
            .stdin(Stdio::null());
        Ok(command)
    }

    async fn run(&self, folder: &Path, line: &str) -> Result<String> {
        let output = self.command(folder, line)?.output().await?;
        if !output.status.success() {
            bail!(
                "{line}\n{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The source as it was made.
    fn original(&self) -> PathBuf {
        self.folder.path().join("lib.rs")
    }

    /// Saves the guest's source with this in place of what it does.
    fn save(&self, doing: &str) -> Result<()> {
        let path = self.guest().join("src/lib.rs");
        let text = fs::read_to_string(self.original())?;
        assert!(text.contains(AS_IT_IS), "{text}");
        fs::write(&path, text.replace(AS_IT_IS, doing))?;
        Ok(())
    }
}

/// A running `innkeeper dev`.
struct Dev {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    _watchdog: Watchdog,
}

impl Dev {
    fn start(mut command: Command, folder: &Path) -> Result<Self> {
        let mut watchdog = Watchdog::start(folder)?;
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
        watchdog.guard(child.id().unwrap_or_default())?;
        let lines = Arc::default();
        tokio::spawn(collect(child.stdout.take().unwrap(), Arc::clone(&lines)));
        tokio::spawn(collect(child.stderr.take().unwrap(), Arc::clone(&lines)));
        Ok(Self { child, lines, _watchdog: watchdog })
    }

    /// Waits until it says this, after what was printed before the last call.
    async fn says(&mut self, text: &str) -> Result<()> {
        eventually(&format!("dev says {text:?}"), BUILD, async || {
            if let Some(status) = self.child.try_wait()? {
                bail!("dev ended ({status}):\n{}", self.lines.lock().unwrap().join("\n"));
            }
            let mut lines = self.lines.lock().unwrap();
            Ok(match lines.iter().position(|line| line.contains(text)) {
                Some(at) => {
                    lines.drain(..=at);
                    Ok(())
                }
                None => Err(lines.join("\n")),
            })
        })
        .await
    }

    /// Ctrl-C, and waits for the end.
    async fn interrupt(mut self) -> Result<()> {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        kill_process(pid.unwrap(), Signal::INT)?;
        let status = tokio::time::timeout(Duration::from_secs(10), self.child.wait()).await??;
        assert!(status.success(), "{status}: {}", self.lines.lock().unwrap().join("\n"));
        Ok(())
    }
}

async fn collect(stream: impl AsyncRead + Unpin, lines: Arc<Mutex<Vec<String>>>) {
    let mut reader = BufReader::new(stream).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        lines.lock().unwrap().push(line);
    }
}

/// The shell's lines of a document's section.
fn commands(document: &str, heading: &str) -> Vec<String> {
    let section = document.split_once(&format!("{heading}\n")).unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

async fn until_text(stage: &Stage, text: &str) -> Result<()> {
    let at = (Kind::CONFIG_MAP, "default", "first");
    let what = format!("the ConfigMap says {text}");
    stage.admin.until(&what, BUILD, at, |one| one["data"]["text"] == text).await?;
    Ok(())
}

/// The ConfigMaps that were pushed, without the host's copies.
async fn pushed(stage: &Stage) -> Result<Vec<String>> {
    let all = stage.admin.list(Kind::CONFIG_MAP, MODULES).await?;
    let names = all.iter().filter_map(|one| one["metadata"]["name"].as_str());
    let mine = names.filter(|name| name.starts_with("hello-") && !name.contains("-copy-"));
    Ok(mine.map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn saved_guest_becomes_active_unless_it_is_broken_or_would_delete() -> Result<()> {
    let stage = Stage::new().await?;
    let host = stage.host().await?;
    let author = Author::new(stage.plane.kubeconfig())?;
    let document = fs::read_to_string(root().join("docs/first-guest.md"))?;
    new_guest_of_the_document(&author, &document).await?;
    guest_of_the_document_serves(&author, &document).await?;

    let [dev, change, remove_directly @ ..] =
        &commands(&document, "## Change it while it runs")[..]
    else {
        bail!("the document shows no change");
    };
    let dev = author.command(&author.guest(), &format!("exec {dev}"))?;
    let mut dev = Dev::start(dev, author.folder.path())?;
    dev.says("hello of the cluster").await?;
    dev.says(" is active").await?;
    change_of_the_document_is_shown_and_serves(&stage, &author, &mut dev, change).await?;
    change_that_does_not_build_is_reported(&author, &mut dev).await?;
    change_that_would_delete_is_shown_and_held(&stage, &author, &mut dev).await?;
    next_change_replaces_what_was_pushed_before(&stage, &author, &mut dev).await?;
    dev.interrupt().await?;

    author.save(".data(\"text\", format!(\"{}?!\", spec.text))")?;
    let mut printed = String::new();
    for line in remove_directly {
        printed = author.run(&author.guest(), line).await?;
    }
    assert!(printed.contains("Active:     hello 0.1.0"), "{printed}");
    until_text(&stage, "Good day?!").await?;
    host.stop(Duration::from_secs(10)).await?;
    into_a_folder(&stage, &author).await
}

/// A program that the document leaves running in a terminal of its own.
fn start_terminal(author: &Author, line: &str, watchdog: &mut Watchdog) -> Result<Child> {
    let mut command = author.command(&author.guest(), &format!("exec {line}"))?;
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
    watchdog.guard(child.id().unwrap_or_default())?;
    Ok(child)
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_of_the_page_serves_on_a_simulated_cluster() -> Result<()> {
    let mut author = Author::new("unset")?;
    let document = fs::read_to_string(root().join("docs/first-guest.md"))?;
    let own = commands(&document, "## Start a simulated cluster");
    let [simulate, export, install @ .., run] = &own[..] else {
        bail!("the document shows no simulated cluster");
    };
    author.kubeconfig = author.guest().join("hello.kubeconfig");
    assert_eq!(export, "export KUBECONFIG=$PWD/hello.kubeconfig");
    new_guest_of_the_document(&author, &document).await?;
    let mut watchdog = Watchdog::start(author.folder.path())?;
    let _cluster = start_terminal(&author, simulate, &mut watchdog)?;
    eventually("the simulated cluster runs", BUILD, async || {
        Ok(if author.kubeconfig.is_file() { Ok(()) } else { Err("no kubeconfig".to_owned()) })
    })
    .await?;
    for line in install {
        author.run(&author.guest(), line).await?;
    }
    // A port that no other test has.
    let mut host = start_terminal(&author, &format!("{run} --bind 127.0.0.1:0"), &mut watchdog)?;
    guest_of_the_document_serves(&author, &document).await?;
    // Otherwise it would install the guest's definition again.
    host.kill().await?;
    push_names_the_definitions_that_differ(&author).await?;
    dev_names_the_definitions_that_differ(&author).await
}

/// A definition in the cluster that lacks a rule, and a `crd.json` newer than the component.
async fn push_names_the_definitions_that_differ(author: &Author) -> Result<()> {
    let guest = author.guest();
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/text/minLength";
    let patch = json!([{"op": "remove", "path": field}]);
    let lines = [
        format!("kubectl patch crd hellos.example.com --type json -p '{patch}'"),
        "sed -i 's/\"Text\"/\"Words\"/' crd.json".to_owned(),
        "innkeeper push target/components/hello.wasm --module hello 2>&1".to_owned(),
    ];
    let mut printed = String::new();
    for line in &lines {
        printed = author.run(&guest, line).await?;
    }
    let place = ".schema.openAPIV3Schema.properties.spec.properties.text.minLength";
    let installed = format!("{place}; the host installs the guest's if it only adds to it\n");
    assert!(printed.contains("the installed definition hellos.example.com differs"), "{printed}");
    assert!(printed.contains(&installed), "{printed}");
    assert!(printed.contains("crd.json has changed since the component was built"), "{printed}");
    assert!(printed.contains("run `innkeeper build`"), "{printed}");
    Ok(())
}

/// Both differences: `innkeeper dev` builds the component with the changed `crd.json`.
async fn dev_names_the_definitions_that_differ(author: &Author) -> Result<()> {
    let dev = author.command(&author.guest(), "exec innkeeper dev --module hello")?;
    let mut dev = Dev::start(dev, author.folder.path())?;
    dev.says("the installed definition hellos.example.com differs from the guest's in ").await?;
    dev.interrupt().await
}

/// Makes and builds the guest of the document.
async fn new_guest_of_the_document(author: &Author, document: &str) -> Result<()> {
    let offline = commands(document, "## Build and test");
    author.run(author.folder.path(), &offline[0]).await?;
    let guest = author.guest();
    fs::copy(guest.join("src/lib.rs"), author.original())?;
    // The versions of dependencies that are compiled already.
    fs::copy(root().join("guests/Cargo.lock"), guest.join("Cargo.lock"))?;
    author.run(&guest, "innkeeper build").await?;
    Ok(())
}

/// The commands of the document make a guest that serves on the cluster.
async fn guest_of_the_document_serves(author: &Author, document: &str) -> Result<()> {
    let guest = author.guest();
    let mut printed = String::new();
    for line in commands(document, "## Install the guest") {
        printed = author.run(&guest, &line).await?;
    }
    assert_eq!(printed, "Good day", "what the last command of the document shows");
    Ok(())
}

async fn change_of_the_document_is_shown_and_serves(
    stage: &Stage,
    author: &Author,
    dev: &mut Dev,
    change: &str,
) -> Result<()> {
    let saved = Instant::now();
    author.run(&author.guest(), change).await?;
    dev.says("built ").await?;
    eprintln!("from save to component: {:.1} s", saved.elapsed().as_secs_f64());
    // A figure of docs/benchmarks.md, which no test asserts: it depends on the machine.
    until_text(stage, "GOOD DAY").await?;
    eprintln!("from save to cluster: {:.1} s", saved.elapsed().as_secs_f64());
    dev.says(" is active").await?;
    dev.says("preview before its activation for 1 of 1 primary: 0 to create, 1 to change, 0 to delete, 0 failing").await?;
    dev.says("change   ConfigMap default/first .data.text").await
}

async fn change_that_does_not_build_is_reported(author: &Author, dev: &mut Dev) -> Result<()> {
    author.save(".data(\"text\", 1 +)")?;
    dev.says("error: expected expression").await?;
    dev.says("hello does not build").await
}

async fn change_that_would_delete_is_shown_and_held(
    stage: &Stage,
    author: &Author,
    dev: &mut Dev,
) -> Result<()> {
    let source = fs::read_to_string(author.original())?;
    let object = "            .object(ConfigMap::new(&name).data(\"text\", &spec.text))\n";
    assert!(source.contains(object), "{source}");
    fs::write(
        author.guest().join("src/lib.rs"),
        source.replace(object, "            .object(ConfigMap::new(\"other\"))\n"),
    )?;
    dev.says("Held WouldDelete").await?;
    dev.says("1 to delete").await?;
    dev.says("ConfigMap default/first").await?;
    dev.says("innkeeper modules approve hello").await?;
    until_text(stage, "GOOD DAY").await
}

/// Nothing is left of revisions that are no longer active.
async fn next_change_replaces_what_was_pushed_before(
    stage: &Stage,
    author: &Author,
    dev: &mut Dev,
) -> Result<()> {
    author.save(".data(\"text\", format!(\"{}!\", spec.text))")?;
    dev.says(" is active").await?;
    until_text(stage, "Good day!").await?;
    eventually("what was pushed before is gone", BUILD, async || {
        let names = pushed(stage).await?;
        // The first is the person's, not this command's.
        Ok(if names.len() == 2 { Ok(()) } else { Err(names.join(", ")) })
    })
    .await
}

/// The same for a host that takes its Modules from a folder.
async fn into_a_folder(stage: &Stage, author: &Author) -> Result<()> {
    let folder = author.folder.path().join("modules");
    fs::create_dir(&folder)?;
    let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "hello"},
        "spec": {"source": {"file": "hello.wasm"}, "serviceAccountName": "hello",
            "allowedCRDGroups": ["example.com"]}});
    fs::write(folder.join("hello.json"), module.to_string())?;
    let options =
        HostOptions { modules: Some(folder.clone()), ..HostOptions::new(stage.kubeconfig()) };
    let _host = Host::start(&options)?;
    let line = format!("exec innkeeper dev --module hello --modules '{}'", folder.display());
    let mut dev = Dev::start(author.command(&author.guest(), &line)?, author.folder.path())?;
    dev.says(" is written").await?;
    author.save(".data(\"text\", format!(\"{}?\", spec.text))")?;
    dev.says(" is written").await?;
    until_text(stage, "Good day?").await?;
    // Also while the compiler is at work.
    author.save(".data(\"text\", format!(\"{}...\", spec.text))")?;
    dev.says("Compiling hello").await?;
    dev.interrupt().await
}
