//! The report of a check of laws: an in-toto Statement v1 that another program can sign.
//!
//! The format is that of <https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use innkeeper_check::{CheckReport, LawResult};
use innkeeper_modules::Digest;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::law_results;
use crate::component::Opened;
use crate::document::Document;
use crate::objects::{self, InputObject};

/// The type of the statement.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// The type of the predicate; docs/laws.md describes it.
const PREDICATE: &str = "https://innkeeper.dev/laws/v1";

/// What was checked, and how.
pub(super) struct Inputs {
    /// File name and digest of the component.
    pub(super) component: Value,
    /// The earlier component.
    pub(super) earlier: Option<Value>,
    /// The given objects, each with its digest.
    pub(super) samples: Vec<Value>,
    /// Name and version of the guest.
    pub(super) guest: Value,
    /// The parameters of the Module.
    pub(super) parameters: Value,
    /// Names of the laws that are not checked.
    pub(super) skipped: Vec<&'static str>,
    /// The fields that hold a history.
    pub(super) history: Vec<String>,
    /// The seed.
    pub(super) seed: u64,
}

/// File name and digest of a component.
pub(super) fn component(opened: &Opened) -> Value {
    let name = opened.path.file_name().unwrap_or_default().to_string_lossy();
    json!({"name": name, "digest": {"sha256": opened.component.digest.to_string()}})
}

/// Name of an object, and the digest of its JSON; without a digest for a Secret, since short values
/// could be guessed from it.
pub(super) fn sample(object: &InputObject) -> Value {
    let text = |pointer| object.text(pointer);
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let separator = if namespace.is_empty() { "" } else { "/" };
    let title = format!("{} {} {namespace}{separator}{name}", text("/apiVersion"), text("/kind"));
    if text("/kind") == "Secret" {
        return json!({"name": title});
    }
    json!({"name": title, "digest": {"sha256": digest(&object.value)}})
}

fn digest(value: &Value) -> String {
    Digest::of(value.to_string().as_bytes()).to_string()
}

/// The statement about a check.
pub(super) fn statement(
    inputs: &Inputs,
    report: &CheckReport,
    started: Timestamp,
    ended: Timestamp,
) -> Value {
    let broken = report.laws.iter().filter(|law| law.broken.is_some()).count();
    let laws: Vec<Value> = report.laws.iter().map(law).collect();
    let mut predicate = json!({
        "tool": {"name": "innkeeper", "version": env!("CARGO_PKG_VERSION")},
        "guest": inputs.guest,
        "verdict": if broken == 0 { "passed" } else { "failed" },
        "startedOn": started.to_string(),
        "endedOn": ended.to_string(),
        "seed": inputs.seed,
        "scenarios": report.scenarios_run,
        "simulatedSeconds": report.simulated.as_secs(),
        "direct": law_results::direct_json(&report.direct),
        "laws": laws,
        "skipped": inputs.skipped,
        "history": inputs.history,
        "samples": inputs.samples,
    });
    if let Some(earlier) = &inputs.earlier {
        predicate["earlier"] = earlier.clone();
    }
    if !inputs.parameters.is_null() {
        predicate["parameters"] = json!({"digest": {"sha256": digest(&inputs.parameters)}});
    }
    json!({"_type": STATEMENT, "subject": [inputs.component], "predicateType": PREDICATE,
        "predicate": predicate})
}

fn law(result: &LawResult) -> Value {
    let word = match &result.broken {
        Some(_) => "broken",
        None if result.is_judged() => "holds",
        None => "notJudged",
    };
    let mut law = json!({"law": result.law, "result": word, "cases": result.cases,
        "checked": result.checked, "notJudged": result.inconclusive, "direct": result.direct});
    if let Some(trace) = &result.broken {
        law["violation"] = json!({"what": trace.violation.what, "case": trace.case});
    }
    law
}

/// A file to which a report is written when the check has ended.
pub(super) struct ReportFile {
    path: PathBuf,
    folder: PathBuf,
}

impl ReportFile {
    /// A file at this path, which may exist. Of a link the file that it leads to. Fails before the
    /// check if it cannot be written.
    ///
    /// # Errors
    /// If the path is a folder, a device, one of `inputs` or in a folder of these, no regular file,
    /// or a link that leads nowhere, or if no file can be made next to it.
    pub(super) fn at(path: &Path, inputs: &[&Path]) -> anyhow::Result<Self> {
        let refused = |why: &str| Err(anyhow!("--report {}: {why}", path.display()));
        let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if is_folder || path.is_dir() || path.file_name().is_none() {
            return refused("this is a folder; name a file");
        }
        // A process replaces what other processes use there.
        if path.starts_with("/dev") || path.starts_with("/proc") {
            return refused("this is no regular file; name another one");
        }
        let canonical = path.canonicalize().ok();
        if canonical.is_none() && path.is_symlink() {
            return refused("this link leads to no file; name another one");
        }
        let file = canonical.clone().unwrap_or_else(|| path.to_owned());
        if file.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            return refused("this is no regular file; name another one");
        }
        let folder = match file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let (of_folder, is_read) = (folder.canonicalize().ok(), objects::may_have_objects(&file));
        for input in inputs {
            let input = input.canonicalize().ok();
            if input.is_some() && input == canonical {
                return refused("the command reads this file; name another one");
            }
            if is_read && input.is_some() && input == of_folder {
                return refused("the command reads the files of this folder; name another one");
            }
        }
        let file = Self { path: file, folder };
        file.temporary().map(|_| file)
    }

    /// Writes the report. A reader sees the earlier content of the file, or all of the report.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self, statement: &Value) -> anyhow::Result<()> {
        let mut temporary = self.temporary()?;
        let failed = || format!("--report {}: the file cannot be written", self.path.display());
        let document = Document::json(statement)?;
        temporary.write_all(document.text().as_bytes()).with_context(failed)?;
        temporary.as_file().sync_all().with_context(failed)?;
        temporary.persist(&self.path).with_context(failed)?;
        Ok(())
    }

    fn temporary(&self) -> anyhow::Result<NamedTempFile> {
        // A report that is replaced keeps its permissions.
        let present = self.path.metadata().ok().filter(std::fs::Metadata::is_file);
        let readable = present.map_or(Permissions::from_mode(0o644), |one| one.permissions());
        tempfile::Builder::new()
            .prefix(".innkeeper-report-")
            .permissions(readable)
            .tempfile_in(&self.folder)
            .with_context(|| {
                format!("--report {}: no file can be made in its folder", self.path.display())
            })
    }
}
