//! The answer of a guest's `describe`.

use innkeeper_contract::{Kind, Manifest, Operation, PolicyKind};
use innkeeper_modules::{check_manifest, is_reserved_group};
use serde_json::Value;

/// Reads a manifest. What is read is printed as it was; what the host accepts has names that are
/// safe in URLs and in YAML.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(manifest) = serde_json::from_slice::<Manifest>(data) else { return };
    let text = serde_json::to_string(&manifest).expect("a manifest is printed");
    let again: Manifest = serde_json::from_str(&text).expect("a printed manifest is read");
    assert_eq!(manifest, again, "a manifest changes when it is printed and read");
    assert_eq!(check_manifest(&manifest), check_manifest(&again), "the check depends on more");
    check(&manifest);
}

/// Checks a manifest as the host does, and what the host accepts or reports then.
pub(crate) fn check(manifest: &Manifest) {
    match check_manifest(manifest) {
        Ok(()) => accepted(manifest),
        Err(errors) => {
            let long = errors.iter().any(|error| error.len() > 2_048);
            assert!(!errors.is_empty() && errors.len() <= 32 && !long, "{errors:?}");
        }
    }
}

fn accepted(manifest: &Manifest) {
    let owned = manifest.owned.iter().map(|owned| &owned.kind);
    for kind in manifest.primary.iter().chain(owned).chain(&manifest.reads) {
        is_safe(kind);
    }
    let is_own = |kind: &Kind| kind.group() == "innkeeper.dev";
    assert!(!manifest.primary.as_ref().is_some_and(is_own), "the host's own kind is a primary");
    policy(manifest);
    assert!(manifest.name.len() <= 253 && !manifest.name.is_empty());
    for definition in manifest.definitions() {
        let text = |pointer| definition.pointer(pointer).and_then(Value::as_str);
        let (name, group) = (text("/metadata/name"), text("/spec/group").expect("it has a group"));
        let plural = text("/spec/names/plural").expect("it has a plural");
        assert_eq!(name.expect("it has a name"), format!("{plural}.{group}"));
        assert!(is_token(plural, "-") && is_token(group, "-."), "{plural} {group}");
        assert!(!is_reserved_group(group), "{group} is reserved");
    }
    if let Some(finalizer) = manifest.finalizer.as_deref().filter(|one| !one.is_empty()) {
        assert!(finalizer.len() <= 317, "{finalizer}");
        let inner = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        assert!(finalizer.chars().all(inner), "{finalizer}");
    }
}

/// A guest reconciles or reviews. What it asks to review fits a webhook configuration, and no
/// policy changes what decides about rights.
fn policy(manifest: &Manifest) {
    let Some(policy) = &manifest.policy else {
        assert!(manifest.primary.is_some(), "a guest without primary and policy");
        return;
    };
    assert!((1..=32).contains(&policy.rules.len()) && policy.match_conditions.len() <= 16);
    for rule in &policy.rules {
        assert!(!rule.operations.is_empty() && !rule.operations.contains(&Operation::Connect));
        let names = rule.groups.iter().chain(&rule.versions).chain(&rule.resources);
        for name in names {
            let plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./*".contains(c);
            assert!(name.len() <= 253 && name.chars().all(plain), "{name:?}");
        }
        let changes_rights =
            |group: &String| ["*", "rbac.authorization.k8s.io"].contains(&&**group);
        let is_changed = policy.kind == PolicyKind::Mutate;
        assert!(!is_changed || !rule.groups.iter().any(changes_rights), "{rule:?}");
    }
    for condition in &policy.match_conditions {
        assert!(condition.name.len() <= 317 && condition.name.is_ascii(), "{condition:?}");
        assert!((1..=4_096).contains(&condition.expression.len()), "{condition:?}");
    }
}

/// No character of a kind's names has a meaning in a path, a query or YAML.
fn is_safe(kind: &Kind) {
    assert!(is_token(&kind.plural, "-"), "{kind:?}");
    let name = &kind.kind;
    assert!(name.len() <= 63 && name.chars().all(|c| c.is_ascii_alphanumeric()), "{kind:?}");
    assert!(name.starts_with(|c: char| c.is_ascii_uppercase()), "{kind:?}");
    assert!(is_token(kind.version(), "-"), "{kind:?}");
    let core = !kind.api_version.contains('/');
    assert!(core && kind.group().is_empty() || is_token(kind.group(), "-."), "{kind:?}");
    assert!(!kind.api_version.contains(".."), "{kind:?}");
}

/// Lower case letters, digits and these marks, of which none is first or last.
fn is_token(text: &str, marks: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 253
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|c| plain(c) || marks.contains(c))
}
