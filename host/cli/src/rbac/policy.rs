//! The rules that a policy needs: to review existing objects, and to change objects.

use std::collections::BTreeSet;

use innkeeper_contract::{Kind, Manifest, PolicyKind, PolicyManifest, PolicyRule};

use super::rule::{Rule, RuleScope};

const LIST: &[&str] = &["list", "watch"];
const PATCH: &[&str] = &["patch"];
const LIST_AND_PATCH: &[&str] = &["list", "watch", "patch"];

/// A resource that a policy reviews, with its subresource, and where its objects are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reviewed {
    group: String,
    resource: String,
    is_namespaced: bool,
}

/// The rules for the resources that a policy reviews; none for a resource that is named by `*`.
pub(super) fn rules_of_policy(manifest: &Manifest, policy: &PolicyManifest) -> Vec<Rule> {
    reviewed(policy).iter().filter_map(|one| rule(manifest, policy, one)).collect()
}

fn rule(manifest: &Manifest, policy: &PolicyManifest, reviewed: &Reviewed) -> Option<Rule> {
    let of = |kind: &Kind| kind.group() == reviewed.group && kind.plural == reviewed.resource;
    let is_read = manifest.primary.iter().chain(&manifest.reads).any(of);
    let is_owned = manifest.owned.iter().any(|owned| of(&owned.kind));
    let lists = !is_read && !is_owned && !reviewed.resource.contains('/');
    let patches = !is_owned && policy.kind == PolicyKind::Mutate;
    let resource = &reviewed.resource;
    let to_list =
        format!("To review existing {resource} in the background (spec.policy.background).");
    let to_patch = format!(
        "To change {resource} in requests: the host asks whether the account may, since a\nwebhook runs after the user was authorized."
    );
    let (why, verbs) = match (lists, patches) {
        (true, true) => (format!("{to_list}\n{to_patch}"), LIST_AND_PATCH),
        (true, false) => (to_list, LIST),
        (false, true) => (to_patch, PATCH),
        (false, false) => return None,
    };
    Some(Rule {
        why,
        group: reviewed.group.clone(),
        resource: resource.clone(),
        names: Vec::new(),
        verbs,
        scope: if reviewed.is_namespaced { RuleScope::Namespaces } else { RuleScope::Cluster },
    })
}

/// Whether a rule of a policy names groups or resources by `*`, for which no rights are printed.
pub(super) fn has_wildcards(policy: &PolicyManifest) -> bool {
    policy
        .rules
        .iter()
        .any(|rule| rule.groups.iter().chain(&rule.resources).any(|name| name.contains('*')))
}

/// The cluster-scoped resources that a policy reviews, as `clusterroles.rbac.authorization.k8s.io`.
pub(super) fn cluster_scoped(policy: &PolicyManifest) -> impl Iterator<Item = String> {
    let all = reviewed(policy).into_iter().filter(|one| !one.is_namespaced);
    all.map(|one| match one.group.as_str() {
        "" => one.resource,
        group => format!("{}.{group}", one.resource),
    })
}

fn reviewed(policy: &PolicyManifest) -> BTreeSet<Reviewed> {
    let mut all = BTreeSet::new();
    for rule in &policy.rules {
        for group in rule.groups.iter().filter(|group| *group != "*") {
            for resource in rule.resources.iter().filter(|resource| !resource.contains('*')) {
                let is_namespaced = is_namespaced(rule, group, resource);
                all.insert(Reviewed {
                    group: group.clone(),
                    resource: resource.clone(),
                    is_namespaced,
                });
            }
        }
    }
    all
}

/// Whether the objects of a resource are in namespaces. A resource that Kubernetes does not have
/// counts as namespaced, unless the rule says otherwise.
fn is_namespaced(rule: &PolicyRule, group: &str, resource: &str) -> bool {
    let plural = resource.split('/').next().unwrap_or_default();
    let builtin = innkeeper_simulator::builtin_kinds(group);
    match builtin.iter().find(|kind| kind.plural == plural) {
        Some(known) => known.namespaced,
        None => rule.scope != innkeeper_contract::RuleScope::Cluster,
    }
}
