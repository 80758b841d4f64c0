//! `innkeeper check`: checks the laws of a guest, or that the policies of a set go together,
//! without a cluster.
//!
//! Kubernetes asks of mutating webhooks that they are idempotent and do not depend on their order.

mod case_replay;
mod check_result;
mod documents;
mod field_values;
mod given_objects;
mod guest_laws;
mod law_progress;
mod law_report;
mod law_results;
mod object_changes;
mod object_check;
mod orders;
mod policy_reviews;
mod policy_set;
mod reconciler_check;
mod set_member;
mod simulation;
mod time_limit;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::value_parser;
use innkeeper_core::counted_len;
use jiff::Timestamp;
use serde_json::{Value, json};

use self::check_result::{CheckResult, Status};
use self::object_check::{Asked, OPERATIONS};
use self::policy_reviews::{Given, NoResult};
use self::policy_set::PolicySet;
use self::time_limit::TIME_MAX;
use crate::code_cache;
use crate::document::Document;
use crate::objects::{DEFAULT_NAMESPACE, InputObject};
use crate::out::{self, Format, Page};
use crate::review::request::Request;
use crate::temporary::TemporaryFolder;

/// The exit status of a set that breaks a rule.
const FOUND: u8 = 1;

/// The exit status of files and options that cannot be used.
const UNUSABLE: u8 = 2;

/// The exit status of a check without a result.
const FAILED: u8 = 3;

/// After so many reviews of a policy without a result, the command does not ask it any more.
const FAILURES_MAX: usize = 3;

/// Arguments of `innkeeper check`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("checked").required(true).args(["guest", "policies"]))]
pub(crate) struct Arguments {
    /// Component of a guest that reconciles, plain or gzip: check its laws.
    #[arg(value_name = "FILE")]
    guest: Option<PathBuf>,
    #[command(flatten)]
    laws: guest_laws::Options,
    /// Folder of a set of policies: components (*.wasm), and Modules (*.yaml, *.yml, *.json) that
    /// give parameters, rules, selectors and conditions. A Module without spec.source.file has the
    /// component of its name; a component without a Module is one of its file's name. The command
    /// runs the reconcilers among the guests too.
    #[arg(long, value_name = "DIR", requires = "objects", conflicts_with = "guest")]
    policies: Option<PathBuf>,
    /// Objects as YAML or JSON: a file, or a folder of such files; `-` is standard input
    /// (repeatable). The command checks each by a request that creates it, and by one that updates
    /// it if a policy reviews only updates. Policies can read all of them.
    #[arg(short = 'f', long = "objects", value_name = "FILE_OR_DIR", conflicts_with = "guest")]
    objects: Vec<PathBuf>,
    /// The time that policies read, RFC 3339 (default: the present time). In a second pass it is a
    /// minute later.
    #[arg(long, value_name = "TIME", conflicts_with = "guest")]
    now: Option<Timestamp>,
    /// Maximum time of the reviews.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        conflicts_with = "guest",
        value_parser = value_parser!(u64).range(0..=TIME_MAX)
    )]
    timeout: u64,
    /// Seed of everything random in the simulated cluster of the reconcilers.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Output format.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

/// Runs the command, and returns its exit status: 0 if all rules hold, 1 if one is broken, 2 for
/// files and options that cannot be used, 3 if a check has no result.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match check_all(arguments) {
        Ok(status) => status.into(),
        Err(error) => {
            out::eprint(&format!("innkeeper: {}", out::error_chain(&error)));
            UNUSABLE.into()
        }
    }
}

fn check_all(arguments: &Arguments) -> anyhow::Result<u8> {
    let _temporary = TemporaryFolder::make()?;
    let status = match (&arguments.guest, &arguments.policies) {
        (Some(guest), _) => {
            guest_laws::run(guest, &arguments.laws, arguments.seed, arguments.output)?
        }
        (None, Some(policies)) => check_policies(arguments, policies)?,
        (None, None) => bail!("name a component, or a set of policies with --policies"),
    };
    Ok(match status {
        Status::Ok => 0,
        Status::Found => FOUND,
        Status::Failed => FAILED,
    })
}

fn check_policies(arguments: &Arguments, policies: &Path) -> anyhow::Result<Status> {
    let objects = given_objects::read(&arguments.objects)?;
    let folder = tempfile::tempdir()?;
    let cache = code_cache::open_or_temporary(&folder)?;
    let set = PolicySet::read(policies, &cache, &objects)?;
    let with_policy = set.members.iter().filter(|member| member.policy().is_some());
    for note in with_policy.filter_map(|member| member.given.policy_note()) {
        out::eprint(&format!("innkeeper: note: {note}"));
    }
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let given = Given {
        set: &set,
        objects: &objects,
        views: &set.views(&objects, now)?,
        now,
        end: Instant::now() + Duration::from_secs(arguments.timeout),
    };
    let requests = requests(&set, &objects)?;
    let mut results = check_objects(given, &requests);
    if set.reconcilers().next().is_some() {
        results.push(reconciler_check::check(given, cache, arguments.seed)?);
    }
    if results.is_empty() {
        bail!(
            "no policy of {} changes one of the objects, and no guest reconciles: there is nothing to check",
            policies.display()
        );
    }
    out::or_closed(print(arguments.output, &results))?;
    Ok(results.iter().map(|result| result.status).max().unwrap_or(Status::Ok))
}

/// A request, and the policies that review it.
struct Subject<'a> {
    request: Request<'a>,
    asked: Asked,
}

/// The requests that at least one policy may change.
fn requests<'a>(set: &PolicySet, objects: &'a [InputObject]) -> anyhow::Result<Vec<Subject<'a>>> {
    let mut subjects: Vec<Subject<'a>> = Vec::new();
    let mut unknown = Vec::new();
    for object in objects {
        let Some(kind) = set.kind_of(object) else {
            unknown.push(format!("{} {}", object.text("/apiVersion"), object.text("/kind")));
            continue;
        };
        let namespace = namespace_labels(object, &kind, objects);
        let mut known: Option<Asked> = None;
        for operation in OPERATIONS {
            let request = Request::new(operation, object, kind.clone(), object)?;
            let asked = Asked::of(set, &request, namespace.as_ref());
            // An UPDATE is a check of its own if a policy reviews updates only.
            let is_new = known.as_ref().is_none_or(|known| !asked.are_in(known));
            if is_new && !asked.mutating.is_empty() {
                subjects.push(Subject { request, asked: asked.clone() });
            }
            known.get_or_insert(asked);
        }
    }
    unknown.dedup();
    for one in unknown {
        out::eprint(&format!(
            "innkeeper: note: the resource of {one} is not known: give its CustomResourceDefinition with -f"
        ));
    }
    Ok(subjects)
}

/// The labels by which `namespaceSelector` selects: those of the namespace of an object, or of a
/// Namespace itself; none for another cluster-scoped object.
fn namespace_labels(
    object: &InputObject,
    kind: &innkeeper_contract::Kind,
    objects: &[InputObject],
) -> Option<Value> {
    let is_namespace =
        |one: &InputObject| one.text("/apiVersion") == "v1" && one.text("/kind") == "Namespace";
    let labels_of = |name: &str, namespace: Option<&InputObject>| {
        let labels = namespace.and_then(|one| one.value.pointer("/metadata/labels"));
        let mut labels = labels.filter(|labels| labels.is_object()).cloned().unwrap_or(json!({}));
        labels["kubernetes.io/metadata.name"] = name.into();
        labels
    };
    if is_namespace(object) {
        return Some(labels_of(object.text("/metadata/name"), Some(object)));
    }
    if !kind.is_namespaced() {
        return None;
    }
    let name = match object.text("/metadata/namespace") {
        "" => DEFAULT_NAMESPACE,
        name => name,
    };
    let is_its = |one: &&InputObject| is_namespace(one) && one.text("/metadata/name") == name;
    Some(labels_of(name, objects.iter().find(is_its)))
}

fn check_objects(given: Given<'_>, subjects: &[Subject<'_>]) -> Vec<CheckResult> {
    let mut failures = vec![0; given.set.members.len()];
    let mut results = Vec::new();
    for Subject { request, asked } in subjects {
        let all = asked.mutating.iter().chain(&asked.validating);
        let broken = all.copied().find(|policy| failures[*policy] >= FAILURES_MAX);
        let name = |policy: usize| &given.set.members[policy].name;
        if let Some(policy) = broken {
            let why = format!(
                "not checked, since {FAILURES_MAX} reviews of {} had no result",
                name(policy)
            );
            results.push(CheckResult::failed(request.to_string(), why));
            continue;
        }
        let result = match object_check::check(given, request, asked) {
            Ok(result) => result,
            Err(NoResult { policy, why }) => {
                let why = match policy {
                    Some(policy) => {
                        failures[policy] += 1;
                        format!("a review of {} failed: {why}", name(policy))
                    }
                    None => format!("not checked: {why}"),
                };
                CheckResult::failed(request.to_string(), why)
            }
        };
        results.push(result);
    }
    results
}

fn print(format: Format, results: &[CheckResult]) -> anyhow::Result<()> {
    let count = |status| results.iter().filter(|result| result.status == status).count();
    let (ok, found, failed) = (count(Status::Ok), count(Status::Found), count(Status::Failed));
    match format {
        Format::Text => {
            let mut page = Page::default();
            for result in results {
                result.add_to(&mut page);
            }
            let all = counted_len(results.len(), "check", "checks");
            page.line(format_args!(
                "{all}: {ok} ok, {found} with problems, {failed} without a result"
            ));
            out::page(&page)
        }
        Format::Json => {
            let checks: Vec<Value> = results.iter().map(CheckResult::json).collect();
            let summary = json!({"ok": ok, "found": found, "failed": failed});
            out::document(&Document::json(&json!({"checks": checks, "summary": summary}))?)
        }
    }
}
