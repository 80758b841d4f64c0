//! What is seen of the demo: tables on a terminal, else lines.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use innkeeper_lab::Api;
use serde_json::Value;

use super::stories::{is_true, path};
use crate::out;

/// The kinds of the primaries.
const PRIMARIES: [(&str, &str, &str); 6] = [
    ("MaintPage", "maintpage.example.com/v1alpha1", "maintpages"),
    ("Podroute", "quay.io/v1alpha1", "podroutes"),
    ("PostgreSQL", "exp.wheel.jp/v1", "postgresqls"),
    ("Kabocha", "kabocha.example.com/v1alpha1", "kabochas"),
    ("Imo", "imo.example.com/v1alpha1", "imos"),
    ("Kuri", "kuri.example.com/v1alpha1", "kuris"),
];
/// The kinds of what they make that has a state of its own.
const CHILDREN: [(&str, &str, &str); 3] =
    [("Deployment", "apps/v1", "deployments"), ("Job", "batch/v1", "jobs"), ("Pod", "v1", "pods")];
/// How many of the last lines stand below the tables.
const LAST: usize = 12;
/// To the other screen, and back from it.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the top; what was there is gone.
const CLEAR: &str = "\x1b[H\x1b[J";

/// What is shown.
pub(super) struct View {
    is_live: bool,
    kubeconfig: String,
    story: String,
    last: VecDeque<String>,
}

impl View {
    /// Tables on a terminal, unless they are not wanted.
    ///
    /// # Errors
    /// If nobody reads what is shown, as of all that shows something.
    pub(super) fn new(plain: bool, kubeconfig: &Path) -> anyhow::Result<Self> {
        let is_live = !plain && std::io::stdout().is_terminal();
        let view = Self {
            is_live,
            kubeconfig: kubeconfig.display().to_string(),
            story: String::new(),
            last: VecDeque::new(),
        };
        if is_live {
            out::write(ENTER)?;
        } else {
            out::write(format!(
                "A simulated cluster with Innkeeper and its guests. kubectl works on it:\n  export KUBECONFIG={}\n",
                view.kubeconfig
            ))?;
        }
        Ok(view)
    }

    /// What is done now.
    pub(super) fn say(&mut self, words: &str) -> anyhow::Result<()> {
        words.clone_into(&mut self.story);
        if self.is_live {
            self.keep(format!("> {words}"));
            return Ok(());
        }
        out::write(format!("\n{words}\n"))
    }

    /// What came of it.
    pub(super) fn tell(&mut self, words: &str) -> anyhow::Result<()> {
        if self.is_live {
            self.keep(format!("= {words}"));
            return Ok(());
        }
        out::write(format!("= {words}\n"))
    }

    /// What the operator did.
    pub(super) fn happened(&mut self, line: &str) -> anyhow::Result<()> {
        if self.is_live {
            self.keep(format!("  {line}"));
            return Ok(());
        }
        out::write(format!("  {line}\n"))
    }

    fn keep(&mut self, line: String) {
        self.last.push_back(line);
        while self.last.len() > LAST {
            self.last.pop_front();
        }
    }

    /// Shows what there is now, if tables are shown. A kind that is not served yet has no objects.
    pub(super) async fn look(&self, api: &Api, passed: Duration) -> anyhow::Result<()> {
        if !self.is_live {
            return Ok(());
        }
        let mut text = format!("{CLEAR}Innkeeper, {} s. {}\n", passed.as_secs(), self.story);
        // Writing into a String cannot fail.
        let _ = writeln!(text, "export KUBECONFIG={}    Ctrl-C ends it\n", self.kubeconfig);
        let mut rows = vec![["KIND", "NAME", "READY", "STATE"].map(str::to_owned)];
        for (kind, api_version, plural) in PRIMARIES {
            for one in api.list(&path((api_version, plural, ""))).await.unwrap_or_default() {
                rows.push([kind.to_owned(), name(&one), ready(&one), reason(&one)]);
            }
        }
        text += &out::table(&rows);
        text += "\n";
        let mut rows = vec![["OBJECT", "NAME", "READY", "STATE"].map(str::to_owned)];
        for (kind, api_version, plural) in CHILDREN {
            for one in api.list(&path((api_version, plural, ""))).await.unwrap_or_default() {
                rows.push([kind.to_owned(), name(&one), of(kind, &one), state(&one)]);
            }
        }
        text += &out::table(&rows);
        text += "\n";
        for line in &self.last {
            let _ = writeln!(text, "{line}");
        }
        out::write(text)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.is_live {
            // A terminal that is gone needs nothing.
            let _ = out::write(LEAVE);
        }
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn ready(object: &Value) -> String {
    if is_true(object, "Ready") { "yes" } else { "no" }.to_owned()
}

/// Why an object is ready or not.
fn reason(object: &Value) -> String {
    let all = object["status"]["conditions"].as_array();
    let found = all.into_iter().flatten().find(|one| one["type"] == "Ready");
    let text = |name: &str| found.and_then(|one| one[name].as_str()).unwrap_or_default();
    format!("{}: {}", text("reason"), text("message"))
}

/// How many of how many are ready.
fn of(kind: &str, object: &Value) -> String {
    let number =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    match kind {
        "Deployment" => format!("{}/{}", number("/status/readyReplicas"), number("/spec/replicas")),
        "Job" => format!("{}/{}", number("/status/succeeded"), number("/spec/completions")),
        _ => ready(object),
    }
}

fn state(object: &Value) -> String {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return "going".to_owned();
    }
    let image = object.pointer("/spec/template/spec/containers/0/image");
    let image = image.or_else(|| object.pointer("/spec/containers/0/image"));
    let phase = object["status"]["phase"].as_str();
    phase.or_else(|| image.and_then(Value::as_str)).unwrap_or_default().to_owned()
}
