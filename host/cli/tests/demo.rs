//! `innkeeper demo` with the components that `cargo xtask guests` has built.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZeroU16;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

/// The result of each scenario, in order.
const RESULTS: [&str; 8] = [
    "= All samples are ready,",
    "= Service production routes to example-maintpage-maintpage-pod",
    "= Service production routes to production-",
    "= Service podroute-service routes to 5 pods",
    "= Service podroute-service routes to 2 pods",
    "= Service foodb routes to foodb-",
    "= The host previewed the new revision",
    "= The Kabocha, its children and their objects are gone.",
];

fn demo(cache: &Path, arguments: &[&str]) -> Command {
    let components = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guests/target/components");
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.args(["demo", "--components", components, "--cache-dir"]).arg(cache).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The lines of the demo that README.md shows: the block of text that follows the demo's command.
fn readme_lines() -> Vec<&'static str> {
    let readme = include_str!("../../../README.md");
    let (_, after_command) = readme.split_once("\ncargo xtask demo\n").unwrap();
    let (_, block) = after_command.split_once("\n```text\n").unwrap();
    let lines: Vec<&str> = block.lines().take_while(|line| *line != "```").collect();
    assert!(lines.len() > 3, "README.md shows less of the demo: {lines:?}");
    lines
}

/// A line of the demo without values that differ in each run: times in ms, and how many more
/// changes woke the same reconcile.
fn without_chance(line: &str) -> String {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    let mut words: Vec<&str> = line.split(' ').collect();
    for index in 1..words.len() {
        if words[index].starts_with("ms") && is_number(words[index - 1]) {
            words[index - 1] = "TIME";
        }
    }
    let text = words.join(" ");
    match text.split_once(", and ").map(|(before, rest)| (before, rest.split_once(" more"))) {
        Some((before, Some((count, after)))) if is_number(count) => format!("{before}{after}"),
        _ => text,
    }
}

#[test]
fn lines_of_the_demo_are_compared_without_times() {
    let line = "  a  reconciled because Pod b changed, and 2 more: 1 changed, status (ok, 41 ms)";
    let expected = "  a  reconciled because Pod b changed: 1 changed, status (ok, TIME ms)";
    assert_eq!(without_chance(line), expected);
    assert_eq!(without_chance("= Ready, and it serves."), "= Ready, and it serves.");
}

/// The kubeconfig in the second line of the output.
fn kubeconfig(line: &str) -> &Path {
    Path::new(line.trim().strip_prefix("export KUBECONFIG=").unwrap())
}

/// The answer of the API server over plain HTTP.
fn get(config: &Value, path: &str) -> Value {
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let token = config["users"][0]["user"]["token"].as_str().unwrap();
    let address = server.strip_prefix("https://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let begin = answer.find('{').unwrap();
    let end = answer.rfind('}').unwrap();
    serde_json::from_str(&answer[begin..=end]).unwrap()
}

#[test]
fn demo_succeeds_and_its_cluster_answers_until_an_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("code");

    let output = demo(&cache, &["--once", "--fast"]).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{stderr}{stdout}");
    let mut lines = stdout.lines();
    for result in RESULTS {
        assert!(lines.any(|line| line.starts_with(result)), "{result}, in order, in:\n{stdout}");
    }
    let printed: Vec<String> = stdout.lines().map(without_chance).collect();
    for line in readme_lines() {
        let line = without_chance(line);
        assert!(printed.contains(&line), "README.md has {line:?}, but the demo prints:\n{stdout}");
    }
    assert!(!kubeconfig(stdout.lines().nth(1).unwrap()).exists());
    for step in ["[1/8] Compiling guest 1 of 7: imo", "[8/8] Starting the operator"] {
        assert!(stdout.lines().any(|line| line == step), "{step}, in:\n{stdout}");
    }

    // A client reads the cluster of a demo at the pace of the clock.
    let mut child = demo(&cache, &[]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut until = |what: &str| loop {
        let line = lines.next().expect("the demo ended").unwrap();
        if line.contains(what) {
            return line;
        }
    };
    let line = until("export KUBECONFIG=");
    let path = kubeconfig(&line);
    until("All samples are ready");
    let config: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let modules = get(&config, "/apis/innkeeper.dev/v1alpha1/modules");
    assert_eq!(modules["items"].as_array().unwrap().len(), 6, "{modules:#}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn demo_compiles_nothing_after_compile_only() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("code");
    let output = demo(&cache, &["--compile-only"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
    let files = || {
        let entries = std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path());
        entries.collect::<std::collections::BTreeSet<_>>()
    };
    let before = files();
    assert!(before.len() >= 7, "each guest and one in two versions: {before:?}");
    let output = demo(&cache, &["--once", "--fast"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files(), before, "the second demo compiled a guest again");
}

#[test]
fn missing_component_error_names_the_command_that_builds_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    let output = command.args(["demo", "--components"]).arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cargo xtask guests"), "{stderr}");
}

#[test]
fn kubeconfig_with_several_contexts_is_refused_without_context() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let text = "current-context: here\ncontexts: [{name: here}, {name: there}]\n";
    std::fs::write(&kubeconfig, text).unwrap();
    let mut command = demo(&folder.path().join("code"), &["--once"]);
    let output = command.arg("--kubeconfig").arg(&kubeconfig).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("has the contexts here, there: choose the demo's cluster with --context"),
        "{stderr}"
    );
}

/// Maximum time until a terminal shows something.
const TIMEOUT: Duration = Duration::from_mins(5);

/// A terminal and its screen.
struct Terminal {
    ours: File,
    theirs: File,
    written: Receiver<Vec<u8>>,
    shown: vt100::Parser,
}

impl Terminal {
    fn new(rows: u16, columns: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let ours = File::from(ours);
        let (write, written) = channel();
        let mut reader = ours.try_clone().unwrap();
        // The thread ends when the other end is closed.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if write.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut terminal =
            Self { ours, theirs, written, shown: vt100::Parser::new(cells(1), cells(1), 0) };
        terminal.resize(rows, columns);
        terminal
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.ours, size).unwrap();
        self.shown.screen_mut().set_size(cells(rows), cells(columns));
    }

    fn rows(&self) -> Vec<String> {
        let (_, columns) = self.shown.screen().size();
        self.shown.screen().rows(0, columns.get()).collect()
    }

    /// Reads until the screen meets a condition.
    fn until(&mut self, what: &str, looks: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !looks(&self.rows()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.written.recv_timeout(left) else {
                panic!("{what}: not shown; the screen is:\n{}", self.rows().join("\n"));
            };
            self.shown.process(&bytes);
        }
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

#[test]
fn tables_fit_the_terminal_when_its_size_changes() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::new(60, 160);
    let mut command = demo(&folder.path().join("code"), &[]);
    command.stdout(terminal.theirs.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    // The command has the other end open too.
    drop(command);

    let has = |rows: &[String], what: &str| rows.iter().any(|row| row.contains(what));
    terminal.until("the first step", |rows| has(rows, "[1/8] Compiling guest 1 of 7: imo"));
    terminal.until("all tables", |rows| {
        rows[0].starts_with("Innkeeper, ")
            && ["KIND ", "OBJECT ", "RECONCILED ", "LOG"].iter().all(|head| has(rows, head))
            && has(rows, "Deployment demo/pod-route changed")
    });
    assert!(terminal.shown.screen().alternate_screen());
    for (rows, columns) in [(20, 60), (8, 30), (30, 90)] {
        terminal.resize(rows, columns);
        terminal.until("it fits", |shown| {
            shown[0].starts_with("Innkeeper, ")
                && shown[1].starts_with("export KUBECONFIG=")
                && has(shown, "... and ")
                && shown.iter().any(|row| row.ends_with('…'))
        });
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // The previous content of the terminal comes back.
    let deadline = Instant::now() + TIMEOUT;
    while terminal.shown.screen().alternate_screen() || terminal.shown.screen().hide_cursor() {
        let left = deadline.saturating_duration_since(Instant::now());
        let bytes = terminal.written.recv_timeout(left).expect("the terminal is not reset");
        terminal.shown.process(&bytes);
    }
}
