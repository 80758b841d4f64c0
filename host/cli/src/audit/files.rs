//! Reviews the objects of files with policies, as the host reviews existing objects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use innkeeper_contract::Kind;
use innkeeper_core::audit::{AuditCounts, AuditOutcome, AuditResult, Finding};
use innkeeper_core::{Labels, Object, ObjectKey};
use innkeeper_modules::ValidatedPolicy;
use innkeeper_operator::policies::review_scope::ReviewScope;
use innkeeper_sandbox::Guest;
use jiff::Timestamp;
use serde_json::Value;

use super::filter::Filter;
use super::findings::{Findings, Row};
use crate::component::{self, Opened};
use crate::given_module::{self, GivenModule};
use crate::objects::{self, InputObject};
use crate::parameter_kinds;
use crate::review::answer::Outcome;
use crate::review::request::{Request, kind_of};
use crate::review::reviewer::{Reviewer, view_of};

/// The files with the objects to review.
#[derive(clap::Args)]
pub(super) struct FileArguments {
    /// Objects as YAML or JSON, several documents in a file; a folder stands for its files
    /// *.yaml, *.yml and *.json, and `-` for standard input (repeatable). Each policy reviews those
    /// that match its rules, and can read all others. Modules among them give the policies
    /// parameters, limits, namespaces and selectors.
    #[arg(short = 'f', long = "objects", value_name = "FILE|DIR")]
    objects: Vec<PathBuf>,
    /// The time that the guests read, RFC 3339 (default: the present time).
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
}

impl FileArguments {
    /// Whether files are given.
    pub(super) fn are_given(&self) -> bool {
        !self.objects.is_empty()
    }
}

/// A policy with its Module, if the files have one.
struct Policy {
    opened: Opened,
    module: Option<GivenModule>,
}

/// Reviews the objects of the files with the policies of these components.
///
/// # Errors
/// If a file cannot be read, a component is no policy, or a Module belongs to none of them.
pub(super) fn audit(
    components: &[PathBuf],
    arguments: &FileArguments,
    filter: Filter<'_>,
) -> anyhow::Result<Findings> {
    let mut given = Vec::new();
    for path in &arguments.objects {
        for file in files(path)? {
            given.extend(objects::read(&file)?);
        }
    }
    let modules = given_module::take_objects(&mut given);
    let policies = policies(components, modules)?;
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let mut findings = Findings::default();
    for policy in &policies {
        if filter.module.is_none_or(|module| module == policy.name()) {
            policy.audit(&given, now, filter, &mut findings)?;
        }
    }
    Ok(findings.finish())
}

/// The file, or the files of the folder, in order.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let what = || format!("cannot read the folder {}", path.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).with_context(what)? {
        let file = entry.with_context(what)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("the folder {} has no file *.yaml, *.yml or *.json", path.display());
    }
    Ok(files)
}

/// Opens the components, each with its Module: the one whose source is a file of the component's
/// name, or that has the name of the guest. One Module belongs to the only component.
fn policies(components: &[PathBuf], modules: Vec<InputObject>) -> anyhow::Result<Vec<Policy>> {
    let mut opened = Vec::new();
    for path in components {
        let one = component::open(path)?;
        if one.guest.manifest().policy.is_none() {
            bail!("{}: the guest {} has no policy", path.display(), one.guest.manifest().name);
        }
        opened.push(one);
    }
    let mut of_component: BTreeMap<usize, InputObject> = BTreeMap::new();
    for module in modules {
        let name = module.text("/metadata/name").to_owned();
        let belongs = |one: &Opened| {
            let file = Path::new(module.text("/spec/source/file")).file_name();
            one.guest.manifest().name == name || (file.is_some() && file == one.path.file_name())
        };
        let position = match opened.iter().position(belongs) {
            None if opened.len() == 1 => Some(0),
            position => position,
        };
        let Some(position) = position else {
            bail!(
                "{}: the Module {name} belongs to none of the components; give it the name of a guest, or spec.source.file",
                module.place
            )
        };
        if let Some(other) = of_component.insert(position, module) {
            let other = other.text("/metadata/name");
            bail!("the Modules {other} and {name} belong to the same component: give one of them");
        }
    }
    let mut policies = Vec::new();
    for (position, opened) in opened.into_iter().enumerate() {
        let module = of_component.get(&position);
        let module = module.map(|object| GivenModule::read(object, &opened.path)).transpose()?;
        policies.push(Policy { opened, module });
    }
    let mut names = BTreeSet::new();
    for policy in &policies {
        if !names.insert(policy.name()) {
            bail!("two components are of the policy {}: give one of them", policy.name());
        }
    }
    Ok(policies)
}

impl Policy {
    fn name(&self) -> &str {
        self.module.as_ref().map_or(&*self.opened.guest.manifest().name, |module| &*module.name)
    }

    /// The guest with the parameters and limits of its Module, and the parameters as JSON.
    fn guest(&self, definitions: &[Value]) -> anyhow::Result<(Guest, String)> {
        let (guest, given) = (&self.opened.guest, self.module.as_ref());
        let (parameters, place) = given
            .and_then(GivenModule::parameters)
            .unwrap_or_else(|| (Value::Null, format!("policy {}", self.name())));
        innkeeper_modules::parameters::check(guest.described(), &parameters)
            .with_context(|| place.clone())?;
        let guest = parameter_kinds::with_parameters(guest, &parameters, definitions)
            .with_context(|| format!("{place}: cannot use the kinds that they name"))?;
        let guest = given.map_or(guest.clone(), |module| guest.with_limits(module.limits()));
        let parameters = if parameters.is_null() { String::new() } else { parameters.to_string() };
        Ok((guest, parameters))
    }

    /// Reviews the objects that the policy reviews.
    fn audit(
        &self,
        given: &[InputObject],
        now: Timestamp,
        filter: Filter<'_>,
        findings: &mut Findings,
    ) -> anyhow::Result<()> {
        let definitions: Vec<Value> = given.iter().map(|object| object.value.clone()).collect();
        let (guest, parameters) = self.guest(&definitions)?;
        let Some(policy) = &guest.manifest().policy else { return Ok(()) };
        let of_module = self.module.as_ref().and_then(|module| module.scope(policy));
        let scope = of_module.unwrap_or_else(|| {
            let (settings, all) = (ValidatedPolicy::default(), BTreeSet::new());
            ReviewScope::new(policy.rules.clone(), &settings, &all)
        });
        let namespaces = namespace_labels(given);
        let reviewer = Reviewer {
            guest: &guest,
            policy,
            module: self.module.as_ref(),
            given,
            unserved: &[],
            parameters: &parameters,
            now,
        };
        let mut view = view_of(guest.manifest(), given, &[], now)?;
        let mut unknown = BTreeSet::new();
        for object in given {
            let Some(kind) = kind_of(object, guest.manifest(), &definitions, None) else {
                unknown.insert(format!("{} {}", object.text("/apiVersion"), object.text("/kind")));
                continue;
            };
            let decoded = object.decode(&kind)?.0;
            let labels = |name: &str| namespaces.get(name).cloned();
            let is_elsewhere =
                filter.namespace.is_some_and(|namespace| decoded.key.namespace() != namespace);
            if is_elsewhere || scope.mode(&kind, &decoded, &labels).is_none() {
                continue;
            }
            let request = Request::existing(object, kind.clone())?;
            let outcome = self.outcome(reviewer.outcome(&request, &mut view));
            if let Some(outcome) = outcome {
                add(findings, self.name(), (&kind, &decoded), &outcome);
            }
        }
        if let Some(one) = unknown.first() {
            findings.note(format!(
                "objects of {} kinds are not reviewed, such as {one}: give their CustomResourceDefinitions with -f",
                unknown.len()
            ));
        }
        Ok(())
    }

    /// What a review gave; none if no policy reviews such objects.
    fn outcome(&self, outcome: Outcome) -> Option<AuditOutcome> {
        match outcome {
            Outcome::NotReviewed(_) => None,
            Outcome::Failed(why) => Some(AuditOutcome::failed("ReviewFailed", why)),
            Outcome::Decided(decision) => {
                let changed = decision.change.as_ref().map(|change| &*change.fields);
                let changed = changed.unwrap_or_default();
                Some(AuditOutcome::of_verdict(self.name(), &decision.verdict, changed))
            }
        }
    }
}

/// The labels of the Namespaces among the objects.
fn namespace_labels(given: &[InputObject]) -> BTreeMap<String, Labels> {
    let kind = Kind::cluster("v1", "Namespace", "namespaces");
    let namespaces = given.iter().filter(|object| object.is(&kind));
    let decoded = namespaces.filter_map(|object| object.decode(&kind).ok());
    decoded.map(|(object, _)| (object.key.name().to_owned(), object.labels)).collect()
}

fn add(
    findings: &mut Findings,
    policy: &str,
    (kind, object): (&Kind, &Object),
    outcome: &AuditOutcome,
) {
    let mut counts = AuditCounts::default();
    counts.count(outcome.result);
    findings.count(&counts);
    if outcome.result == AuditResult::Pass {
        return;
    }
    let (kind, key): (Arc<Kind>, &ObjectKey) = (Arc::new(kind.clone()), &object.key);
    // The same bounds as in a report.
    let bounded = Finding::new((&kind, key, ""), outcome.result, &outcome.reason, &outcome.message);
    findings.add(Row {
        namespace: key.namespace().to_owned(),
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        name: key.name().to_owned(),
        policy: policy.to_owned(),
        result: outcome.result,
        reason: bounded.reason.into(),
        message: bounded.message.into(),
    });
}
