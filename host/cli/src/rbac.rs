//! `innkeeper rbac`: the account of a module and the least rights that its guest needs, as YAML with
//! reasons.
//!
//! Written line by line, since the reasons are comments, which a YAML library drops; a test reads
//! it back.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;

use anyhow::bail;
use innkeeper_contract::{Kind, Manifest};
use innkeeper_core::decoration;
use innkeeper_modules::consent::ALLOWED_MODULES_ANNOTATION;
use innkeeper_modules::module;

use crate::component;
use crate::inspect::crd_name;
use crate::out;

/// Arguments of `innkeeper rbac`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// Name of the Module; the guest's name if left out.
    #[arg(long)]
    module: Option<String>,
    /// ServiceAccount of the Module, in the namespace innkeeper-modules; named as the Module if
    /// left out.
    #[arg(long)]
    service_account: Option<String>,
    /// Grant namespaced kinds in this namespace only (repeat for more); in all if left out.
    /// The Module's spec.namespaces must say the same.
    #[arg(long = "namespace", short = 'n')]
    namespaces: Vec<String>,
    /// Leave out the right to install the guest's CustomResourceDefinitions: somebody else does.
    #[arg(long)]
    without_crds: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let opened = component::open(&arguments.file)?;
    let manifest = opened.guest.manifest();
    let module = arguments.module.clone().unwrap_or_else(|| manifest.name.clone());
    let account = arguments.service_account.clone().unwrap_or_else(|| module.clone());
    for (name, option) in [(&module, "--module"), (&account, "--service-account")] {
        if !is_name(name) {
            bail!(
                "{name:?} is not a name of Kubernetes (lower case letters, digits and '-'): give another with {option}"
            );
        }
    }
    if let Some(namespace) = arguments.namespaces.iter().find(|namespace| !is_name(namespace)) {
        bail!("--namespace {namespace:?} is not a name of Kubernetes");
    }
    let crds = !arguments.without_crds;
    out::write(print(
        manifest,
        &Grant { module, account, namespaces: &arguments.namespaces, crds },
    )?)
}

/// The least rights of a module in all namespaces, as YAML.
pub(crate) fn least(
    manifest: &Manifest,
    module: &str,
    account: &str,
) -> Result<String, fmt::Error> {
    let (module, account) = (module.to_owned(), account.to_owned());
    print(manifest, &Grant { module, account, namespaces: &[], crds: true })
}

/// Whether it is one part of a DNS name, as names of Modules and accounts are.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 63
        && !name.starts_with('-')
        && !name.ends_with('-')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// To whom, and where.
struct Grant<'a> {
    module: String,
    account: String,
    namespaces: &'a [String],
    crds: bool,
}

/// One rule of a role.
struct Rule {
    why: String,
    group: String,
    resource: String,
    names: Vec<String>,
    verbs: &'static [&'static str],
    place: Place,
}

/// Where a rule is granted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the whole cluster.
    Cluster,
    /// In the namespaces of the primaries.
    Namespaces,
    /// In `default`, where Events about cluster-scoped objects lie.
    Default,
}

const READ: &[&str] = &["get", "list", "watch"];
const MERGE: &[&str] = &["get", "list", "watch", "patch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

fn rules(manifest: &Manifest, crds: bool) -> Vec<Rule> {
    let primary = &manifest.primary;
    let rule = |why: String, kind: &Kind, subresource: &str, verbs| Rule {
        why,
        group: kind.group().to_owned(),
        resource: format!("{}{subresource}", kind.plural),
        names: Vec::new(),
        verbs,
        place: if kind.is_namespaced() { Place::Namespaces } else { Place::Cluster },
    };
    let mut rules =
        vec![rule(format!("The primaries: to watch {}.", primary.plural), primary, "", READ)];
    if !decoration::decorates(manifest) {
        let why = "To write their status (server-side apply).";
        rules.push(rule(why.into(), primary, "/status", &["patch"]));
    }
    if manifest.finalizer.is_some() {
        let why = "To write the guest's finalizer on them.".into();
        rules.push(rule(why, primary, "", &["patch"]));
    }
    if manifest.owned.iter().any(|owned| !owned.merges) {
        let why = "To own what is made for them: an owner reference that blocks deletion needs\nthis where OwnerReferencesPermissionEnforcement is on.";
        rules.push(rule(why.into(), primary, "/finalizers", &["update"]));
    }
    for owned in &manifest.owned {
        if owned.merges {
            let why = format!("To merge fields into {}, and to take them back.", owned.kind.plural);
            rules.push(rule(why, &owned.kind, "", MERGE));
            continue;
        }
        let optional = if owned.optional { " where it is served" } else { "" };
        let why = format!(
            "To make {}{optional} (apply needs create and patch), and to prune.",
            owned.kind.kind
        );
        rules.push(rule(why, &owned.kind, "", OWN));
    }
    let known =
        |kind: &Kind| kind == primary || manifest.owned.iter().any(|owned| owned.kind == *kind);
    for read in manifest.reads.iter().filter(|read| !known(read)) {
        rules.push(rule(format!("The guest reads {}.", read.kind), read, "", READ));
    }
    let events = Kind::namespaced("events.k8s.io/v1", "Event", "events");
    let mut events =
        rule("To write Events about the primaries.".into(), &events, "", &["create", "patch"]);
    if !primary.is_namespaced() {
        events.place = Place::Default;
        events.why =
            "To write Events about the primaries: those about cluster-scoped objects lie here."
                .into();
    }
    rules.push(events);
    if crds && !manifest.crds.is_empty() {
        rules.push(Rule {
            why: "To install the definitions that the guest describes, and no others.".into(),
            group: "apiextensions.k8s.io".into(),
            resource: "customresourcedefinitions".into(),
            names: manifest.crds.iter().map(crd_name).collect(),
            // Creating by apply names the object in its path, so that `create` heeds the names.
            verbs: &["get", "create", "patch"],
            place: Place::Cluster,
        });
        rules.extend(manifest.crds.iter().filter_map(|definition| stored(manifest, definition)));
    }
    rules
}

/// To read the objects of a definition whose kind the manifest does not declare otherwise: they are checked
/// before their definition changes.
fn stored(manifest: &Manifest, definition: &serde_json::Value) -> Option<Rule> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(serde_json::Value::as_str);
    let (group, plural) = (text("/spec/group")?, text("/spec/names/plural")?);
    let owned = manifest.owned.iter().map(|owned| &owned.kind);
    let mut declared = owned.chain(&manifest.reads).chain([&manifest.primary]);
    if declared.any(|kind| kind.group() == group && kind.plural == plural) {
        return None;
    }
    Some(Rule {
        why: format!("To check stored {plural} before their definition changes."),
        group: group.to_owned(),
        resource: plural.to_owned(),
        names: Vec::new(),
        verbs: &["list"],
        place: if text("/spec/scope") == Some("Cluster") {
            Place::Cluster
        } else {
            Place::Namespaces
        },
    })
}

fn print(manifest: &Manifest, grant: &Grant<'_>) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let title = format!("{} {}", manifest.name, manifest.version);
    // In one line: what follows a line break would be YAML.
    let title = title.trim_end().replace(|c: char| !(' '..='~').contains(&c), "?");
    writeln!(out, "# What the module {} needs to run the guest {title}.", grant.module)?;
    writeln!(
        out,
        "# Made by `innkeeper rbac`; make it anew when the guest changes what it describes."
    )?;
    account(&mut out, grant)?;
    let rules = rules(manifest, grant.crds);
    let mut granted: BTreeMap<Option<&str>, Vec<&Rule>> = BTreeMap::new();
    for rule in &rules {
        let places: Vec<Option<&str>> = match rule.place {
            Place::Namespaces if !grant.namespaces.is_empty() => {
                grant.namespaces.iter().map(|namespace| Some(namespace.as_str())).collect()
            }
            Place::Cluster | Place::Namespaces => vec![None],
            Place::Default => vec![Some("default")],
        };
        for place in places {
            granted.entry(place).or_default().push(rule);
        }
    }
    for (namespace, rules) in &granted {
        writeln!(out, "---")?;
        role(&mut out, grant, *namespace, rules)?;
    }
    Ok(out)
}

fn role(
    out: &mut String,
    grant: &Grant<'_>,
    namespace: Option<&str>,
    rules: &[&Rule],
) -> fmt::Result {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let name = format!("innkeeper-module-{}", grant.module);
    head(out, kind, &name, namespace)?;
    writeln!(out, "rules:")?;
    for rule in rules {
        for line in rule.why.lines() {
            writeln!(out, "  # {line}")?;
        }
        writeln!(out, "  - apiGroups: [{}]", scalar(&rule.group))?;
        writeln!(out, "    resources: [{}]", scalar(&rule.resource))?;
        if !rule.names.is_empty() {
            let names: Vec<String> = rule.names.iter().map(|name| scalar(name)).collect();
            writeln!(out, "    resourceNames: [{}]", names.join(", "))?;
        }
        writeln!(out, "    verbs: [{}]", rule.verbs.join(", "))?;
    }
    writeln!(out, "---")?;
    head(out, &format!("{kind}Binding"), &name, namespace)?;
    writeln!(
        out,
        "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {name}"
    )?;
    writeln!(
        out,
        "subjects:\n  - kind: ServiceAccount\n    name: {}\n    namespace: {}",
        scalar(&grant.account),
        module::NAMESPACE
    )
}

/// The account, which allows the module to act as it.
fn account(out: &mut String, grant: &Grant<'_>) -> fmt::Result {
    let (account, module, namespace) = (&grant.account, &grant.module, module::NAMESPACE);
    writeln!(
        out,
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {account}\n  namespace: {namespace}\n  annotations:\n    # The modules that may act as it, separated by commas.\n    {ALLOWED_MODULES_ANNOTATION}: \"{module}\"",
    )
}

fn head(out: &mut String, kind: &str, name: &str, namespace: Option<&str>) -> fmt::Result {
    writeln!(
        out,
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}"
    )?;
    match namespace {
        Some(namespace) => writeln!(out, "  namespace: {}", scalar(namespace)),
        None => Ok(()),
    }
}

/// What YAML 1.1, which kubectl reads, takes for something else than a text.
const NO_TEXTS: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan"];

/// A text as a scalar of YAML: quoted unless it is plainly a text.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./".contains(c);
    let is_text = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(plain)
        && !NO_TEXTS.contains(&text);
    if is_text { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
