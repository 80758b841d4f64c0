//! `innkeeper rbac`: prints the ServiceAccount of a module and the minimal rules that its guest
//! needs, as YAML with reasons.
//!
//! The YAML contains names from the guest. So a serialiser writes it, and [`Yaml`] reads it again
//! before the command prints it.

mod policy;
mod rule;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::bail;
use innkeeper_contract::{Kind, Manifest, OwnedKind};
use innkeeper_core::desired::is_controller_revision;
use innkeeper_core::{control, extra_rights, foreign, names, object};
use innkeeper_modules::account_annotation::ALLOWED_MODULES_ANNOTATION;
use innkeeper_modules::module;
use serde_json::{Map, Value, json};

use self::rule::{Rule, RuleScope};
use crate::component;
use crate::document::{Document, Yaml};
use crate::inspect::crd_name;
use crate::out;
use crate::parameter_kinds::ParameterArguments;

/// Arguments of `innkeeper rbac`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// Name of the Module [default: the name of the guest].
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// ServiceAccount of the Module in the namespace innkeeper-modules [default: the name of the
    /// Module].
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// Namespace of that ServiceAccount. Another one than innkeeper-modules is for a namespaced
    /// host.
    #[arg(long, value_name = "NAMESPACE", default_value = module::NAMESPACE)]
    account_namespace: String,
    /// Namespace in which to grant the rights, by a Role; can be repeated [default: all namespaces,
    /// by a ClusterRole]. Set spec.namespaces of the Module to the same namespaces. An
    /// administrator installs the guest's CustomResourceDefinitions beforehand.
    #[arg(long = "namespace", short = 'n', value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// With --namespace, print a ClusterRole too: for cluster-scoped kinds, and to install
    /// CustomResourceDefinitions.
    #[arg(long, requires = "namespaces")]
    with_cluster_role: bool,
    #[command(flatten)]
    parameters: ParameterArguments,
    /// Leave out the right to install the guest's CustomResourceDefinitions.
    #[arg(long)]
    without_crds: bool,
}

/// Runs the command.
///
/// # Errors
/// If the file is no guest, a name cannot be used, or the guest declares a kind of Kubernetes
/// differently.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let opened = component::open(&arguments.file)?;
    let guest = if arguments.parameters.is_given() {
        arguments.parameters.resolve(&opened.guest)?.1
    } else {
        note_kind_parameters(opened.guest.manifest());
        opened.guest
    };
    let manifest = guest.manifest();
    let module = arguments.module.clone().unwrap_or_else(|| manifest.name.clone());
    let account = arguments.service_account.clone().unwrap_or_else(|| module.clone());
    let account_namespace = arguments.account_namespace.clone();
    for (name, option) in [
        (&module, "--module"),
        (&account, "--service-account"),
        (&account_namespace, "--account-namespace"),
    ] {
        if !names::is_label(name) {
            bail!(
                "{name:?} is no valid name (lower-case letters, digits and '-'); give another with {option}"
            );
        }
    }
    if let Some(namespace) =
        arguments.namespaces.iter().find(|namespace| !names::is_label(namespace))
    {
        bail!("--namespace {namespace:?} is no valid name (lower-case letters, digits and '-')");
    }
    check_builtin(manifest)?;
    let is_narrow = !arguments.namespaces.is_empty() && !arguments.with_cluster_role;
    if is_narrow {
        check_namespaced(manifest)?;
    }
    let crds = !arguments.without_crds && !is_narrow;
    let namespaces = arguments.namespaces.iter().cloned().collect();
    let grant = Grant { module, account, account_namespace, namespaces, crds };
    out::document(&print(manifest, &grant)?)
}

/// Says that the rules are for the default kinds, if parameters name kinds.
fn note_kind_parameters(manifest: &Manifest) {
    let names = manifest.kind_parameters.iter();
    let names: Vec<_> = names.map(|one| format!("parameters.{}", one.parameter)).collect();
    if !names.is_empty() {
        let note = format_args!(
            "note: {} name kinds, and the rules have the default kinds; give the parameters of the Module with --parameters",
            names.join(", ")
        );
        out::eprint(&foreign::one_line(note, foreign::LINE_BYTES_MAX));
    }
}

/// Refuses a guest that declares a kind of Kubernetes with another plural or scope: the rights
/// would be for another kind, or would apply outside the namespaces of `--namespace`.
fn check_builtin(manifest: &Manifest) -> anyhow::Result<()> {
    let owned = manifest.owned.iter().map(|owned| &owned.kind);
    for kind in manifest.primary.iter().chain(owned).chain(&manifest.reads) {
        for known in innkeeper_simulator::builtin_kinds(kind.group()) {
            let is_same = (&known.kind, &known.plural, known.namespaced)
                == (&kind.kind, &kind.plural, kind.is_namespaced());
            if (known.kind == kind.kind || known.plural == kind.plural) && !is_same {
                let scope = if known.namespaced { "Namespaced" } else { "Cluster" };
                bail!(
                    "the guest declares {kind} as {} with scope {:?}, but Kubernetes serves {} as {} with scope {scope}: correct the guest's manifest",
                    kind.resource(),
                    kind.scope,
                    known.kind,
                    known.plural
                );
            }
        }
    }
    Ok(())
}

/// Refuses a guest that declares cluster-scoped kinds: no Role can grant them.
fn check_namespaced(manifest: &Manifest) -> anyhow::Result<()> {
    let owned = manifest.owned.iter().map(|owned| &owned.kind);
    let kinds = manifest.primary.iter().chain(owned).chain(&manifest.reads);
    let mut cluster_scoped: BTreeSet<String> =
        kinds.filter(|kind| !kind.is_namespaced()).map(ToString::to_string).collect();
    cluster_scoped.extend(manifest.policy.iter().flat_map(policy::cluster_scoped));
    if cluster_scoped.is_empty() {
        return Ok(());
    }
    bail!(
        "the guest {} declares cluster-scoped kinds, which no Role can grant: {}; print a ClusterRole for them with --with-cluster-role, or leave out --namespace",
        manifest.name,
        Vec::from_iter(cluster_scoped).join(", ")
    )
}

/// The minimal rules of a module in all namespaces, as objects.
pub(crate) fn minimal_rules(manifest: &Manifest, module: &str, account: &str) -> Vec<Value> {
    let grant = Grant {
        module: module.to_owned(),
        account: account.to_owned(),
        account_namespace: module::NAMESPACE.to_owned(),
        namespaces: BTreeSet::new(),
        crds: true,
    };
    let mut objects = vec![grant.service_account()];
    for (namespace, rules) in grant.by_namespace(manifest) {
        let mut role = grant.role(namespace);
        role.insert(
            "rules".to_owned(),
            rules.iter().map(|rule| Value::Object(rule.object())).collect(),
        );
        objects.extend([Value::Object(role), grant.binding(namespace)]);
    }
    objects
}

/// Whom the rules are granted to, and where.
struct Grant {
    module: String,
    account: String,
    account_namespace: String,
    namespaces: BTreeSet<String>,
    crds: bool,
}

const READ: &[&str] = &["get", "list", "watch"];
const MERGE: &[&str] = &["get", "list", "watch", "patch"];
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];

/// The minimal rules of a module, with those to install its definitions if `crds`.
fn rules(manifest: &Manifest, crds: bool) -> Vec<Rule> {
    let primary = manifest.primary.as_ref();
    let mut rules: Vec<Rule> =
        primary.into_iter().flat_map(|primary| rules_of_primaries(manifest, primary)).collect();
    rules.extend(manifest.owned.iter().map(rule_of_owned));
    let known = |kind: &Kind| {
        Some(kind) == primary || manifest.owned.iter().any(|owned| owned.kind == *kind)
    };
    for read in manifest.reads.iter().filter(|read| !known(read)) {
        rules.push(Rule::new(format!("The guest reads {}.", read.kind), read, "", READ));
    }
    if let Some(policy) = &manifest.policy {
        rules.extend(policy::rules_of_policy(manifest, policy));
    }
    rules.extend(primary.map(rule_of_events));
    if crds && !manifest.crds.is_empty() {
        rules.push(Rule {
            why: "To install the definitions that the guest describes, and no others.".into(),
            group: "apiextensions.k8s.io".into(),
            resource: "customresourcedefinitions".into(),
            names: manifest.definitions().map(|one| crd_name(&one)).collect(),
            // Creating by apply names the object in its path, so that `create` obeys the names.
            verbs: &["get", "create", "patch"],
            scope: RuleScope::Cluster,
        });
        rules.extend(manifest.definitions().filter_map(|definition| stored(manifest, &definition)));
    }
    rules
}

/// To watch the primaries, and to write their status and metadata.
fn rules_of_primaries(manifest: &Manifest, primary: &Kind) -> Vec<Rule> {
    let why = format!("The primaries: to watch {}.", primary.plural);
    let mut rules = vec![Rule::new(why, primary, "", READ)];
    if !control::decorates(manifest) {
        let why = "To write their status (server-side apply).";
        rules.push(Rule::new(why.into(), primary, "/status", &["patch"]));
    }
    if manifest.finalizer.is_some() {
        let why = "To write the guest's finalizer on them.".into();
        rules.push(Rule::new(why, primary, "", &["patch"]));
    }
    if manifest.owned.iter().any(|owned| !owned.merges) {
        let why = "To own what is made for them: an owner reference that blocks deletion needs\nthis where OwnerReferencesPermissionEnforcement is on.";
        rules.push(Rule::new(why.into(), primary, "/finalizers", &["update"]));
    }
    rules
}

/// To apply objects of a kind, or to merge fields into them.
fn rule_of_owned(owned: &OwnedKind) -> Rule {
    let kind = &owned.kind;
    if owned.merges {
        let why = format!("To merge fields into {}, and to take them back.", kind.plural);
        return Rule::new(with_extra_rights(why, kind), kind, "", MERGE);
    }
    let optional = if owned.optional { " where it is served" } else { "" };
    let mut why =
        format!("To make {}{optional} (apply needs create and patch), and to prune.", kind.kind);
    if object::holds_secrets(kind) {
        why.push_str("\nTo copy values of spec.valueSources, it needs get on each of these Secrets, and\nlist and watch in their namespaces.");
    }
    if is_controller_revision(kind) {
        why.push_str("\nThe host may store fields of primaries in them, and the role view of Kubernetes reads\nthem.");
    }
    Rule::new(with_extra_rights(why, kind), kind, "", OWN)
}

/// To write Events about the primaries.
fn rule_of_events(primary: &Kind) -> Rule {
    let kind = Kind::namespaced("events.k8s.io/v1", "Event", "events");
    let why = "To write Events about the primaries";
    let rule = Rule::new(format!("{why}."), &kind, "", &["create", "patch"]);
    if primary.is_namespaced() {
        return rule;
    }
    let why = format!("{why}: those about cluster-scoped objects lie here.");
    Rule { why, scope: RuleScope::Default, ..rule }
}

/// The reason of a rule, with what else the API server asks for. The command prints no rule for it:
/// without names, `bind` and `escalate` let the guest grant itself everything.
fn with_extra_rights(why: String, kind: &Kind) -> String {
    match extra_rights::of(kind) {
        Some(needs) => {
            format!(
                "{why}\nIn addition to these verbs, writes need {needs}.\nThese rules do not grant it."
            )
        }
        None => why,
    }
}

/// To read the objects of a definition whose kind the manifest does not declare otherwise: they are
/// checked before their definition changes.
fn stored(manifest: &Manifest, definition: &serde_json::Value) -> Option<Rule> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(serde_json::Value::as_str);
    let (group, plural) = (text("/spec/group")?, text("/spec/names/plural")?);
    let owned = manifest.owned.iter().map(|owned| &owned.kind);
    let mut declared = owned.chain(&manifest.reads).chain(&manifest.primary);
    if declared.any(|kind| kind.group() == group && kind.plural == plural) {
        return None;
    }
    Some(Rule {
        why: format!("To check stored {plural} before their definition changes."),
        group: group.to_owned(),
        resource: plural.to_owned(),
        names: Vec::new(),
        verbs: &["list"],
        scope: if text("/spec/scope") == Some("Cluster") {
            RuleScope::Cluster
        } else {
            RuleScope::Namespaces
        },
    })
}

impl Grant {
    /// The rules of the module by the namespace of their role; `None` for a ClusterRole.
    fn by_namespace(&self, manifest: &Manifest) -> BTreeMap<Option<&str>, Vec<Rule>> {
        let mut granted: BTreeMap<Option<&str>, Vec<Rule>> = BTreeMap::new();
        for rule in rules(manifest, self.crds) {
            let namespaces: Vec<Option<&str>> = match rule.scope {
                RuleScope::Namespaces if !self.namespaces.is_empty() => {
                    self.namespaces.iter().map(|namespace| Some(namespace.as_str())).collect()
                }
                RuleScope::Cluster | RuleScope::Namespaces => vec![None],
                RuleScope::Default => vec![Some("default")],
            };
            for namespace in namespaces {
                granted.entry(namespace).or_default().push(rule.clone());
            }
        }
        granted
    }

    /// The account, which allows the module to act as it.
    fn service_account(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": self.account, "namespace": self.account_namespace,
                "annotations": {ALLOWED_MODULES_ANNOTATION: self.module}}})
    }

    /// A role without its rules.
    fn role(&self, namespace: Option<&str>) -> Map<String, Value> {
        self.object(role_kind(namespace).to_owned(), namespace)
    }

    /// What gives the role to the account.
    fn binding(&self, namespace: Option<&str>) -> Value {
        let kind = role_kind(namespace);
        let mut object = self.object(format!("{kind}Binding"), namespace);
        let role = json!({"apiGroup": RBAC, "kind": kind, "name": self.name()});
        object.insert("roleRef".to_owned(), role);
        let account = json!({"kind": "ServiceAccount", "name": self.account,
            "namespace": self.account_namespace});
        object.insert("subjects".to_owned(), json!([account]));
        Value::Object(object)
    }

    fn object(&self, kind: String, namespace: Option<&str>) -> Map<String, Value> {
        let mut metadata = json!({"name": self.name()});
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        let mut object = Map::new();
        object.insert("apiVersion".to_owned(), format!("{RBAC}/v1").into());
        object.insert("kind".to_owned(), kind.into());
        object.insert("metadata".to_owned(), metadata);
        object
    }

    fn name(&self) -> String {
        format!("innkeeper-module-{}", self.module)
    }
}

/// The API group of roles.
const RBAC: &str = "rbac.authorization.k8s.io";

fn role_kind(namespace: Option<&str>) -> &'static str {
    if namespace.is_some() { "Role" } else { "ClusterRole" }
}

fn print(manifest: &Manifest, grant: &Grant) -> anyhow::Result<Document> {
    let mut yaml = Yaml::default();
    let title = format!("{} {}", manifest.name, manifest.version);
    let title = title.trim_end();
    yaml.comment(format_args!("What the module {} needs to run the guest {title}.", grant.module));
    yaml.comment(
        "Made by `innkeeper rbac`; run it again when the guest changes what it describes.",
    );
    yaml.comment(
        "The annotation names the modules that may act as the account, separated by commas.",
    );
    if !grant.crds && !manifest.crds.is_empty() {
        yaml.comment(
            "An administrator installs the definitions: `innkeeper inspect GUEST.wasm --crds | kubectl apply --server-side -f -`",
        );
    }
    if manifest.policy.as_ref().is_some_and(policy::has_wildcards) {
        yaml.comment(
            "The policy names resources by `*`; nothing is printed for those. To review existing objects, grant list and watch on them; a policy that changes objects needs patch too.",
        );
    }
    yaml.document(&grant.service_account())?;
    for (namespace, rules) in &grant.by_namespace(manifest) {
        yaml.separator();
        let rules: Vec<_> = rules.iter().map(|rule| (rule.why.clone(), rule.object())).collect();
        yaml.document_with_list(&grant.role(*namespace), "rules", &rules)?;
        yaml.separator();
        yaml.document(&grant.binding(*namespace))?;
    }
    yaml.finish()
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
