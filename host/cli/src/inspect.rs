//! `innkeeper inspect`: shows the manifest, the imports and the size of a guest.

use std::path::PathBuf;

use anyhow::bail;
use innkeeper_contract::{Kind, Manifest, PolicyKind, PolicyRule, RuleScope, Scope};
use innkeeper_core::foreign;
use innkeeper_modules::chunks;
use innkeeper_modules::definitions::installable_definitions;
use innkeeper_modules::source::gzip;
use innkeeper_sandbox::{Guest, KubewardenMetadata};
use serde_json::{Map, Value, json};

use crate::component::{self, Opened};
use crate::document::{Document, Yaml};
use crate::out::{self, Format, Page};

/// The longest annotation that is shown, in bytes.
const ANNOTATION_BYTES_MAX: usize = 300;

/// Arguments of `innkeeper inspect`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// Output format.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
    /// Print the CustomResourceDefinitions that the guest describes, as YAML for `kubectl apply
    /// --server-side -f -`: for an administrator who installs them, where the module may not.
    #[arg(long, conflicts_with = "output")]
    crds: bool,
}

/// Runs the command.
///
/// # Errors
/// If the file is no guest.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let opened = component::open(&arguments.file)?;
    if arguments.crds {
        return out::document(&crds(opened.guest.manifest())?);
    }
    match arguments.output {
        Format::Text => out::page(&text(&opened)),
        Format::Json => out::document(&Document::json(&json(&opened)?)?),
    }
}

/// The definitions of a guest, without what the host would not install.
fn crds(manifest: &Manifest) -> anyhow::Result<Document> {
    let definitions = installable_definitions(manifest);
    if definitions.is_empty() {
        bail!("the guest {} describes no CustomResourceDefinition", manifest.name);
    }
    let mut yaml = Yaml::default();
    for (index, definition) in definitions.iter().enumerate() {
        let conversion = definition.pointer("/spec/conversion/strategy");
        if conversion.is_some_and(|strategy| strategy == "Webhook") {
            bail!(
                "the definition {} asks for a conversion webhook, which a guest cannot serve: it is not printed",
                crd_name(definition)
            );
        }
        if index > 0 {
            yaml.separator();
        }
        yaml.document(definition)?;
    }
    yaml.finish()
}

fn json(opened: &Opened) -> anyhow::Result<Value> {
    let mut json = json!({
        "digest": format!("sha256:{}", opened.component.digest),
        "bytes": opened.component.bytes.len(),
        "gzipBytes": gzip(&opened.component.bytes).len(),
        "configMaps": config_maps(opened),
        "contract": contract(&opened.guest),
        "imports": opened.guest.imports(),
        "manifest": serde_json::to_value(opened.guest.manifest())?,
    });
    if let Some(metadata) = opened.guest.kubewarden() {
        json["kubewarden"] = kubewarden(metadata);
    }
    Ok(json)
}

/// The protocol between the guest and the host.
fn contract(guest: &Guest) -> String {
    match guest.kubewarden() {
        Some(metadata) => format!("Kubewarden {} (waPC)", metadata.protocol_version),
        None => format!("innkeeper:guest@{}", innkeeper_contract::VERSION),
    }
}

/// The metadata of a Kubewarden policy that the manifest does not have.
fn kubewarden(metadata: &KubewardenMetadata) -> Value {
    let reads = metadata.context_aware_resources.iter();
    json!({
        "protocolVersion": metadata.protocol_version,
        "mutating": metadata.mutating,
        "backgroundAudit": metadata.background_audit,
        "contextAwareResources": reads
            .map(|one| json!({"apiVersion": one.api_version, "kind": one.kind}))
            .collect::<Vec<_>>(),
        "annotations": metadata.annotations,
    })
}

/// Adds the texts of a Kubewarden policy for people.
fn rows_of_kubewarden(out: &mut Page, guest: &Guest) {
    let Some(metadata) = guest.kubewarden() else { return };
    for name in ["title", "description", "author", "url", "license"] {
        let texts = metadata.annotation(name).into_iter();
        row(out, name, texts.map(|text| foreign::one_line(text, ANNOTATION_BYTES_MAX)));
    }
}

/// The number of ConfigMaps in which `innkeeper push` stores the component.
fn config_maps(opened: &Opened) -> usize {
    chunks::config_maps("", &opened.component, &Map::new()).len()
}

/// What a guest is, as text.
pub(crate) fn text(opened: &Opened) -> Page {
    let manifest = opened.guest.manifest();
    let mut out = Page::default();
    out.line(format_args!("{} {}", manifest.name, manifest.version));
    row(&mut out, "digest", [format!("sha256:{}", opened.component.digest)]);
    row(&mut out, "size", [sizes(opened)]);
    let config_maps = match config_maps(opened) {
        1 => "1".to_owned(),
        chunks => format!("{chunks} (`innkeeper push` splits the component into chunks)"),
    };
    row(&mut out, "ConfigMaps", [config_maps]);
    row(&mut out, "contract", [contract(&opened.guest)]);
    rows_of_kubewarden(&mut out, &opened.guest);
    row(&mut out, "imports", opened.guest.imports());
    row(&mut out, "primary", manifest.primary.iter().map(kind));
    if let Some(selector) = &manifest.selector {
        row(&mut out, "selects", serde_json::to_string(selector));
    }
    let owned = manifest.owned.iter();
    row(
        &mut out,
        "owns",
        owned.map(|owned| {
            let optional = if owned.optional { ", optional" } else { "" };
            let merges = if owned.merges { ", merged into" } else { "" };
            format!("{}{optional}{merges}", kind(&owned.kind))
        }),
    );
    row(&mut out, "reads", manifest.reads.iter().map(kind));
    row(&mut out, "CRDs", manifest.definitions().map(|one| crd_name(&one)));
    let primary = manifest.primary.iter();
    row(&mut out, "resync", primary.map(|_| resync(manifest)));
    let finalizer = manifest.finalizer.iter();
    row(
        &mut out,
        "finalizer",
        finalizer.map(|name| match name.as_str() {
            "" => "innkeeper.dev/<module>".to_owned(),
            name => name.to_owned(),
        }),
    );
    rows_of_policy(&mut out, manifest);
    row(&mut out, "parameters", [parameters(manifest)]);
    let kinds = manifest.kind_parameters.iter();
    row(
        &mut out,
        "kinds from",
        kinds.map(|one| format!("parameters.{}: {}", one.parameter, one.role.as_str())),
    );
    out
}

/// Adds what a policy reviews, and when.
fn rows_of_policy(out: &mut Page, manifest: &Manifest) {
    let Some(policy) = &manifest.policy else { return };
    let kind = match policy.kind {
        PolicyKind::Validate => "validates",
        PolicyKind::Mutate if policy.reinvocation => "mutates, again after other policies",
        PolicyKind::Mutate => "mutates",
    };
    row(out, "policy", [kind.to_owned()]);
    row(out, "rules", policy.rules.iter().map(rule));
    let conditions = policy.match_conditions.iter();
    row(out, "conditions", conditions.map(|one| format!("{}: {}", one.name, one.expression)));
}

/// A rule in one line, as in `CREATE, UPDATE of deployments, deployments/scale in apps`.
fn rule(rule: &PolicyRule) -> String {
    let operations: Vec<&str> = rule.operations.iter().map(|one| one.as_str()).collect();
    let groups = rule.groups.iter().map(|group| match group.as_str() {
        "" => "the core group",
        "*" => "all groups",
        group => group,
    });
    let versions = match rule.versions.join(", ") {
        versions if versions.is_empty() || versions == "*" => String::new(),
        versions => format!(" ({versions})"),
    };
    let scope = match rule.scope {
        RuleScope::All => "",
        RuleScope::Namespaced => ", namespaced objects only",
        RuleScope::Cluster => ", cluster-scoped objects only",
    };
    format!(
        "{} of {} in {}{versions}{scope}",
        operations.join(", "),
        rule.resources.join(", "),
        groups.collect::<Vec<_>>().join(", ")
    )
}

/// The size of the component, plain and with gzip.
pub(crate) fn sizes(opened: &Opened) -> String {
    let bytes = &opened.component.bytes;
    format!("{}, gzip {}", size(bytes.len()), size(gzip(bytes).len()))
}

/// Adds one line for each value, the first with the name of the row.
pub(crate) fn row(out: &mut Page, name: &str, values: impl IntoIterator<Item = String>) {
    for (index, value) in values.into_iter().enumerate() {
        out.line(format_args!("  {:<12}{value}", if index == 0 { name } else { "" }));
    }
}

fn kind(kind: &Kind) -> String {
    let scope = match kind.scope {
        Scope::Namespaced => "",
        Scope::Cluster => ", cluster-scoped",
    };
    format!("{} {} ({}{scope})", kind.api_version, kind.kind, kind.resource())
}

pub(crate) fn crd_name(definition: &Value) -> String {
    definition.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("(no name)").to_owned()
}

fn resync(manifest: &Manifest) -> String {
    match manifest.resync_seconds {
        None | Some(0) => "on changes only".to_owned(),
        Some(seconds) => format!("every {seconds} s"),
    }
}

fn parameters(manifest: &Manifest) -> String {
    let Some(schema) = &manifest.parameters_schema else { return "none".to_owned() };
    let schema = schema.value();
    let names = schema.get("properties").and_then(Value::as_object);
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let names: Vec<_> = names
        .into_iter()
        .flatten()
        .map(|(name, _)| {
            if required.contains(&name.as_str()) {
                format!("{name} (required)")
            } else {
                name.clone()
            }
        })
        .collect();
    if names.is_empty() { "any that match the schema".to_owned() } else { names.join(", ") }
}

/// A size in a readable unit.
#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn size(bytes: usize) -> String {
    if bytes < 1 << 10 {
        format!("{bytes} bytes")
    } else if bytes < 1 << 20 {
        format!("{:.1} KiB", bytes as f64 / 1024.0)
    } else {
        format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0))
    }
}
