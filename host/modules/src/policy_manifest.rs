//! The checks of the rules and conditions of a policy. The API server gets them in a webhook
//! configuration, and refuses the whole configuration for one mistake.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use innkeeper_contract::{MatchCondition, Operation, PolicyKind, PolicyManifest, PolicyRule};
use innkeeper_core::{foreign, host_names, names as grammar, review_scope};

/// How many rules a policy has.
const RULES: RangeInclusive<usize> = 1..=32;

/// How many groups a rule names.
const GROUPS: RangeInclusive<usize> = 1..=32;

/// How many versions a rule names; none means all.
const VERSIONS: RangeInclusive<usize> = 0..=32;

/// How many resources a rule names.
const RESOURCES: RangeInclusive<usize> = 1..=64;

/// How many operations a rule names.
const OPERATIONS: RangeInclusive<usize> = 1..=3;

/// How many conditions a policy has.
const CONDITIONS: RangeInclusive<usize> = 0..=16;

/// The bytes of an expression.
const EXPRESSION_BYTES: RangeInclusive<usize> = 1..=4_096;

/// The longest name that an error quotes, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// Checks the policy of a manifest, and adds an error for each mistake.
pub(crate) fn check(policy: &PolicyManifest, errors: &mut Vec<String>) {
    check_rules("policy.rules", &policy.rules, errors);
    if policy.kind == PolicyKind::Mutate {
        check_mutable("policy.rules", &policy.rules, errors);
    }
    check_conditions("policy.matchConditions", &policy.match_conditions, errors);
    if policy.reinvocation && policy.kind != PolicyKind::Mutate {
        errors.push(
            "policy.reinvocation: only for the kind Mutate; a policy that only decides is called once"
                .to_owned(),
        );
    }
}

/// Checks the rules at a place.
pub(crate) fn check_rules(place: &str, rules: &[PolicyRule], errors: &mut Vec<String>) {
    if !has_allowed_count(place, rules.len(), &RULES, errors) {
        return;
    }
    for (index, rule) in rules.iter().enumerate() {
        let place = format!("{place}[{index}]");
        check_groups(&format!("{place}.groups"), &rule.groups, errors);
        check_versions(&format!("{place}.versions"), &rule.versions, errors);
        check_resources(&format!("{place}.resources"), &rule.resources, errors);
        check_operations(&format!("{place}.operations"), &rule.operations, errors);
    }
}

/// Adds an error unless there are as many as allowed; returns whether there are.
fn has_allowed_count(
    place: &str,
    count: usize,
    allowed: &RangeInclusive<usize>,
    errors: &mut Vec<String>,
) -> bool {
    if !allowed.contains(&count) {
        let (min, max) = (allowed.start(), allowed.end());
        errors.push(format!("{place}: has {count} items; give {min} to {max}"));
    }
    allowed.contains(&count)
}

/// Adds an error for a name that a list has twice, and for a name in addition to `*`.
fn check_list(place: &str, names: &[String], errors: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for name in names.iter().filter(|name| !seen.insert(name.as_str())) {
        errors.push(format!("{place}: {} is named twice", quoted(name)));
    }
    if names.len() > 1 && seen.contains("*") {
        errors.push(format!("{place}: \"*\" stands for all; leave out the others"));
    }
}

fn check_groups(place: &str, groups: &[String], errors: &mut Vec<String>) {
    if !has_allowed_count(place, groups.len(), &GROUPS, errors) {
        return;
    }
    check_list(place, groups, errors);
    for group in groups {
        if review_scope::is_never_reviewed(group) {
            errors.push(format!(
                "{place}: requests of {group} are never sent to policies; leave it out"
            ));
        } else if !group.is_empty() && group != "*" && !grammar::is_subdomain(group) {
            errors.push(format!(
                "{place}: {} is no API group like apps or networking.k8s.io",
                quoted(group)
            ));
        }
    }
}

fn check_versions(place: &str, versions: &[String], errors: &mut Vec<String>) {
    if !has_allowed_count(place, versions.len(), &VERSIONS, errors) {
        return;
    }
    check_list(place, versions, errors);
    for version in versions.iter().filter(|one| *one != "*" && !grammar::is_letter_label(one)) {
        errors.push(format!("{place}: {} is no version like v1 or v1beta1", quoted(version)));
    }
}

fn check_resources(place: &str, resources: &[String], errors: &mut Vec<String>) {
    if !has_allowed_count(place, resources.len(), &RESOURCES, errors) {
        return;
    }
    let mut seen = BTreeSet::new();
    for resource in resources {
        if !is_resource(resource) {
            errors.push(format!(
                "{place}: {} is no resource like pods, pods/status, pods/* or *",
                quoted(resource)
            ));
        } else if !seen.insert(resource.as_str()) {
            errors.push(format!("{place}: {resource} is named twice"));
        }
    }
    // The API server refuses a list in which one entry covers another.
    for resource in &seen {
        let covering = match resource.split_once('/') {
            _ if *resource == "*/*" => None,
            _ if seen.contains("*/*") => Some("*/*".to_owned()),
            Some((name, subresource)) if subresource != "*" => Some(format!("{name}/*")),
            None if *resource != "*" => Some("*".to_owned()),
            _ => None,
        };
        if let Some(covering) = covering.filter(|one| seen.contains(one.as_str())) {
            errors.push(format!("{place}: {covering} includes {resource}; leave one of them out"));
        }
    }
}

/// Whether a text is a plural with or without a subresource, of which `*` may stand for all.
fn is_resource(text: &str) -> bool {
    match text.split_once('/') {
        _ if text == "*" || text == "*/*" => true,
        Some((name, subresource)) => {
            grammar::is_letter_label(name)
                && (subresource == "*" || grammar::is_letter_label(subresource))
        }
        None => grammar::is_letter_label(text),
    }
}

fn check_operations(place: &str, operations: &[Operation], errors: &mut Vec<String>) {
    if operations.contains(&Operation::Connect) {
        errors.push(format!(
            "{place}: CONNECT is not reviewed: a connection has no object; use a ValidatingAdmissionPolicy"
        ));
        return;
    }
    if !has_allowed_count(place, operations.len(), &OPERATIONS, errors) {
        return;
    }
    let mut seen = BTreeSet::new();
    for operation in operations.iter().filter(|one| !seen.insert(**one)) {
        errors.push(format!("{place}: {operation} is named twice"));
    }
}

/// Checks that the rules of a policy that changes objects match none that no policy may change.
/// Looks only at as many items as [`check_rules`] allows.
pub(crate) fn check_mutable(place: &str, rules: &[PolicyRule], errors: &mut Vec<String>) {
    for (index, rule) in rules.iter().take(*RULES.end()).enumerate() {
        let place = format!("{place}[{index}]");
        let groups = || rule.groups.iter().take(*GROUPS.end()).map(String::as_str);
        for group in groups() {
            if group == "*" {
                errors.push(format!(
                    "{place}.groups: \"*\" has groups that no policy may change, such as rbac.authorization.k8s.io; name the groups"
                ));
            } else if review_scope::NEVER_CHANGED_GROUPS.contains(&group) {
                errors.push(format!(
                    "{place}.groups: no policy may change objects of {group}, which decide about rights; use a policy of the kind Validate for them"
                ));
            }
        }
        let resources = rule.resources.iter().take(*RESOURCES.end());
        let tokens =
            resources.map(String::as_str).filter(|one| review_scope::TOKEN_RESOURCES.contains(one));
        for resource in tokens.filter(|_| groups().any(|group| group.is_empty() || group == "*")) {
            errors.push(format!(
                "{place}.resources: {resource} has the tokens of ServiceAccounts, which no policy may change; name other resources"
            ));
        }
    }
}

/// Checks the conditions at a place. Whether an expression is CEL, the API server checks.
pub(crate) fn check_conditions(
    place: &str,
    conditions: &[MatchCondition],
    errors: &mut Vec<String>,
) {
    if !has_allowed_count(place, conditions.len(), &CONDITIONS, errors) {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, MatchCondition { name, expression }) in conditions.iter().enumerate() {
        let place = format!("{place}[{index}]");
        if !grammar::is_qualified(name) {
            errors.push(format!(
                "{place}.name: {} is no name like not-a-lease or example.com/not-a-lease",
                quoted(name)
            ));
        } else if host_names::is_reserved(name) {
            errors.push(format!(
                "{place}.name: {name} belongs to the host, as all names of {}; take another",
                host_names::DOMAIN
            ));
        } else if !seen.insert(name) {
            errors.push(format!("{place}.name: {name} is the name of another condition"));
        }
        if !EXPRESSION_BYTES.contains(&expression.len()) {
            let (bytes, max) = (expression.len(), EXPRESSION_BYTES.end());
            errors.push(format!("{place}.expression: has {bytes} bytes; give 1 to {max}"));
        }
    }
}

/// A wrong name, in quotes.
fn quoted(name: &str) -> String {
    format!("{:?}", foreign::one_line(name, NAME_BYTES_MAX))
}

#[cfg(test)]
mod tests;
