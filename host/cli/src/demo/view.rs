//! What the user sees of the demo: tables on a terminal, otherwise lines.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use innkeeper_lab::Api;
use serde_json::Value;

use super::activity::{OperatorEvent, Reconcile};
use super::constants::{MODULES, PRIMARIES};
use super::resources::{is_true, path};
use super::screen::{self, Screen, Section, Size};
use crate::out;

/// The kinds of the guests' objects that have a status.
const CHILDREN: [(&str, &str, &str); 3] =
    [("Deployment", "apps/v1", "deployments"), ("Job", "batch/v1", "jobs"), ("Pod", "v1", "pods")];
/// How many of the newest lines and reconciles the view keeps: more than any terminal has rows.
const KEPT: usize = 200;

/// Shows the demo on standard output.
pub(super) struct View {
    /// The tables; without it the view prints lines.
    screen: Option<Screen>,
    kubeconfig: String,
    /// What the scenario does now.
    action: String,
    /// The newest first.
    lines: VecDeque<String>,
    /// Each with its time since the start; the newest first.
    reconciles: VecDeque<(Duration, Reconcile)>,
}

impl View {
    /// Switches a terminal to tables, unless `plain` is set.
    ///
    /// # Errors
    /// If standard output is closed.
    pub(super) fn new(plain: bool, kubeconfig: &Path) -> anyhow::Result<Self> {
        let screen = (!plain && out::is_terminal()).then(Screen::default);
        if screen.is_some() {
            out::screen(&Screen::enter())?;
        }
        Ok(Self {
            screen,
            kubeconfig: kubeconfig.display().to_string(),
            action: String::new(),
            lines: VecDeque::new(),
            reconciles: VecDeque::new(),
        })
    }

    /// Shows what the scenario does now.
    ///
    /// # Errors
    /// If standard output is closed.
    pub(super) fn show_action(&mut self, text: &str) -> anyhow::Result<()> {
        text.clone_into(&mut self.action);
        if self.screen.is_none() {
            out::line("")?;
        }
        self.add_line(&format!("> {text}"), text)
    }

    /// Shows the result of the action.
    ///
    /// # Errors
    /// If standard output is closed.
    pub(super) fn show_result(&mut self, text: &str) -> anyhow::Result<()> {
        self.add_line(&format!("= {text}"), &format!("= {text}"))
    }

    /// Shows what the operator did at `when`, the time since the start.
    ///
    /// # Errors
    /// If standard output is closed.
    pub(super) fn show_event(
        &mut self,
        when: Duration,
        event: OperatorEvent,
    ) -> anyhow::Result<()> {
        match event {
            OperatorEvent::Line(line) => self.add_line(&format!("  {line}"), &format!("  {line}")),
            OperatorEvent::Reconciled(reconcile) if self.screen.is_some() => {
                self.reconciles.push_front((when, *reconcile));
                self.reconciles.truncate(KEPT);
                Ok(())
            }
            // Lines stay on the terminal: only reconciles that wrote or failed get one.
            OperatorEvent::Reconciled(one) if one.changes.is_write() || !one.reason.is_empty() => {
                let Reconcile { module, primary, trigger, changes, .. } = &*one;
                let (outcome, millis) = (one.outcome(), one.duration.as_millis());
                out::line(format_args!(
                    "  {module:<10} {primary:<24} reconciled because {trigger}: {changes} ({outcome}, {millis} ms)"
                ))
            }
            OperatorEvent::Reconciled(_) => Ok(()),
        }
    }

    fn add_line(&mut self, live: &str, plain: &str) -> anyhow::Result<()> {
        if self.screen.is_none() {
            return out::line(plain);
        }
        self.lines.push_front(live.to_owned());
        self.lines.truncate(KEPT);
        Ok(())
    }

    /// Updates the tables. A kind that the API server does not serve yet has no objects.
    ///
    /// # Errors
    /// If standard output is closed.
    pub(super) async fn update(&mut self, api: &Api, passed: Duration) -> anyhow::Result<()> {
        if self.screen.is_none() {
            return Ok(());
        }
        let mut primaries = vec![["KIND", "NAME", "READY", "STATE"].map(str::to_owned)];
        for one in api.list(MODULES).await.unwrap_or_default() {
            if !is_true(&one, "Ready") {
                primaries.push(["Module".to_owned(), name(&one), ready(&one), reason(&one)]);
            }
        }
        for (kind, api_version, plural) in PRIMARIES {
            for one in api.list(&path((api_version, plural, ""))).await.unwrap_or_default() {
                primaries.push([kind.to_owned(), name(&one), ready(&one), reason(&one)]);
            }
        }
        let mut children = vec![["OBJECT", "NAME", "READY", "STATE"].map(str::to_owned)];
        for (kind, api_version, plural) in CHILDREN {
            for one in api.list(&path((api_version, plural, ""))).await.unwrap_or_default() {
                children.push([kind.to_owned(), name(&one), ready_count(kind, &one), state(&one)]);
            }
        }
        let lines = self.lines.iter().cloned().collect();
        let sections = [
            Section::of_table(&out::table(&primaries)),
            Section::of_table(&out::table(&children)),
            Section::of_table(&out::table(&self.reconciles())),
            Section { head: "LOG".to_owned(), lines },
        ];
        let top = [
            format!("Innkeeper, {} s. {}", passed.as_secs(), self.action),
            format!("export KUBECONFIG={}    Ctrl-C ends the demo", self.kubeconfig),
        ];
        let size = Size::now();
        let rows = screen::fit(&top, &sections, size);
        match &mut self.screen {
            Some(screen) => out::screen(&screen.show(size, rows)),
            None => Ok(()),
        }
    }

    /// The last reconciles and their triggers, as a table.
    fn reconciles(&self) -> Vec<[String; 6]> {
        let mut rows =
            vec![["AT", "RECONCILED", "TOOK", "CHANGES", "RESULT", "TRIGGER"].map(str::to_owned)];
        for (when, one) in &self.reconciles {
            rows.push([
                format!("{:.1} s", when.as_secs_f64()),
                format!("{} {}", one.module, one.primary),
                format!("{:.1} ms", one.duration.as_secs_f64() * 1000.0),
                one.changes.to_string(),
                one.outcome().to_owned(),
                one.trigger.clone(),
            ]);
        }
        rows
    }
}

impl Drop for View {
    fn drop(&mut self) {
        if self.screen.is_some() {
            // The write fails only if the terminal is gone.
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

/// The reason and message of the condition `Ready`.
fn reason(object: &Value) -> String {
    let all = object["status"]["conditions"].as_array();
    let found = all.into_iter().flatten().find(|one| one["type"] == "Ready");
    let text = |name: &str| found.and_then(|one| one[name].as_str()).unwrap_or_default();
    format!("{}: {}", text("reason"), text("message"))
}

/// The ready part of an object: `2/3`, or yes or no.
fn ready_count(kind: &str, object: &Value) -> String {
    let number =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    match kind {
        "Deployment" => format!("{}/{}", number("/status/readyReplicas"), number("/spec/replicas")),
        "Job" => format!("{}/{}", number("/status/succeeded"), number("/spec/completions")),
        _ => ready(object),
    }
}

/// The phase of an object, or the image of its first container.
fn state(object: &Value) -> String {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return "Terminating".to_owned();
    }
    let image = object.pointer("/spec/template/spec/containers/0/image");
    let image = image.or_else(|| object.pointer("/spec/containers/0/image"));
    let phase = object["status"]["phase"].as_str();
    phase.or_else(|| image.and_then(Value::as_str)).unwrap_or_default().to_owned()
}
