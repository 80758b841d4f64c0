//! What is seen of the demo: tables on a terminal, else lines.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use innkeeper_lab::Api;
use serde_json::Value;

use super::activity::{Happened, Reconcile};
use super::screen::{self, Screen, Section, Size};
use super::stories::{PRIMARIES, is_true, path};
use crate::out::{self, Page};

/// The kinds of what they make that has a state of its own.
const CHILDREN: [(&str, &str, &str); 3] =
    [("Deployment", "apps/v1", "deployments"), ("Job", "batch/v1", "jobs"), ("Pod", "v1", "pods")];
/// So many of the newest lines and reconciles are kept: more than any terminal has rows.
const KEPT: usize = 200;

/// What is shown.
pub(super) struct View {
    /// If tables are shown.
    screen: Option<Screen>,
    kubeconfig: String,
    story: String,
    /// The newest first.
    lines: VecDeque<String>,
    /// When, and what; the newest first.
    reconciles: VecDeque<(Duration, Reconcile)>,
}

impl View {
    /// Tables on a terminal, unless they are not wanted.
    ///
    /// # Errors
    /// If nobody reads what is shown, as of all that shows something.
    pub(super) fn new(plain: bool, title: &str, kubeconfig: &Path) -> anyhow::Result<Self> {
        let is_live = !plain && out::is_terminal();
        let view = Self {
            screen: is_live.then(Screen::default),
            kubeconfig: kubeconfig.display().to_string(),
            story: String::new(),
            lines: VecDeque::new(),
            reconciles: VecDeque::new(),
        };
        if is_live {
            out::screen(&Screen::enter())?;
        } else {
            let mut page = Page::default();
            page.line(format_args!("{title}. kubectl works on it:"));
            page.line(format_args!("  export KUBECONFIG={}", view.kubeconfig));
            out::page(&page)?;
        }
        Ok(view)
    }

    /// What is done now.
    pub(super) fn say(&mut self, words: &str) -> anyhow::Result<()> {
        words.clone_into(&mut self.story);
        if self.screen.is_none() {
            out::line("")?;
        }
        self.line(&format!("> {words}"), words)
    }

    /// What came of it.
    pub(super) fn tell(&mut self, words: &str) -> anyhow::Result<()> {
        self.line(&format!("= {words}"), &format!("= {words}"))
    }

    /// What the operator did, and when.
    pub(super) fn happened(&mut self, when: Duration, happened: Happened) -> anyhow::Result<()> {
        match happened {
            Happened::Line(line) => self.line(&format!("  {line}"), &format!("  {line}")),
            Happened::Reconciled(reconcile) if self.screen.is_some() => {
                self.reconciles.push_front((when, *reconcile));
                self.reconciles.truncate(KEPT);
                Ok(())
            }
            // Lines stay: of these, only what wrote something or could not.
            Happened::Reconciled(one) if one.did.something() || !one.problem.is_empty() => {
                let Reconcile { module, primary, cause, did, .. } = &*one;
                let (ending, took) = (one.ending(), one.took.as_millis());
                out::line(format_args!(
                    "  {module:<10} {primary:<24} reconciled since {cause}: {did} ({ending}, {took} ms)"
                ))
            }
            Happened::Reconciled(_) => Ok(()),
        }
    }

    fn line(&mut self, live: &str, plain: &str) -> anyhow::Result<()> {
        if self.screen.is_none() {
            return out::line(plain);
        }
        self.lines.push_front(live.to_owned());
        self.lines.truncate(KEPT);
        Ok(())
    }

    /// Shows what there is now, if tables are shown. A kind that is not served yet has no objects.
    pub(super) async fn look(&mut self, api: &Api, passed: Duration) -> anyhow::Result<()> {
        if self.screen.is_none() {
            return Ok(());
        }
        let mut primaries = vec![["KIND", "NAME", "READY", "STATE"].map(str::to_owned)];
        for (kind, api_version, plural) in PRIMARIES {
            for one in api.list(&path((api_version, plural, ""))).await.unwrap_or_default() {
                primaries.push([kind.to_owned(), name(&one), ready(&one), reason(&one)]);
            }
        }
        let mut children = vec![["OBJECT", "NAME", "READY", "STATE"].map(str::to_owned)];
        for (kind, api_version, plural) in CHILDREN {
            for one in api.list(&path((api_version, plural, ""))).await.unwrap_or_default() {
                children.push([kind.to_owned(), name(&one), of(kind, &one), state(&one)]);
            }
        }
        let lines = self.lines.iter().cloned().collect();
        let sections = [
            Section::of_table(&out::table(&primaries)),
            Section::of_table(&out::table(&children)),
            Section::of_table(&out::table(&self.reconciles())),
            Section { head: "LAST".to_owned(), lines },
        ];
        let top = [
            format!("Innkeeper, {} s. {}", passed.as_secs(), self.story),
            format!("export KUBECONFIG={}    Ctrl-C ends it", self.kubeconfig),
        ];
        let size = Size::now();
        let rows = screen::fit(&top, &sections, size);
        match &mut self.screen {
            Some(screen) => out::screen(&screen.show(size, rows)),
            None => Ok(()),
        }
    }

    /// The last reconciles and why they ran, as a table.
    fn reconciles(&self) -> Vec<[String; 6]> {
        let mut rows =
            vec![["AT", "RECONCILED", "TOOK", "DID", "RESULT", "WHY"].map(str::to_owned)];
        for (when, one) in &self.reconciles {
            rows.push([
                format!("{:.1} s", when.as_secs_f64()),
                format!("{} {}", one.module, one.primary),
                format!("{:.1} ms", one.took.as_secs_f64() * 1000.0),
                one.did.to_string(),
                one.ending().to_owned(),
                one.cause.clone(),
            ]);
        }
        rows
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.screen.is_some() {
            // A terminal that is gone needs nothing.
            let _ = out::screen(&Screen::leave());
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
