//! Whether a manifest makes sense, beyond its shape: names go into URLs, field managers and
//! finalizers, so they are checked before anything is done with them.

use std::collections::BTreeSet;

use innkeeper_contract::{Kind, Manifest, Scope};
use innkeeper_core::{KindMasks, PrimarySelector, control, foreign, names as grammar};
use semver::Version;
use serde_json::Value;

use crate::validated_spec::is_reserved_group;
use crate::{definitions, kind_parameters, module, policy_manifest};

/// The most kinds that a guest may own and read: each is a cache and two requests at least.
const KINDS_MAX: usize = 100;

/// The most CustomResourceDefinitions that a guest may describe.
const CRDS_MAX: usize = 20;

/// The longest version of a guest, in bytes.
const VERSION_BYTES_MAX: usize = 128;

/// The most errors that are reported; the others show up when these are corrected.
const ERRORS_MAX: usize = 20;

/// The longest error, in bytes: names in a manifest may be of any length.
const ERROR_BYTES_MAX: usize = 1_024;

/// Checks a manifest.
///
/// # Errors
/// Everything that is wrong, each with its place in the manifest.
pub fn check(manifest: &Manifest) -> Result<(), Vec<String>> {
    let mut errors = Vec::new();
    // Not looked at one by one: there may be any number.
    for (place, count, max) in [
        ("owned and reads", manifest.owned.len() + manifest.reads.len(), KINDS_MAX),
        ("crds", manifest.crds.len(), CRDS_MAX),
    ] {
        if count > max {
            errors.push(format!("{place}: {count} are more than the {max} that a guest may have"));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if !grammar::is_subdomain(&manifest.name) {
        errors.push(format!(
            "name: {:?} is not a name of Kubernetes (lower case letters, digits, '-' and '.', at most 253 characters)",
            manifest.name
        ));
    }
    // A guest without a version has an empty one.
    let version = &manifest.version;
    if !version.is_empty()
        && (version.len() > VERSION_BYTES_MAX || Version::parse(version).is_err())
    {
        errors.push(format!(
            "version: {version:?} is not a semantic version of at most {VERSION_BYTES_MAX} characters, like 1.2.3 or 1.2.3-rc.1"
        ));
    }
    check_parts(manifest, &mut errors);
    if let Some(primary) = &manifest.primary {
        kind("primary", primary, &mut errors);
        if primary.group() == module::GROUP {
            errors.push(format!("primary: kinds of {} are the host's own", module::GROUP));
        }
    }
    check_owned(manifest, &mut errors);
    for (index, read) in manifest.reads.iter().enumerate() {
        kind(&format!("reads[{index}]"), read, &mut errors);
    }
    if let Err(error) = KindMasks::read(&manifest.read_fields, manifest) {
        errors.push(error.to_string());
    }
    check_selector(manifest, &mut errors);
    if let Some(finalizer) = &manifest.finalizer
        && !finalizer.is_empty()
        && !is_finalizer(finalizer)
    {
        errors.push(format!("finalizer: {finalizer:?} is not a name like example.com/cleanup"));
    }
    if let Some(policy) = &manifest.policy {
        policy_manifest::check(policy, &mut errors);
    }
    kind_parameters::check(manifest, &mut errors);
    for (index, definition) in manifest.definitions().enumerate() {
        crd(&format!("crds[{index}]"), &definition, manifest, &mut errors);
    }
    errors.truncate(ERRORS_MAX);
    for error in &mut errors {
        *error = foreign::one_line(&*error, ERROR_BYTES_MAX);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks that the guest reconciles or reviews, and that a guest which only reviews has nothing
/// that is about primaries and their objects.
fn check_parts(manifest: &Manifest, errors: &mut Vec<String>) {
    if manifest.primary.is_some() {
        return;
    }
    if manifest.policy.is_none() {
        errors.push("manifest: names no primary and no policy; name one of them".to_owned());
    }
    for (member, is_empty) in [
        ("selector", manifest.selector.is_none()),
        ("owned", manifest.owned.is_empty()),
        ("readFields", manifest.read_fields.is_empty()),
        ("crds", manifest.crds.is_empty()),
        ("resyncSeconds", manifest.resync_seconds.is_none()),
        ("finalizer", manifest.finalizer.is_none()),
        ("decorates", !manifest.decorates),
    ] {
        if !is_empty {
            errors.push(format!("{member}: only for a guest with a primary; leave it out"));
        }
    }
}

/// Checks the owned kinds.
fn check_owned(manifest: &Manifest, errors: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, owned) in manifest.owned.iter().enumerate() {
        let place = format!("owned[{index}].kind");
        kind(&place, &owned.kind, errors);
        if owned.kind.group() == module::GROUP {
            errors.push(format!("{place}: kinds of {} are the host's own", module::GROUP));
        }
        // The host would apply them as any object: unchecked, and with any metadata.
        if owned.kind.group() == definitions::GROUP {
            errors.push(format!(
                "{place}: {} cannot be owned; describe definitions in crds",
                owned.kind.kind
            ));
        }
        // A guest may merge into its primary, and make others of its kind.
        let is_another = manifest
            .primary
            .as_ref()
            .is_some_and(|primary| names(&owned.kind) == names(primary) && owned.kind != *primary);
        if !seen.insert(names(&owned.kind)) || is_another {
            errors.push(format!("{place}: {} is named twice", owned.kind));
        }
    }
}

/// Checks which primaries the guest selects.
fn check_selector(manifest: &Manifest, errors: &mut Vec<String>) {
    let Some(selector) = &manifest.selector else { return };
    PrimarySelector::read(selector, "selector", &mut |field, problem| {
        errors.push(format!("{field}: {problem}"));
    });
    let fields = selector.match_fields.iter().take(ERRORS_MAX).enumerate();
    for (index, field) in fields {
        if field.key.split('.').next() == Some("status") && !control::decorates(manifest) {
            errors.push(format!("selector.matchFields[{index}].key: {:?} is written for the guest, which would end its own selection; select by a field of the spec", field.key));
        }
    }
}

fn names(kind: &Kind) -> (String, String) {
    (kind.api_version.clone(), kind.kind.clone())
}

fn kind(place: &str, kind: &Kind, errors: &mut Vec<String>) {
    if !grammar::is_api_version(&kind.api_version) {
        errors.push(format!(
            "{place}.apiVersion: {:?} is not a group and a version",
            kind.api_version
        ));
    }
    if !grammar::is_kind(&kind.kind) {
        errors.push(format!("{place}.kind: {:?} is not a CamelCase name", kind.kind));
    }
    if !grammar::is_letter_label(&kind.plural) {
        errors.push(format!("{place}.plural: {:?} is not a lower-case plural", kind.plural));
    }
    // `kubectl` and this host read an object of such a kind as the objects in its `items`.
    if kind.kind == "List" {
        errors.push(format!("{place}.kind: List is no kind of its own"));
    }
}

fn crd(place: &str, definition: &Value, manifest: &Manifest, errors: &mut Vec<String>) {
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/apiVersion") != "apiextensions.k8s.io/v1"
        || text("/kind") != "CustomResourceDefinition"
    {
        errors
            .push(format!("{place}: is not a CustomResourceDefinition of apiextensions.k8s.io/v1"));
        return;
    }
    definitions::check(place, definition, errors);
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    if !grammar::is_subdomain(group)
        || !grammar::is_letter_label(plural)
        || text("/metadata/name") != format!("{plural}.{group}")
    {
        errors.push(format!(
            "{place}.metadata.name: {:?} must be spec.names.plural and spec.group: {:?}",
            text("/metadata/name"),
            format!("{plural}.{group}")
        ));
    }
    if is_reserved_group(group) {
        errors.push(format!("{place}.spec.group: {group} belongs to Kubernetes or to Innkeeper"));
    }
    if !matches!(text("/spec/conversion/strategy"), "" | "None") {
        errors.push(format!("{place}.spec.conversion: a conversion webhook is not supported"));
    }
    agrees(place, definition, manifest, errors);
    // The manifest and the definition name the same kind twice: they must agree, or the host
    // would watch what is not there.
    if let Some(primary) = &manifest.primary
        && group == primary.group()
        && text("/spec/names/kind") == primary.kind
    {
        let scope = scope_of(primary);
        if plural != primary.plural || text("/spec/scope") != scope {
            errors.push(format!(
                "{place}: is {plural}, {}; the primary is {}, {scope}",
                foreign::one_line(text("/spec/scope"), 63),
                primary.plural
            ));
        }
        let revision = definition.pointer("/spec/versions").and_then(Value::as_array).is_some_and(
            |versions| {
                versions.iter().any(|version| {
                    version["name"] == primary.version() && version["served"] == true
                })
            },
        );
        if !revision {
            errors.push(format!(
                "{place}.spec.versions: {} of the primary is not served",
                primary.version()
            ));
        }
    }
}

/// Checks that a definition and the kinds owned and read that it defines agree: discovery cannot
/// compare a kind before its definition is installed.
fn agrees(place: &str, definition: &Value, manifest: &Manifest, errors: &mut Vec<String>) {
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let (kind, scope) = (text("/spec/names/kind"), text("/spec/scope"));
    let primary = manifest.primary.iter().map(|primary| ("primary".to_owned(), primary));
    let owned = manifest.owned.iter().enumerate();
    let owned = owned.map(|(index, owned)| (format!("owned[{index}].kind"), &owned.kind));
    let reads = manifest.reads.iter().enumerate();
    let reads = reads.map(|(index, kind)| (format!("reads[{index}]"), kind));
    let all = primary.chain(owned).chain(reads);
    for (of, declared) in all.filter(|(_, one)| one.group() == group) {
        let is_named = declared.kind == kind;
        // Of the primary's own definition the version is compared too, by the caller.
        if (!is_named && declared.plural != plural)
            || (is_named && Some(declared) == manifest.primary.as_ref())
        {
            continue;
        }
        if !is_named || declared.plural != plural || scope_of(declared) != scope {
            errors.push(format!(
                "{place}: defines {kind} as {plural}, {scope}; {of} declares {} as {}, {}",
                declared.kind,
                declared.plural,
                scope_of(declared)
            ));
        }
    }
}

fn scope_of(kind: &Kind) -> &'static str {
    match kind.scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    }
}

/// A finalizer: a DNS name, a slash and a word, or a DNS name with a dot.
fn is_finalizer(text: &str) -> bool {
    if text.contains('/') {
        grammar::is_qualified(text)
    } else {
        grammar::is_subdomain(text) && text.contains('.')
    }
}

#[cfg(test)]
mod tests;
